// SPDX-License-Identifier: MIT
// One rank of a run: configuration, plan, backend, step; the timed loop; the result. Stages that can fail on one rank
// alone end in run_agree, so that no rank waits for one that has left.
#include "run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/account.h"
#include "gswbench/checkpoint.h"
#include "gswbench/data.h"
#include "gswbench/fatal.h"
#include "gswbench/plan.h"
#include "gswbench/report.h"
#include "gswbench/step.h"

struct rank {
    const struct run_shared *shared;
    struct comm             *comm;     // that it is started with, or nccl
    struct comm              nccl;     // ops is NULL unless it is open
    struct run_peer         *peers;    // [ranks]
    struct run_cores         cores;
    int64_t                  sharers;    // ranks that use this one's device
    struct plan              plan;
    struct backend           backend;    // ops is NULL until it is open
    struct step             *step;
    struct result            result;    // the job's on rank 0; elsewhere the steps alone are of use
    struct run_steps         steps;
    struct run_text          timeline;    // data is NULL: there is none
    char                     folder[2048];
};

static bool is_first(const struct rank *rank)
{
    return rank->comm->place.rank == 0;
}

status run_agree(struct comm *comm, status own)
{
    status *all    = memory_allocate((size_t)comm->place.ranks * sizeof(*all));
    status  result = OK;
    comm->ops->gather_all(comm, &own, all, sizeof(own));
    for (int rank = comm->place.ranks - 1; rank >= 0; rank--) {
        if (failed(&all[rank])) {
            result = rank == 0 ? all[rank] : fail_as(all[rank].exit_code, "rank %d: %.900s", rank, all[rank].text);
        }
    }
    free(all);
    return result;
}

static status open_plan(struct rank *rank)
{
    const struct config *config  = &rank->shared->job->config;
    struct plan_request  request = rank->shared->job->request;
    request.rank                 = rank->comm->place.rank;
    TRY(plan_build(&rank->plan, &request));
    int32_t findings;
    TRY(plan_verify(&rank->plan, &findings));
    return run_open_backend(&rank->backend, config, &rank->comm->place, rank->cores.threads);
}

static void add_warning(struct rank *rank)
{
    struct result_reason reason = {.verdict = VERDICT_VALID, .id = "tp-across-nodes", .rank = -1, .step = -1};
    if (job_warning(rank->shared->job, reason.message, sizeof(reason.message)) != NULL) {
        result_add_reason(&rank->result, &reason);
    }
}

static void add_oversubscription(struct rank *rank)
{
    const struct run_cores *cores = &rank->cores;
    if (cores->threads * cores->sharers > cores->cores) {
        struct result_reason reason = {.verdict = VERDICT_VALID, .id = "oversubscribed", .rank = -1, .step = -1};
        snprintf(reason.message, sizeof(reason.message),
                 "%" PRId64 " threads of %" PRId64 " rank%s share %" PRId64
                 " core%s of one machine: the times are no measure of them",
                 cores->threads * cores->sharers, cores->sharers, cores->sharers == 1 ? "" : "s", cores->cores,
                 cores->cores == 1 ? "" : "s");
        result_add_reason(&rank->result, &reason);
    }
}

// Figures of ranks that take turns on one device say nothing about it.
static void add_sharing(struct rank *rank)
{
    if (rank->sharers > 1) {
        struct result_reason reason = {.verdict = VERDICT_VALID, .id = "shared-device", .rank = -1, .step = -1};
        snprintf(reason.message, sizeof(reason.message),
                 "%" PRId64 " ranks share a device: the times are no measure of it", rank->sharers);
        result_add_reason(&rank->result, &reason);
        rank->result.peak = NAN;
        text_copy(rank->result.peak_source, sizeof(rank->result.peak_source), "ranks share a device");
    }
}

static void append_choice(struct rank *rank, const char *choice)
{
    char  *text = rank->result.device;
    size_t used = strlen(text);
    if (choice[0] != '\0') {
        snprintf(text + used, sizeof(rank->result.device) - used, " (%s)", choice);
    }
}

// "NVIDIA H200, ...", and why a better backend or communicator was not taken.
static void describe_backend(struct rank *rank)
{
    rank->backend.ops->describe(&rank->backend, rank->result.device, sizeof(rank->result.device));
    append_choice(rank, rank->backend.choice);
    append_choice(rank, rank->comm->choice);
}

