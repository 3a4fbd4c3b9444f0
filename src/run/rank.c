// SPDX-License-Identifier: MIT
// Runs one rank of a job: plan, environment, step, step loop (steps.c) and result. Each stage that can fail on one rank
// ends with comm_agree, which then fails on all ranks. Otherwise ranks would wait for a rank that has left.
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gswbench/clock.h"
#include "gswbench/comparison.h"
#include "gswbench/fatal.h"
#include "gswbench/job.h"
#include "gswbench/plan_build.h"
#include "gswbench/report.h"
#include "gswbench/signature.h"

struct rank {
    const struct benchmark *benchmark;
    struct rank_environment environment;
    struct comm            *comm;    // owned by environment
    struct plan             plan;
    struct step            *step;
    struct result           result;     // result of the job on rank 0; other ranks use only the steps
    struct watch           *watch;      // the watchdog; NULL: off
    struct journal          journal;    // on rank 0
    struct steps            steps;
    struct comparison_side  baseline;           // on rank 0
    struct output_folder    folder, weights;    // on rank 0, opened before the first step
};

static bool is_first(const struct rank *rank)
{
    return rank->comm->topology.rank == 0;
}

static status open_plan(struct rank *rank, int number)
{
    struct plan_request request = rank->benchmark->job.request;
    request.rank                = number;
    TRY(plan_build(&rank->plan, &request));
    return plan_verify(&rank->plan, NULL);
}

static status sign_file(const struct rank *rank, const char *name)
{
    char path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    snprintf(path, sizeof(path), "%s/%s", rank->folder.path, name);
    return rank->benchmark->sign_key != NULL ? signature_make(path, rank->benchmark->sign_key) : OK;
}

// Fails if the file system has too little space for the output of the run. Measured: 80 to 90 KB per pipeline stage,
// 700 bytes per step, and 150 bytes per timeline op. RUN_BYTES, STEP_BYTES and OP_BYTES include a reserve; RANK_BYTES
// is an estimate.
static status space_check(const struct config *config, const struct plan *plan, const struct output_folder *folder)
{
    enum { RUN_BYTES = 160 << 10, STEP_BYTES = 1 << 10, RANK_BYTES = 16 << 10, OP_BYTES = 256 };
    int64_t ranks = plan->mesh.world, drawn = 0, listed = communication_files_of(&config->trace, plan).bytes;
    for (int64_t rank = 0; rank < ranks && config->trace.steps > 0; rank++) {
        drawn += trace_config_draws(&config->trace, rank);
    }
    int64_t timeline = drawn * plan->op_count * OP_BYTES;
    int64_t results =
        plan->mesh.size[AXIS_PP] * RUN_BYTES + run_steps_max(&config->run) * STEP_BYTES + ranks * RANK_BYTES;
    return output_check_space(folder->descriptor, folder->path, results + timeline + listed,
                              timeline > results ? timeline : results);
}

static status open_folders(struct rank *rank)
{
    const struct benchmark *benchmark = rank->benchmark;
    TRY(report_create_folder(&rank->folder, &rank->result, benchmark->job.config.run.output));
    TRY(space_check(&benchmark->job.config, &rank->plan, &rank->folder));
    if (benchmark->weights_out != NULL) {
        TRY(output_claim_folder(&rank->weights, benchmark->weights_out));
        TRY(checkpoint_check_space(&rank->plan, &rank->weights));
    }
    TRY(output_write(&rank->folder, "config.merged.ini", benchmark->config_text, benchmark->config_bytes));
    TRY(sign_file(rank, "config.merged.ini"));    // a bad key fails here, before the first step
    return journal_open(&rank->journal, &rank->folder, &rank->result);
}

// Fills the description of the run in the result. Creates the output folders, so that an unwritable folder fails before
// the first step.
static status open_result(struct rank *rank)
{
    struct result       *result = &rank->result;
    const struct config *config = &rank->benchmark->job.config;
    signals_keep();
    benchmark_describe(result, rank->benchmark, rank->comm, &rank->environment.backend, &rank->environment.devices);
    facts_add_environment(result, &rank->environment);
    result_set_plan(result, &rank->plan, &config->published);
    if (is_first(rank)) {
        TRY(plan_hardware_flops(&rank->plan, &rank->benchmark->job.request,
                                &result->flops_per_sequence[FLOPS_HARDWARE]));
    }
    result_reserve(result, result->planned_steps, rank->comm->topology.ranks, layers_with_experts(&rank->plan.model));
    for (int64_t i = 0; i < result->layer_load_count; i++) {
        result->layer_loads[i].layer = layers_expert_layer(&rank->plan.model, i);
    }
    result->allocated_bytes = rank->environment.backend.allocated_bytes;
    facts_add_connections(result, rank->comm, rank->step);
    facts_describe_device(result, &rank->environment);
    attention_gather(result, rank->comm, &rank->environment.backend);
    notes_add(result, rank->benchmark, &rank->environment);
    peers_check_topology(result, rank->environment.peers);
    peers_check_profilers(result, rank->environment.peers, rank->comm->topology.ranks);
    notes_add_disturbances(result, config);
    result_derive(result);
    if (!is_first(rank)) {
        return OK;
    }
    expectation_find(result, &rank->benchmark->job, &rank->environment);
    if (rank->benchmark->baseline != NULL) {
        TRY(comparison_read_side(&rank->baseline, rank->benchmark->baseline));
    }
    return open_folders(rank);
}

