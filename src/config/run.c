// SPDX-License-Identifier: MIT
// Defines the options of [run], [fault], [trace], [profile] and [checkpoint], and checks each section.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/backend.h"
#include "internal.h"

enum { RUN_STEPS_MAX = 1000000 };

// clang-format off
static const char *const data_names[] = {[DATA_UNIFORM] = "uniform", [DATA_MARKOV] = "markov", NULL};
static const char *const graphs_names[] = {[GRAPHS_AUTO] = "auto", [GRAPHS_ON] = "on", [GRAPHS_OFF] = "off", NULL};
static const char *const communicator_names[] = {"auto", "local", "mpi", "nccl", NULL};
static const char *const check_names[] = {[CHECK_NONE] = "none", [CHECK_OPS] = "ops", NULL};
static const char *const verify_names[] = {
    [VERIFY_QUICK] = "quick", [VERIFY_FULL] = "full", [VERIFY_LIGHT] = "light", [VERIFY_OFF] = "off", NULL};
static const char *const conditions_names[] = {[CONDITIONS_NOTE] = "note", [CONDITIONS_ERROR] = "error", NULL};
static const char *const registered_names[] = {
    [REGISTERED_AUTO] = "auto", [REGISTERED_NO] = "no", [REGISTERED_YES] = "yes", NULL};
static const char *const log_style_names[] = {[LOG_GSWBENCH] = "gswbench", [LOG_MAXTEXT] = "maxtext", [LOG_NEMO] = "nemo", [LOG_TORCHTITAN] = "torchtitan", [LOG_MEGATRON] = "megatron", NULL};
static const char *const attention_names[] = {"auto", "cudnn", "own", NULL};