// What is known before the first step; the output folders prove that they can be written.
static status open_result(struct rank *rank)
{
    struct result       *result  = &rank->result;
    const struct config *config  = &rank->shared->job->config;
    const char          *weights = rank->shared->arguments->weights_out;
    run_describe(result, rank->shared, rank->comm, &rank->backend);
    result_set_plan(result, &rank->plan, &config->published);
    if (is_first(rank)) {
        TRY(plan_hardware_flops(&rank->plan, &rank->shared->job->request, &result->flops_per_sequence[FLOPS_HARDWARE]));
    }
    result_reserve(result, config->run.steps, rank->comm->place.ranks,
                   rank->plan.model.experts > 0 ? rank->plan.model.layers : 0);
    result->allocated_bytes = rank->backend.allocated_bytes;
    describe_backend(rank);
    add_warning(rank);
    add_oversubscription(rank);
    run_check_places(result, rank->peers);
    run_check_profilers(result, rank->peers, rank->comm->place.ranks);
    add_sharing(rank);
    result_derive(result);
    if (!is_first(rank)) {
        return OK;
    }
    TRY(report_create_folder(result, config->run.output, rank->folder, sizeof(rank->folder)));
    if (weights != NULL) {
        TRY(checkpoint_create_folder(weights));
    }
    return report_write_bytes(rank->folder, "config.merged.ini", rank->shared->config_text, rank->shared->config_bytes);
}

static status check_graphs(const struct rank *rank)
{
    if (rank->shared->job->config.run.graphs != GRAPHS_ON || step_can_capture(rank->step)) {
        return OK;
    }
    return fail("[run] graphs = on: backend %s with communicator %s cannot capture a step; use auto or off",
                rank->backend.ops->name, rank->comm->ops->name);
}

static status prepare(struct rank *rank)
{
    const struct run_config *run  = &rank->shared->job->config.run;
    struct comm             *comm = rank->comm;
    TRY(run_meet(&rank->peers, rank->shared, comm));
    rank->cores = run_share_cores(rank->peers, &comm->place, run->threads);
    TRY(run_agree(comm, open_plan(rank)));
    TRY(run_agree(comm, run_share_devices(comm, &rank->backend, run->ranks_per_device, &rank->sharers)));
    TRY(run_connect(&rank->nccl, comm, &rank->backend, run, rank->sharers));
    if (rank->nccl.ops != NULL) {
        comm = rank->comm = &rank->nccl;
    }
    TRY(run_agree(comm, step_prepare(&rank->plan, &rank->backend)));
    TRY(run_agree(comm, step_open(&rank->step, &rank->plan, &rank->backend, comm)));
    TRY(run_agree(comm, check_graphs(rank)));
    return run_agree(rank->comm, open_result(rank));
}

static status measure(struct rank *rank)
{
    const struct run_arguments *arguments = rank->shared->arguments;
    const struct run_config    *run       = &rank->shared->job->config.run;
    bool                        prints    = is_first(rank) && !arguments->json && !arguments->quiet;
    TRY(run_agree(rank->comm, prints ? report_print(report_write_header, &rank->result) : OK));
    data_initialise(rank->step, &rank->plan, (uint64_t)run->seed);
    rank->steps = (struct run_steps){.shared      = rank->shared,
                                     .comm        = rank->comm,
                                     .plan        = &rank->plan,
                                     .backend     = &rank->backend,
                                     .step        = rank->step,
                                     .result      = &rank->result,
                                     .own_seconds = memory_allocate((size_t)run->steps * sizeof(double))};
    return run_agree(rank->comm, run_measure(&rank->steps));
}

static void hash_tensor(const struct rank *rank, int32_t tensor, XXH3_state_t *state)
{
    if (tensor >= 0) {
        size_t bytes = (size_t)rank->plan.tensors[tensor].bytes;
        void  *data  = memory_allocate(bytes);
        step_read(rank->step, tensor, data);
        XXH3_64bits_update(state, data, bytes);
        free(data);
    }
}