static status check_graphs(const struct rank *rank)
{
    const struct run_config *run = &rank->benchmark->job.config.run;
    if (run->graphs != GRAPHS_ON || step_can_capture(rank->step)) {
        return OK;
    }
    FAIL_IF(run->check != CHECK_OPS && rank->plan.row_count_total > 0,
            "[run] graphs = on: dropless experts need token counts on the host, so this step cannot be captured as a "
            "CUDA graph; use auto or off");
    return fail("[run] graphs = on: backend %s with communicator %s cannot capture a step%s as a CUDA graph; use auto "
                "or off",
                rank->environment.backend.ops->name, rank->comm->ops->name,
                run->check == CHECK_OPS ? " with check = ops" : "");
}

// Writes and prints the result from the steps in the journal. The watchdog thread calls this to end a run during a
// step. The mutex `printing` stays locked, so that no step is printed that the result lacks. If the mutex is not free
// after a second, because an output pipe is blocked, this only writes the result.
static status leave_result(struct rank *rank, const char *why, const struct result_reason *further)
{
    struct result result = {0};
    double        began  = clock_seconds();    // pthread_mutex_timedlock would wait longer if the clock were set back
    while (pthread_mutex_trylock(&rank->steps.printing) != 0 && clock_seconds() - began < 1) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    FAIL_AS_IF(!rank->folder.is_open, EXIT_STOPPED, "nothing was measured");
    status written = report_recover(&result, rank->folder.path, why, further);
    FAIL_AS_IF(failed(&written), EXIT_OUTPUT, "%.500s: when this is mended, type gswbench report --recover %.400s",
               written.text, rank->folder.path);
    if (!rank->benchmark->is_mute) {
        FAIL_AS_IF(output_is_blocked(), EXIT_STOPPED, "the result is in %.900s, but nobody reads standard output",
                   rank->folder.path);
        report_print(report_of_run(rank->benchmark->json, rank->benchmark->is_verbose), &result);
    }
    return OK;
}

static void end_stopped(void *context, int signal)
{
    char why[64];
    snprintf(why, sizeof(why), "stopped during a step by %s", signals_name(signal));
    status left = leave_result(context, why, NULL);
    if (failed(&left)) {
        fprintf(stderr, "gswbench: %s: %s\n", why, left.text);
    }
    _exit(failed(&left) ? left.exit_code : EXIT_STOPPED);
}

static void end_damaged(void *context, int number, int64_t step, const char *what)
{
    struct result_reason reason = {.verdict = VERDICT_INVALID, .id = "damaged", .rank = number, .step = step};
    snprintf(reason.message, sizeof(reason.message), "step %" PRId64 ", rank %d: %s", step, number, what);
    status left = leave_result(context, "a step could not go on", &reason);
    if (failed(&left)) {
        fprintf(stderr, "gswbench: %s\n", reason.message);
    }
    _exit(EXIT_INVALID);
}

static status open_watch(struct rank *rank)
{
    int64_t                  seconds = rank->benchmark->job.config.run.hang_seconds;
    const struct watch_setup setup   = {.comm              = rank->comm,
                                        .plan              = &rank->plan,
                                        .seconds           = seconds < 0 ? 0 : (double)seconds,
                                        .caught            = signals_caught_end,
                                        .is_asked          = signals_take_question,
                                        .has_lost_launcher = comm_has_lost_launcher,
                                        .leave             = is_first(rank) ? end_stopped : NULL,
                                        .invalidate        = is_first(rank) ? end_damaged : NULL,
                                        .context           = rank,
                                        .grace             = rank->benchmark->job.config.checkpoint.grace};
    return seconds != 0 ? watch_open(&rank->watch, &setup) : OK;
}