const struct option run_options[] = {
    INTEGER_OPTION(run_config, steps, "50", 1, RUN_STEPS_MAX, "steps of a run, including warm-up"),
    PERCENT_OPTION(run_config, until, "0%", 0, 50, "keep running after steps (up to 10x steps) until the median's 95 % confidence interval is within this share to either side; 0%: stop after steps"),
    AUTO_OPTION   (run_config, warmup, "auto", 0, 1000000, "first steps, reported but not measured; auto: a fifth of the steps, at most 10"),
    INTEGER_OPTION(run_config, seed, "1", 0, 9007199254740991, "seed of weights and tokens"),
    CHOICE_OPTION (run_config, data, "uniform", data_names, "synthetic tokens: uniform (independent) or markov (a chain that a model can learn)"),
    NAME_OPTION   (run_config, backend, "auto", backend_names, "compute backend; auto: the best of this build and machine"),
    NAME_OPTION   (run_config, communicator, "auto", communicator_names, "communication backend; auto: nccl if each rank has its own device (and an error if NCCL fails), else mpi or local, depending on the launch"),
    CHOICE_OPTION (run_config, attention, "auto", attention_names, "cuda backend: attention by cuDNN or by gswbench's kernels; auto: cuDNN if it is installed and runs this shape"),
    INTEGER_OPTION(run_config, threads, "0", 0, 4096, "host backend: threads per rank; 0: the cores that the rank is bound to"),
    INTEGER_OPTION(run_config, layers, "0", 0, 4096, "use only N layers; the result is marked as a proxy; 0: all layers of the model"),
    CHOICE_OPTION (run_config, graphs, "auto", graphs_names, "cuda backend: run the step as a CUDA graph; auto: if no communication needs the host and the device supports it; between nodes, if warm-up steps are faster with it"),
    CHOICE_OPTION (run_config, check, "none", check_names, "ops: wait for each op, check its outputs, and stop at the first NaN or infinity with the op's name; such a run is not compared"),
    CHOICE_OPTION (run_config, verify, "quick", verify_names, "checks outside the measured time; light: isolated tests of ops and collectives; quick: also repeat the first, the last and two random steps, with equal results; full: repeat every step and check that memory does not change between steps; off: none"),
    CHOICE_OPTION (run_config, conditions, "note", conditions_names, "treat problems of the machine before the first step as a note of the result or as an error; examples: drivers or devices differ between ranks, sockets instead of InfiniBand, cores far from the device"),
    CHOICE_OPTION (run_config, log_style, "gswbench", log_style_names, "log format of the steps: gswbench, or another program, for scripts that parse its log"),
    BOOLEAN_OPTION(run_config, deterministic, "no", "cuda backend: select algorithms by rule instead of by timing, so that runs are bitwise equal"),
    BOOLEAN_OPTION(run_config, compute_times, "yes", "cuda backend: measure with CUDA events in each step how long a rank waits for others, to find slow ranks"),
    INTEGER_OPTION(run_config, ranks_per_device, "1", 1, 64, "ranks that may share a device; more than 1 is for tests, with communication through the host"),
    INTEGER_OPTION(run_config, threads_per_core, "2", 2, 1024, "threads of ranks that may share a core before a run is DEGRADED; more than 2 is for tests, whose step times mean nothing"),
    AUTO_OPTION   (run_config, sm_margin, "auto", 0, 64, "cuda backend: SM margin: SMs that GEMMs leave to communication, and the limit of NCCL's SMs per collective; 0, auto: no limit"),
    CHOICE_OPTION (run_config, registered_buffers, "auto", registered_names, "nccl: communication buffers are allocated by NCCL and registered with its communicators, which avoids copies; auto: if NCCL supports it; yes: an error if it does not"),
    BOOLEAN_OPTION(run_config, zero_cta, "no", "nccl: copy engines run all-gathers and all-to-alls within a node (from NCCL 2.29 also ring steps); this uses no SMs but starts later; needs NCCL 2.28 and a driver for CUDA 12.5"),
    BOOLEAN_OPTION(run_config, communication_algorithms, "no", "nccl: list the algorithm, protocol and channels of each collective; they come from NCCL's log, which slows steps that are not captured"),
    INTEGER_OPTION(run_config, ranks_per_id, "64", 0, 65536, "nccl: ranks per unique ID at communicator creation; applies to groups of at least twice as many ranks with NCCL 2.23 or newer; 0: one ID for all"),
    INTEGER_OPTION(run_config, connect_seconds, "120", 1, 86400, "nccl: time limit for communicator creation, in seconds"),
    AUTO_OPTION   (run_config, hang_seconds, "auto", 0, 86400, "seconds without progress of a rank after which the job stops and names the rank that blocks it; 10x before the first step, after the last, and during checkpoint I/O, where progress of any rank counts; auto: ten median steps, at least 60; 0: no watchdog"),
    INTEGER_OPTION(run_config, time_limit, "0", 0, 2592000, "stop after this many seconds and keep a partial result; 0: no limit"),
    REAL_OPTION   (run_config, observe_seconds, "1", 0, 3600, "seconds between samples of each device's clocks, power and temperature; 0: no samples"),
    TEXT_OPTION   (run_config, cache, "", "folder that keeps data for later runs, such as selected algorithms; empty: gswbench in the user's cache folder"),
    TEXT_OPTION   (run_config, fail_above, "", "exit 6 if a value is above its limit, 15 if the data cannot decide: step=13 (seconds); empty: no limit"),
    TEXT_OPTION   (run_config, fail_below, "", "exit 6 if a value is below its limit, 15 if the data cannot decide: mfu=0.5,tokens=60000 (per second); empty: no limit"),
    TEXT_OPTION   (run_config, output, "results", "folder in which each run creates its own folder"),
    END_OPTIONS
};
// clang-format on

int64_t run_steps_max(const struct run_config *run)
{
    int64_t maximum = run->steps > RUN_STEPS_MAX / 10 ? RUN_STEPS_MAX : 10 * run->steps;
    return run->until > 0 ? maximum : run->steps;
}

int64_t run_warmup(int64_t steps)
{
    return steps < 50 ? steps / 5 : 10;
}

// Parses the first rank or range, and a comma, of a list of ranks such as "0,8-15". Returns the remaining text, or NULL
// if it is malformed.
static const char *take_ranks(const char *text, int64_t *first, int64_t *last)
{
    char *end;
    *first = *last = strtoll(text, &end, 10);
    if (end != text && *end == '-') {
        text  = end + 1;
        *last = strtoll(text, &end, 10);
    }
    if (end == text || *last < *first || (*end != ',' && *end != '\0')) {
        return NULL;
    }
    return *end == ',' ? end + 1 : end;
}

static bool is_all(const char *list)
{
    return strcmp(list, "all") == 0;
}

static status rank_list_check(const char *option, const char *list, int64_t world)
{
    const char *next = is_all(list) ? "" : list;
    while (*next != '\0') {
        int64_t first, last;
        next = take_ranks(next, &first, &last);
        FAIL_IF(next == NULL || first < 0 || last >= world,
                "%s = %s: expected all, or ranks from 0 to %" PRId64 ", such as 0,8-15", option, list, world - 1);
    }
    return OK;
}

