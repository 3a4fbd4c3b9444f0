// SPDX-License-Identifier: MIT
// Runs one rank of a preflight: opens its environment, verifies its numbers, and measures. Rank 0 also prints and
// writes the report.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/fatal.h"
#include "gswbench/output.h"
#include "gswbench/text.h"
#include "gswbench/validate.h"
#include "gswbench/verify.h"
#include "gswbench/version.h"
#include "internal.h"

static void beat(void *context)
{
    watch_beat(context);
}

static void examine(struct flight *flight, struct step *step)
{
    struct result                 result     = {.reasons = NULL};
    const struct validation_setup setup      = {.plan        = &flight->plan,
                                                .step        = step,
                                                .comm        = flight->comm,
                                                .result      = &result,
                                                .fingerprint = environment_fingerprint(&flight->environment.backend),
                                                .beat        = beat,
                                                .context     = flight->watch};
    struct validation            *validation = validation_open(&setup);
    step_set_fault(step, flight->fault.kind != FAULT_NONE ? &flight->fault : NULL);
    flight_run(flight, &flight->plan, step, "numbers");
    validation_test_ops(validation, -1);
    validation_test_communications(validation, -1);
    for (int64_t i = 0; i < result.reason_count; i++) {
        static const struct preflight_class numbers = {.name = "numbers"};
        const struct result_reason         *reason  = &result.reasons[i];
        const struct preflight_rank        *rank    = &flight->report.ranks[reason->rank];
        const struct preflight_outlier      wrong   = {
                   .blame = BLAME_NUMBERS, .rank = reason->rank, .other_rank = -1, .percent = NAN};
        judge_add(&flight->report, &numbers, &wrong, "device %d of host %s: %.255s", (int)rank->local_rank, rank->host,
                  reason->message);
    }
    flight->report.examined_ops            = result.examined_ops;
    flight->report.examined_communications = result.examined_communications;
    flight->report.op_bound                = result.verification.op_bound;
    flight->report.op_difference           = result.verification.op_difference;
    validation_close(validation);
    result_free(&result);
}

// Checks the results of the job's ops and collectives, in the memory that a run would use. Inputs are such that the
// result is known, or that all ranks must get the same result. A run makes the same checks before its first step.
static status verify_numbers(struct flight *flight)
{
    struct step *step = NULL;
    TRY(comm_agree(flight->comm, step_prepare(&flight->plan, &flight->environment.backend)));
    status opened = step_open(&step, &flight->plan, &flight->environment.backend, flight->comm);
    if (!failed(&opened)) {
        examine(flight, step);
    }
    flight_meet(flight, "the numbers");
    if (step != NULL) {
        step_close(step);
    }
    return comm_agree(flight->comm, opened);
}

static status open_plan(struct flight *flight, int rank)
{
    struct plan_request request = flight->preflight->benchmark.job.request;
    request.rank                = rank;
    TRY(plan_build(&flight->plan, &request));
    return plan_verify(&flight->plan, NULL);
}

// Creates the output folder, so that an unusable folder fails before the measurement and not after it.
static status open_output(const struct preflight *preflight)
{
    struct output_folder folder = {.is_open = false};
    if (preflight->output == NULL) {
        return OK;
    }
    FAIL_AS_IF(preflight->output[0] == '\0', EXIT_USAGE, "-o is empty: name a folder");
    TRY(output_create_folders(preflight->output));
    TRY(output_open_folder(&folder, preflight->output));
    output_close_folder(&folder);
    return OK;
}

static status open_environment(struct flight *flight, struct comm *comm)
{
    const struct config *config  = &flight->preflight->benchmark.job.config;
    bool                 is_null = strcmp(config->run.backend, backend_null.name) == 0;
    status own = is_null ? fail("[run] backend = null computes nothing to measure: use cuda or host") : OK;
    own        = failed(&own) || comm->topology.rank > 0 ? own : open_output(flight->preflight);
    own        = failed(&own) ? own : open_plan(flight, comm->topology.rank);
    own        = failed(&own) ? own : step_find_fault(&flight->fault, &flight->plan, &config->fault);
    TRY(environment_open(&flight->environment, config, false, comm, own));
    flight->comm = flight->environment.comm;
    return OK;
}

static double thread_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Returns whether this thread gets less than 95 % of a core while all ranks compute for 0.1 s.
static bool loses_core(struct flight *flight)
{
    flight->comm->ops->barrier(flight->comm);
    double began = clock_seconds(), used = thread_seconds(), now = began;
    while (now < began + 0.1) {
        now = clock_seconds();
    }
    return thread_seconds() - used < 0.95 * (now - began);
}

// Decides whether ranks take turns. They do if a rank has no core to itself: ranks with common cores then measure one
// after the other.
static void find_turns(struct flight *flight)
{
    const struct environment_cores *cores = &flight->environment.cores;
    bool                            own   = cores->sharers * cores->threads > cores->cores;
    if (flight->environment.backend.ops->is_device || flight->comm->topology.ranks == 1) {
        return;
    }
    flight_meet(flight, "a part");
    if (comm_largest(flight->comm, own) > 0.0) {
        flight->sharing = "ranks share cores";
    } else if (comm_largest(flight->comm, loses_core(flight)) > 0.0) {
        flight->sharing = "other programs use the cores";
    }
    flight->takes_turns = flight->sharing != NULL;
}