static status prepare(struct rank *rank, struct comm *comm)
{
    struct rank_environment *environment = &rank->environment;
    const struct benchmark  *benchmark   = rank->benchmark;
    status                   planned     = open_plan(rank, comm->topology.rank);
    TRY(environment_open(environment, &benchmark->job.config, benchmark->weights_out != NULL, comm, planned));
    rank->comm = comm = environment->comm;
    TRY(checkpoints_open(&rank->steps.checkpoints.loaded, &benchmark->job.config, &rank->plan, comm));
    TRY(comm_agree(comm, open_watch(rank)));
    double began = clock_seconds();
    TRY(environment_check_processors(environment, &rank->plan, &benchmark->job.config.run));
    TRY(choices_prepare(&rank->plan, environment, benchmark->job.config.run.conditions));
    double prepared = clock_seconds();
    TRY(comm_agree(comm, step_open(&rank->step, &rank->plan, &environment->backend, comm)));
    rank->result.tune_seconds    = prepared - began;
    rank->result.connect_seconds = clock_seconds() - prepared;
    if (benchmark->job.config.run.check == CHECK_OPS) {
        step_check(rank->step);
    }
    if (benchmark->job.config.run.compute_times) {
        step_time_stalls(rank->step);
    }
    TRY(comm_agree(comm, check_graphs(rank)));
    TRY(trace_source_check(&benchmark->job.config.trace, &environment->backend, comm, environment->peers));
    return comm_agree(comm, open_result(rank));
}

static status measure(struct rank *rank)
{
    const struct benchmark *benchmark = rank->benchmark;
    bool                    prints    = is_first(rank) && !benchmark->json && !benchmark->is_quiet;
    rank->steps =
        (struct steps){.benchmark          = benchmark,
                       .comm               = rank->comm,
                       .plan               = &rank->plan,
                       .backend            = &rank->environment.backend,
                       .peers              = rank->environment.peers,
                       .step               = rank->step,
                       .result             = &rank->result,
                       .hang_watch         = rank->watch,
                       .journal            = &rank->journal,
                       .printing           = PTHREAD_MUTEX_INITIALIZER,
                       .checkpoints.loaded = rank->steps.checkpoints.loaded,
                       .observed.seconds   = memory_allocate((size_t)rank->result.planned_steps * sizeof(double))};
    rank->steps.observed.compute_times = compute_times_open(&rank->plan, rank->comm, rank->result.planned_steps);
    TRY(comm_agree(rank->comm, step_find_fault(&rank->steps.fault, &rank->plan, &benchmark->job.config.fault)));
    if (rank->watch != NULL) {
        step_set_progress(rank->step, watch_progress(rank->watch));
    }
    validation_prepare(&rank->steps, &rank->environment.backend);
    TRY(comm_agree(rank->comm, prints ? report_print(report_write_header, &rank->result) : OK));
    if (prints) {
        profile_advise(&benchmark->job.config.profile);
    }
    if (!validation_of_parts(&rank->steps, -1)) {
        return OK;    // the reason is in the result, which has no steps
    }
    TRY(checkpoints_begin(&rank->steps));
    profile_open(&rank->steps);
    observations_open(&rank->steps, rank->environment.devices.sharers);
    return comm_agree(rank->comm, steps_measure(&rank->steps));
}

static void gather_ranks(struct rank *rank)
{
    const struct comm_topology *topology = &rank->comm->topology;
    struct result              *result   = &rank->result;
    struct result_rank          own      = {.rank                = topology->rank,
                                            .node                = topology->node,
                                            .local_rank          = topology->local_rank,
                                            .threads             = rank->environment.cores.threads,
                                            .allocated_bytes     = rank->environment.backend.allocated_bytes,
                                            .clock_drift_seconds = rank->steps.observed.clock_drift};
    int64_t                     measured = result->step_count - result->planned_warmup;
    struct statistics           statistics;
    text_copy(own.host, sizeof(own.host), topology->host);
    statistics_compute(&statistics, rank->steps.observed.seconds + result->planned_warmup, measured > 0 ? measured : 0);
    own.median_seconds = statistics.median;
    checkpoints_describe(&rank->steps, &own);
    compute_times_summarise(rank->steps.observed.compute_times, topology, environment_is_alone(&rank->environment),
                            &own);
    processors_gather(&rank->steps.observed.machine, rank->comm, rank->environment.peers[topology->rank].machine, &own);
    rank->comm->ops->gather_all(rank->comm, &own, result->ranks, sizeof(own));
    result->rank_count = topology->ranks;
}

static void note_unwritten(struct result *result, const status *why)
{
    result_note(result, (struct result_reason){"not-written", VERDICT_INVALID, -1, -1, ""}, "%s", why->text);
    result->exit_code = EXIT_INVALID;
}