static bool rank_list_has(const char *list, int64_t rank)
{
    const char *next = is_all(list) ? "" : list;
    bool        has  = is_all(list);
    while (*next != '\0' && !has) {
        int64_t first, last;
        next = take_ranks(next, &first, &last);
        has  = first <= rank && rank <= last;
    }
    return has;
}

// clang-format off
static const char *const kind_names[] = {
    [FAULT_NONE] = "none", [FAULT_NAN] = "nan", [FAULT_FLIP] = "flip", [FAULT_DELAY] = "delay", [FAULT_STOP] = "stop",
    [FAULT_SPIN] = "spin", [FAULT_SKIP] = "skip", [FAULT_SLOW] = "slow", NULL};

const struct option fault_options[] = {
    CHOICE_OPTION (fault_config, kind, "none", kind_names, "nan: an element becomes NaN; flip: one of its bits flips; delay: the rank sleeps before the op; stop: SIGSTOP; spin: endless loop; skip: the op is left out; slow: all compute ops take longer from that step on"),
    INTEGER_OPTION(fault_config, rank, "0", 0, 1000000, "rank of the fault"),
    INTEGER_OPTION(fault_config, step, "0", -1, 1000000, "step of the fault, counted from 0, traced steps after measured ones; -1: during the verification of collectives before the first step"),
    TEXT_OPTION   (fault_config, at, "", "op of the fault: the first whose name in gswbench plan --ops contains this text; or, after the word tensor, the first tensor with such a name, before the step; empty: the first op"),
    INTEGER_OPTION(fault_config, element, "0", 0, 9007199254740991, "nan, flip: index into the tensor, or into all outputs of the op in order; modulo their size"),
    INTEGER_OPTION(fault_config, bit, "0", 0, 31, "flip: bit of the element, 0 is the lowest; modulo its size"),
    REAL_OPTION   (fault_config, amount, "1", 0, 1000000, "delay: seconds; slow: percent"),
    BOOLEAN_OPTION(fault_config, repeats, "no", "inject the fault again when verification repeats the step"),
    END_OPTIONS
};
// clang-format on

static const char *const source_names[] = {
    [TRACE_AUTO] = "auto", [TRACE_CUPTI] = "cupti", [TRACE_EVENTS] = "events", NULL};

// clang-format off
const struct option trace_options[] = {
    INTEGER_OPTION(trace_config, steps, "2", 0, 1000, "traced steps after the measured ones, with a time for each op; the waterfall shows the last; 0: none"),
    CHOICE_OPTION (trace_config, source, "auto", source_names, "cuda backend: time ops by CUPTI, which records each kernel and copy, or by CUDA events; auto: CUPTI if all ranks can use it"),
    TEXT_OPTION   (trace_config, timeline, "", "ranks whose ops of the last traced step are in trace.json, for Perfetto: 0,8 or all; empty: none"),
    TEXT_OPTION   (trace_config, communications, "auto", "ranks whose collectives of the last traced step are in transfers/RANK.csv: 0,8 or all; auto: all, or the first rank of each pipeline stage if all would exceed 1 GiB; empty: none"),
    END_OPTIONS
};
// clang-format on

status trace_config_check(const struct trace_config *trace, int64_t world)
{
    FAIL_IF(trace->timeline[0] != '\0' && trace->steps == 0,
            "[trace] timeline = %s needs a traced step, but steps = 0: set steps to 1 or more", trace->timeline);
    TRY(rank_list_check("[trace] timeline", trace->timeline, world));
    return trace_config_chooses(trace) ? OK : rank_list_check("[trace] communications", trace->communications, world);
}

bool trace_config_draws(const struct trace_config *trace, int64_t rank)
{
    return rank_list_has(trace->timeline, rank);
}

bool trace_config_chooses(const struct trace_config *trace)
{
    return strcmp(trace->communications, "auto") == 0;
}

bool trace_config_lists(const struct trace_config *trace, int64_t rank)
{
    return trace->steps > 0 && (trace_config_chooses(trace) || rank_list_has(trace->communications, rank));
}

// clang-format off
const struct option profile_options[] = {
    AUTO_OPTION(profile_config, start_step, "auto", 0, 1000000, "first step that the profiler collects, counted from 0; auto: none"),
    AUTO_OPTION(profile_config, stop_step, "auto", 0, 1000000, "last step that the profiler collects; auto: start_step"),
    TEXT_OPTION(profile_config, ranks, "0", "ranks whose profiler collects these steps: 0,8-15 or all"),
    END_OPTIONS
};
// clang-format on