static void describe(struct flight *flight)
{
    struct preflight_report          *report  = &flight->report;
    const struct job                 *job     = &flight->preflight->benchmark.job;
    const struct environment_devices *devices = &flight->environment.devices;
    int                               ranks   = flight->comm->topology.ranks;
    text_copy(report->version, sizeof(report->version), version_text);
    text_copy(report->config, sizeof(report->config), job->config.name);
    text_copy(report->device, sizeof(report->device),
              devices->kinds == 0   ? ""
              : devices->kinds == 1 ? devices->names[0]
                                    : "devices of several kinds");
    text_copy(report->backend, sizeof(report->backend), flight->environment.backend.ops->name);
    text_copy(report->communicator, sizeof(report->communicator), flight->comm->ops->name);
    benchmark_print_time(report->started, sizeof(report->started));
    report->ranks      = memory_allocate((size_t)ranks * sizeof(*report->ranks));
    report->rank_count = ranks;
    for (int rank = 0; rank < ranks; rank++) {
        const struct comm_topology *topology = &flight->environment.peers[rank].topology;
        report->ranks[rank].node             = topology->node;
        report->ranks[rank].local_rank       = topology->local_rank;
        text_copy(report->ranks[rank].host, sizeof(report->ranks[rank].host), topology->host);
    }
}

static status prepare(struct flight *flight, struct comm *comm)
{
    const struct job *job = &flight->preflight->benchmark.job;
    int64_t           unused;
    TRY(open_environment(flight, comm));
    TRY(flight_open_watch(flight));
    describe(flight);
    flight->setup = (struct calibrate_setup){.request = &job->request,
                                             .run     = &job->config.run,
                                             .backend = &flight->environment.backend,
                                             .comm    = flight->comm};
    TRY(comm_agree(flight->comm, calibrate_collect(&flight->list, &job->request, &unused)));
    return comm_agree(flight->comm, measured_read_profile(&flight->measured, &job->config));
}

static status measure(struct flight *flight, struct comm *comm)
{
    TRY(prepare(flight, comm));
    TRY(verify_numbers(flight));
    find_turns(flight);
    TRY(flight_measure_devices(flight));
    find_turns(flight);
    TRY(flight_measure_links(flight, false));
    TRY(flight_measure_links(flight, true));
    find_turns(flight);
    return flight_measure_groups(flight);
}

status preflight_measure(struct preflight_report *report, const struct preflight *preflight, struct comm *comm)
{
    struct flight flight = {.preflight = preflight, .began = clock_seconds()};
    fatal_set_rank(comm->topology.rank);
    status result         = measure(&flight, comm);
    flight.report.seconds = clock_seconds() - flight.began;
    preflight_conclude(&flight.report);
    *report = flight.report;
    watch_close(flight.watch);
    measured_free(&flight.measured);
    calibrate_free(&flight.list);
    environment_close(&flight.environment);
    plan_free(&flight.plan);
    return result;
}

static status write_file(const char *folder, const char *name, void (*write)(const struct preflight_report *, FILE *),
                         const struct preflight_report *report)
{
    struct text_stream stream;
    text_stream_open(&stream);
    write(report, stream.file);
    return output_save(&stream, "%s/%s", folder, name);
}

static status write_report(const struct preflight *preflight, const struct preflight_report *report)
{
    if (preflight->json) {
        preflight_write_json(report, stdout);
    } else {
        preflight_write_text(report, stdout);
    }
    if (preflight->output != NULL) {
        TRY(write_file(preflight->output, "preflight.txt", preflight_write_text, report));
        TRY(write_file(preflight->output, "preflight.json", preflight_write_json, report));
        TRY(write_file(preflight->output, "preflight.html", preflight_write_html, report));
    }
    return OK;
}

// Fails if a single rank was started without a launcher and has no hardware profile to compare with. Nothing would be
// judged, so a user who forgot the launcher would see a pass.
static status check_ranks(const struct preflight *preflight, const struct comm *comm)
{
    char profile[1400];
    bool has_profile = config_find_profile(&preflight->benchmark.job.config, profile, sizeof(profile));
    return comm->topology.ranks > 1 || has_profile || comm_launched_ranks() > 0
               ? OK
               : fail_as(EXIT_LAUNCH, "a preflight compares ranks, but there is only 1: launch it like the run, with "
                                      "srun or mpirun (mpirun -np 1 checks the numbers of one), or give --ranks");
}

status preflight_rank(const void *shared, struct comm *comm)
{
    const struct preflight *preflight = shared;
    struct preflight_report report    = {.ranks = NULL};
    status                  result    = check_ranks(preflight, comm);
    result                            = failed(&result) ? result : preflight_measure(&report, preflight, comm);
    result =
        failed(&result) ? result : comm_agree(comm, comm->topology.rank == 0 ? write_report(preflight, &report) : OK);
    if (!failed(&result)) {
        result.exit_code = (int)report.exit_code;
    }
    preflight_free(&report);
    return result;
}