// Writes the files, then prints the result, so that every printed result is saved. kept: status of the weights and
// timeline files. The result is written even if these failed.
static status write_result(struct rank *rank, status kept)
{
    const struct benchmark *benchmark = rank->benchmark;
    if (failed(&kept)) {
        note_unwritten(&rank->result, &kept);
    }
    journal_note(&rank->journal, &rank->result);
    status reported = report_write_run(&rank->folder, &rank->result);
    reported        = failed(&reported) ? reported : journal_seal(&rank->journal, &rank->folder);
    reported        = failed(&reported) ? reported : sign_file(rank, "result.json");
    if (failed(&reported) && !failed(&kept)) {
        note_unwritten(&rank->result, &reported);
    }
    status written = failed(&kept) ? kept : reported;
    if (!benchmark->is_mute) {
        TRY(report_print(report_of_run(benchmark->json, benchmark->is_verbose), &rank->result));
    }
    if (rank->baseline.result != NULL && result_is_shown(&rank->result) && !benchmark->json && !benchmark->is_mute) {
        report_write_baseline(rank->baseline.result, &rank->result, stdout);
    }
    if (!failed(&reported) && !benchmark->json) {
        printf("files: %s/\n", rank->folder.path);
    }
    return written;
}

// Returns the exit code. On rank 0 it also depends on the thresholds, unless the run itself has another code than
// EXIT_VALID.
static int leave_code(const struct rank *rank)
{
    const struct benchmark *benchmark = rank->benchmark;
    int                     code      = (int)rank->result.exit_code;
    bool                    is_judged = is_first(rank) && code == EXIT_VALID;
    FILE                   *file      = benchmark->json ? stderr : stdout;
    return is_judged ? thresholds_judge(&rank->result, &benchmark->job.config.run, benchmark->is_forced, file) : code;
}

static status finish(struct rank *rank)
{
    struct comm   *comm    = rank->comm;
    struct result *result  = &rank->result;
    status         written = OK, kept = rank->steps.checkpoints.saved, drawn = OK;
    gather_ranks(rank);
    observations_gather(&rank->steps, rank->environment.devices.sharers);
    if (result->step_count > 0) {
        replicas_compare(result, &rank->steps);
    }
    if (rank->benchmark->weights_out != NULL && !failed(&kept)) {    // before the traced steps change the weights
        kept = checkpoints_write_weights(&rank->steps, &rank->weights);
    }
    if (result->step_count == result->planned_steps && rank->benchmark->job.config.trace.steps > 0) {
        drawn = steps_trace(&rank->steps, &rank->folder);
    }
    if (result->step_count > 0) {    // last, because the test overwrites the tensors of the step
        validation_of_parts(&rank->steps, result->step_count - 1);
    }
    if (is_first(rank)) {
        benchmark_print_time(result->ended, sizeof(result->ended));
        result_check(result);
        if (rank->benchmark->conclude != NULL) {
            rank->benchmark->conclude(rank->benchmark->context, result);
        }
        watch_enter_file(rank->watch, rank->folder.path);
        written = write_result(rank, failed(&kept) ? kept : drawn);
    }
    watch_enter(rank->watch, WATCH_CLOSING, result->planned_steps);    // the other ranks wait for rank 0 from here
    int code = leave_code(rank);
    comm->ops->share(comm, &code, sizeof(code), 0);
    TRY(comm_agree(comm, failed(&kept) ? kept : written));
    TRY(rank->steps.untraced);
    return (status){.exit_code = code};
}

static void release(struct rank *rank)
{
    struct observation unused;
    if (rank->steps.observed.device != NULL) {    // still open, because the run failed
        observer_close(rank->steps.observed.device, &unused);
    }
    profile_close(&rank->steps);
    if (rank->steps.validation != NULL) {
        validation_close(rank->steps.validation);
    }
    free(rank->steps.observed.seconds);
    if (rank->steps.observed.compute_times != NULL) {
        compute_times_close(rank->steps.observed.compute_times);
    }
    checkpoints_close(&rank->steps);
    journal_close(&rank->journal);
    comparison_free_side(&rank->baseline);
    output_close_folder(&rank->folder);
    output_close_folder(&rank->weights);
    result_free(&rank->result);
    if (rank->step != NULL) {
        step_close(rank->step);
    }
    watch_close(rank->watch);
    environment_close(&rank->environment);
    plan_free(&rank->plan);
}

static status run(struct rank *rank, struct comm *comm)
{
    TRY(prepare(rank, comm));
    TRY(measure(rank));
    return finish(rank);
}

status benchmark_run_rank(const void *shared, struct comm *comm)
{
    struct rank *rank = memory_allocate(sizeof(*rank));
    rank->benchmark   = shared;
    fatal_set_rank(comm->topology.rank);
    status result = run(rank, comm);
    release(rank);
    free(rank);
    return result;
}