bool profile_config_is_set(const struct profile_config *profile)
{
    return profile->start_step >= 0;
}

int64_t profile_config_last_step(const struct profile_config *profile)
{
    return profile->stop_step >= 0 ? profile->stop_step : profile->start_step;
}

bool profile_config_has_rank(const struct profile_config *profile, int64_t rank)
{
    return rank_list_has(profile->ranks, rank);
}

status profile_config_check_steps(const struct profile_config *profile, int64_t steps)
{
    int64_t last = profile_config_last_step(profile);
    if (!profile_config_is_set(profile)) {
        return last < 0
                   ? OK
                   : fail("[profile] stop_step = %" PRId64 " has no effect without start_step: set start_step", last);
    }
    FAIL_IF(last < profile->start_step,
            "[profile] stop_step = %" PRId64 " is before start_step = %" PRId64
            ": set stop_step to start_step or later",
            last, profile->start_step);
    FAIL_IF(last >= steps,
            "[profile] %s = %" PRId64 ": [run] steps = %" PRId64 " has steps 0 to %" PRId64
            ": use one of these, or raise steps",
            profile->stop_step >= 0 ? "stop_step" : "start_step", last, steps, steps - 1);
    return OK;
}

status profile_config_check_ranks(const struct profile_config *profile, int64_t world)
{
    FAIL_IF(profile_config_is_set(profile) && profile->ranks[0] == '\0',
            "[profile] ranks is empty: use a list such as 0,8, or all");
    return rank_list_check("[profile] ranks", profile->ranks, world);
}

// clang-format off
const struct option checkpoint_options[] = {
    TEXT_OPTION   (checkpoint_config, load, "", "checkpoint to start from: one that gswbench saved (optimizer, step and data continue), a folder of these (takes the newest), or weights in Hugging Face format; empty: random weights"),
    TEXT_OPTION   (checkpoint_config, save, "", "folder for checkpoints, one subfolder step-N each; all ranks must see it; empty: none is saved"),
    INTEGER_OPTION(checkpoint_config, every, "0", 0, 1000000, "steps between checkpoints, counted across resumed runs; 0: none between steps"),
    BOOLEAN_OPTION(checkpoint_config, at_end, "yes", "also save after the last step"),
    INTEGER_OPTION(checkpoint_config, keep, "0", 0, 1000000, "number of this run's checkpoints to keep; older ones are removed when a new one is complete; 0: all"),
    BOOLEAN_OPTION(checkpoint_config, asynchronous, "no", "steps continue while threads write from a copy in host memory, which needs room for it; no: steps wait"),
    REAL_OPTION   (checkpoint_config, grace, "0", 0, 86400, "seconds for the current step and the save after it on SIGTERM, SIGINT, SIGHUP or run.time_limit; must be less than the scheduler's kill delay; 0: 0.4, as without checkpoints, since mpirun kills after 1 second"),
    BOOLEAN_OPTION(checkpoint_config, verify, "yes", "check the checksums of all loaded data"),
    END_OPTIONS
};
// clang-format on

status checkpoint_config_check(const struct checkpoint_config *checkpoint)
{
    bool saves = checkpoint->every > 0 || checkpoint->at_end != 0;
    FAIL_IF(checkpoint->save[0] == '\0' && (checkpoint->every > 0 || checkpoint->keep > 0),
            "[checkpoint] every = %" PRId64 " and keep = %" PRId64 " have no effect without save: set save to a folder",
            checkpoint->every, checkpoint->keep);
    FAIL_IF(
        checkpoint->grace > 0 && (checkpoint->save[0] == '\0' || !checkpoint->at_end),
        "[checkpoint] grace = %g has no effect without a checkpoint at the end: set save to a folder and at_end = yes",
        checkpoint->grace);
    return checkpoint->save[0] == '\0' || saves
               ? OK
               : fail("[checkpoint] save = %s, but every = 0 and at_end = no save nothing: set every, or at_end = yes",
                      checkpoint->save);
}

bool checkpoint_config_saves(const struct checkpoint_config *checkpoint, int64_t step, bool is_last)
{
    bool is_due = checkpoint->every > 0 && step % checkpoint->every == 0;
    return checkpoint->save[0] != '\0' && (is_due || (is_last && checkpoint->at_end != 0));
}
