// SPDX-License-Identifier: MIT
// The [run] options.
#include "gswbench/run.h"

#include "gswbench/backend.h"

enum { RUN_STEPS_MOST = 1000000 };

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
    INTEGER_OPTION(run_config, steps, "50", 1, RUN_STEPS_MOST, "steps of a run, including warm-up"),
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
    AUTO_OPTION   (run_config, spared_processors, "auto", 0, 64, "cuda backend: SM margin: SMs that GEMMs leave to communication, and the limit of NCCL's SMs per collective; 0, auto: no limit"),
    CHOICE_OPTION (run_config, registered_buffers, "auto", registered_names, "nccl: communication buffers are allocated by NCCL and registered with its communicators, which avoids copies; auto: if NCCL supports it; yes: an error if it does not"),
    BOOLEAN_OPTION(run_config, zero_cta, "no", "nccl: copy engines run all-gathers and all-to-alls within a node (from NCCL 2.29 also ring steps); this uses no SMs but starts later; needs NCCL 2.28 and a driver for CUDA 12.5"),
    BOOLEAN_OPTION(run_config, transfer_algorithms, "no", "nccl: list the algorithm, protocol and channels of each collective; they come from NCCL's log, which slows steps that are not captured"),
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

int64_t run_steps_most(const struct run_config *run)
{
    int64_t most = run->steps > RUN_STEPS_MOST / 10 ? RUN_STEPS_MOST : 10 * run->steps;
    return run->until > 0 ? most : run->steps;
}

int64_t run_warmup(int64_t steps)
{
    return steps < 50 ? steps / 5 : 10;
}
