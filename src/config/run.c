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
    INTEGER_OPTION(run_config, steps, "50", 1, RUN_STEPS_MOST, "steps of a run, warm-up included"),
    PERCENT_OPTION(run_config, until, "0%", 0, 50, "run on after steps, until the 95 % interval of the median is no more than that to either side of it, but no more than ten times as many steps; 0%: end after steps"),
    AUTO_OPTION   (run_config, warmup, "auto", 0, 1000000, "first steps, run and reported but not measured; auto: a fifth of the steps, 10 at most"),
    INTEGER_OPTION(run_config, seed, "1", 0, 9007199254740991, "seed of the weights and tokens"),
    CHOICE_OPTION (run_config, data, "uniform", data_names, "synthetic tokens: independent, or a chain that a model can learn"),
    NAME_OPTION   (run_config, backend, "auto", backend_names, "what computes; auto: the best that this build and machine have"),
    NAME_OPTION   (run_config, communicator, "auto", communicator_names, "what carries data between ranks; auto: nccl where each rank has a device of its own, and an error where it does not work; else mpi or local as launched"),
    CHOICE_OPTION (run_config, attention, "auto", attention_names, "cuda backend: attention by cuDNN or by kernels of our own; auto: cuDNN where it is there, takes the shape and runs it"),
    INTEGER_OPTION(run_config, threads, "0", 0, 4096, "host backend: threads of a rank; 0: the cores that the rank is given"),
    INTEGER_OPTION(run_config, layers, "0", 0, 4096, "a proxy of that many layers, labelled as one; 0: the layers of the model"),
    CHOICE_OPTION (run_config, graphs, "auto", graphs_names, "cuda backend: capture the step and replay it; auto: where no transfer needs the host and the device takes it, and between nodes where warm-up steps are found to be faster so"),
    CHOICE_OPTION (run_config, check, "none", check_names, "ops: wait for each op, look at all that it wrote, and end at the first NaN or infinity with the op's name; such a run is not compared"),
    CHOICE_OPTION (run_config, verify, "quick", verify_names, "what is proven outside the measured time; light: ops and transfers, run alone, leave the numbers that they should; quick: also, the first step, the last and two that are drawn are run twice and leave the same numbers; full: all steps are, and memory must not change between them; off: nothing"),
    CHOICE_OPTION (run_config, conditions, "note", conditions_names, "what speaks against the machine before the first step, such as ranks with unlike drivers or devices, sockets in the place of InfiniBand, or cores far from the device: a note of the result, or an error"),
    CHOICE_OPTION (run_config, log_style, "gswbench", log_style_names, "as which program prints its steps, for scripts that read its log"),
    BOOLEAN_OPTION(run_config, deterministic, "no", "cuda backend: take algorithms by rule, not by their time, so that every run has the same bits"),
    BOOLEAN_OPTION(run_config, compute_times, "yes", "cuda backend: time by events in each step how long a rank waits for others, so that slow ranks are found; no: no such events"),
    INTEGER_OPTION(run_config, ranks_per_device, "1", 1, 64, "ranks that may share a device; more than 1 is for tests, with transfers through the host"),
    INTEGER_OPTION(run_config, threads_per_core, "2", 2, 1024, "threads of ranks that may share a core before a run is DEGRADED; more than 2 is for tests, whose times are no measure"),
    AUTO_OPTION   (run_config, spared_processors, "auto", 0, 64, "cuda backend: multiprocessors that GEMMs leave to transfers, and the most that NCCL takes for one; 0: no limit; auto: both as timed side by side before the first step, or no limit with deterministic"),
    CHOICE_OPTION (run_config, registered_buffers, "auto", registered_names, "nccl communicator: memory that transfers use is NCCL's, and known to its connections, which spares copies; auto: where the library can; yes: an error where it cannot"),
    BOOLEAN_OPTION(run_config, zero_cta, "no", "nccl communicator: gathers and all-to-alls within a node, and with NCCL 2.29 steps round a ring, are made by the devices' copy engines, so that they take no multiprocessors, but start later; NCCL 2.28 and a driver for CUDA 12.5"),
    BOOLEAN_OPTION(run_config, transfer_algorithms, "no", "nccl communicator: the table of transfers says by which algorithm, protocol and channels NCCL makes each; its log tells that, which costs time in steps that are not captured"),
    INTEGER_OPTION(run_config, ranks_per_id, "64", 0, 65536, "nccl communicator: ranks of a group that find each other by one id, where it has twice as many or more, and NCCL is 2.23 or newer; 0: all by one"),
    INTEGER_OPTION(run_config, connect_seconds, "120", 1, 86400, "nccl communicator: seconds in which the ranks of a group must have found each other"),
    AUTO_OPTION   (run_config, hang_seconds, "auto", 0, 86400, "seconds in which something of a rank must move, else the job ends and names who holds it up; ten times as long before the first step, after the last, and at a checkpoint's files, of which all wait for any that moves; auto: ten median steps, 60 at least; 0: nothing watches"),
    INTEGER_OPTION(run_config, time_limit, "0", 0, 2592000, "seconds after which the run ends with the steps that it has, as a partial result; 0: no limit"),
    REAL_OPTION   (run_config, observe_seconds, "1", 0, 3600, "seconds between two samples of clocks, power and temperature of a rank's device; 0: it is not observed"),
    TEXT_OPTION   (run_config, cache, "", "folder for what one run learns for the next, such as algorithms; empty: gswbench in the user's cache folder"),
    TEXT_OPTION   (run_config, fail_above, "", "exit code 6 where a figure is above its limit, 15 where that cannot be told: step=13; empty: none"),
    TEXT_OPTION   (run_config, fail_below, "", "the same where a figure is below: mfu=0.5, tokens=60000 (a second), with commas; empty: none"),
    TEXT_OPTION   (run_config, output, "results", "folder in which each run makes its own"),
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