// Of the units that ep shares out, or of the others.
static uint64_t hash_weights(const struct rank *rank, bool of_experts)
{
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    for (int32_t i = 0; i < rank->plan.unit_count; i++) {
        const struct plan_unit *unit = &rank->plan.units[i];
        if (unit->is_experts == of_experts) {
            hash_tensor(rank, unit->weight, state);
            hash_tensor(rank, rank->plan.is_zero ? -1 : unit->master, state);
        }
    }
    uint64_t hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

// Replicas started from the same weights and applied the same gradients: their bits are equal, or a rank is broken.
static void compare_groups(struct rank *rank, bool of_experts)
{
    struct comm       *comm = rank->comm;
    const struct mesh *mesh = &rank->plan.mesh;
    uint32_t           axes = mesh_replica_axes(mesh, of_experts);
    int64_t            size = mesh_group_size(mesh, axes);
    if (size == 1) {
        return;
    }
    uint64_t  own   = hash_weights(rank, of_experts);
    uint64_t *all   = memory_allocate((size_t)comm->place.ranks * sizeof(*all));
    int64_t  *group = memory_allocate((size_t)size * sizeof(*group));
    comm->ops->gather_all(comm, &own, all, sizeof(own));
    for (int64_t first = 0; first < comm->place.ranks; first++) {
        mesh_group_ranks(mesh, first, axes, group);
        if (group[0] == first) {
            bool is_equal = true;
            for (int64_t i = 1; i < size; i++) {
                is_equal &= all[group[i]] == all[first];
            }
            rank->result.replica_groups++;
            rank->result.replica_groups_equal += is_equal;
        }
    }
    free(all);
    free(group);
}

static void compare_replicas(struct rank *rank)
{
    if (!rank->result.computes) {
        return;
    }
    if (rank->plan.is_zero) {
        step_gather_weights(rank->step);
    }
    compare_groups(rank, false);
    if (rank->plan.model.experts > 0) {
        compare_groups(rank, true);
    }
}

static void gather_ranks(struct rank *rank)
{
    const struct comm_place *place    = &rank->comm->place;
    struct result           *result   = &rank->result;
    struct result_rank       own      = {.rank                = place->rank,
                                         .node                = place->node,
                                         .local_rank          = place->local_rank,
                                         .threads             = rank->cores.threads,
                                         .allocated_bytes     = rank->backend.allocated_bytes,
                                         .clock_drift_seconds = rank->steps.clock_drift};
    int64_t                  measured = result->step_count - result->planned_warmup;
    struct statistics        statistics;
    text_copy(own.host, sizeof(own.host), place->host);
    statistics_compute(&statistics, rank->steps.own_seconds + result->planned_warmup, measured > 0 ? measured : 0);
    own.median_seconds = statistics.median;
    rank->comm->ops->gather_all(rank->comm, &own, result->ranks, sizeof(own));
    result->rank_count = place->ranks;
}

// Lines first: they are the result even where the files cannot be written.
static status write_result(const struct rank *rank)
{
    const struct run_arguments *arguments = rank->shared->arguments;
    const struct result        *result    = &rank->result;
    status printed = report_print(arguments->json ? report_write_json : report_write_result, result);
    TRY(report_write_files(rank->folder, result));
    if (rank->timeline.data != NULL) {
        TRY(report_write_bytes(rank->folder, "trace.json", rank->timeline.data, rank->timeline.bytes));
    }
    if (!failed(&printed) && !arguments->json) {
        printf("files: %s/\n", rank->folder);
    }
    return printed;
}

static status finish(struct rank *rank)
{
    struct comm   *comm    = rank->comm;
    struct result *result  = &rank->result;
    const char    *weights = rank->shared->arguments->weights_out;
    status         written = OK, kept = OK;
    gather_ranks(rank);
    compare_replicas(rank);
    if (weights != NULL) {    // before other steps change them
        kept = run_agree(comm, checkpoint_write(&rank->plan, rank->step, comm, weights));
    }
    if (result->step_count == result->planned_steps && rank->shared->job->config.profile.trace_steps > 0) {
        run_trace(&rank->steps, &rank->timeline);
    }
    if (is_first(rank)) {
        run_print_time(result->ended, sizeof(result->ended));
        result_check(result);
        result_derive(result);
        written = write_result(rank);
    }
    comm->ops->share(comm, &result->exit_code, sizeof(result->exit_code));
    TRY(run_agree(comm, written));
    TRY(kept);
    return (status){.exit_code = (int)result->exit_code};
}

static void release(struct rank *rank)
{
    free(rank->peers);
    free(rank->steps.own_seconds);
    free(rank->timeline.data);
    result_free(&rank->result);
    if (rank->step != NULL) {
        step_close(rank->step);
    }
    if (rank->nccl.ops != NULL) {
        comm_close(&rank->nccl);
    }
    if (rank->backend.ops != NULL) {
        backend_close(&rank->backend);
    }
    plan_free(&rank->plan);
}

static status run(struct rank *rank)
{
    TRY(prepare(rank));
    TRY(measure(rank));
    return finish(rank);
}

status run_rank(const void *shared, struct comm *comm)
{
    struct rank *rank = memory_allocate(sizeof(*rank));
    rank->shared      = shared;
    rank->comm        = comm;
    fatal_set_rank(comm->place.rank);
    run_catch_signals();
    status result = run(rank);
    release(rank);
    free(rank);
    return result;
}
