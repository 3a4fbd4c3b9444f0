// SPDX-License-Identifier: MIT
// Trains with ranks as threads.
#include "training.h"

#include "gswbench/clock.h"
#include "gswbench/fatal.h"
#include "ranks.h"

void training_require(status result)
{
    if (failed(&result)) {
        FATAL(EXIT_INTERNAL, "%s", result.text);
    }
}

// Reads the routing statistics of the first step: for each layer tokens per expert, the number of dropped token-expert
// pairs, and the auxiliary loss. In later steps rounding may have changed the experts of a token.
static void training_read_routing(struct training *training, struct step *step, const struct plan *plan, int i)
{
    if (i == 0 && plan->routing >= 0) {
        if (plan->tensors[plan->routing].elements > TRAINING_ROUTING_MAX) {
            FATAL(EXIT_INTERNAL, "too many experts for this test");
        }
        step_read(step, plan->routing, training->routing);
    }
}

static void training_read_prediction(struct training *training, struct step *step, const struct plan *plan, int i)
{
    training->prediction_loss[i] = 0;
    if (plan->prediction_loss >= 0) {
        step_read(step, plan->prediction_loss, &training->prediction_loss[i]);
    }
}

// Writes the initial weights, or loads the whole state of a checkpoint. Returns the number of the first step.
static int64_t begin(const struct training *training, const struct plan *plan, struct step *step)
{
    struct catalogue      *loaded;
    struct checkpoint_cost cost;
    if (training->load == NULL) {
        data_initialise(step, plan, training->seed);
        return 0;
    }
    training_require(checkpoint_open(&loaded, training->load, plan, true));
    int64_t first = checkpoint_origin(loaded)->step;
    data_initialise_state(step, plan);
    data_initialise_adapters(step, plan, training->seed);
    training_require(checkpoint_load(loaded, plan, step, &(struct checkpoint_watch){0}, &cost));
    step_make_weights(step);
    checkpoint_close(loaded);
    return first;
}

// Returns a number that is equal for ranks with the same rows of tokens. These ranks must choose the same experts.
static int64_t source_of(const struct plan *plan, bool sequence_parallel)
{
    int64_t coordinates[AXIS_COUNT], source = 0;
    mesh_coordinates(&plan->mesh, plan->rank, coordinates);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        bool is_shared = axis == AXIS_PP || (axis == AXIS_TP && !sequence_parallel);
        source         = is_shared ? source : source * plan->mesh.size[axis] + coordinates[axis];
    }
    return source;
}

// Sets router biases that determine the experts of each token, so that rounding cannot change them. A token's scores
// are at most 1, and scores of expert groups at most 2. Biases are powers of two from 4 on, so even sums of two biases
// differ by more. The preferred experts differ between layers.
static void decide_routing(const struct plan *plan, const struct step *step, int64_t source)
{
    enum { SPACING = 4, STRIDE = 3 };    // STRIDE: spreads the experts with the largest biases over ranks
    float   biases[TRAINING_ROUTING_MAX];
    int64_t experts = plan->model.experts, count = plan->tensors[plan->router_bias].elements;
    if (count > TRAINING_ROUTING_MAX) {
        FATAL(EXIT_INTERNAL, "too many experts for this test");
    }
    for (int64_t i = 0; i < count; i++) {
        biases[i] = (float)(SPACING << (STRIDE * i + i / experts + source) % experts);
    }
    step_write(step, plan->router_bias, biases);
}

static void end(struct training *training, const struct plan *plan, const struct step *step, struct comm *comm,
                int64_t steps)
{
    struct checkpoint_cost  cost;
    struct checkpoint_save *save;
    if (training->save != NULL) {
        training_require(checkpoint_save_begin(&save, plan, step, comm,
                                               &(struct checkpoint_target){.folder = training->save},
                                               &(struct checkpoint_origin){.step = steps, .data = "uniform"}));
        training_require(checkpoint_save_end(save, &cost));
    }
    if (training->weights != NULL) {
        struct output_folder folder = {.is_open = false};
        training_require(comm->topology.rank == 0 ? output_claim_folder(&folder, training->weights) : OK);
        training_require(checkpoint_write(plan, step, comm, &folder, &(struct checkpoint_watch){NULL, NULL, NULL}));
        output_close_folder(&folder);
    }
}

int64_t training_run_rank(struct training *training, struct comm *comm)
{
    struct tiny    tiny = training->tiny;
    int            rank = comm->topology.rank;
    struct backend backend;
    struct comm    connected;
    struct step   *step;
    fatal_set_rank(rank);
    tiny_plan_rank(&tiny, training->ranks, rank);
    backend = (struct backend){.ops = training->backend != NULL ? training->backend : &backend_host};
    training_require(backend.ops->open(
        &backend, &(struct backend_setup){.threads = training->threads, .is_deterministic = true, .cache = ""}));
    if (training->connect != NULL) {
        training_require(training->connect(&connected, comm, &backend));
    }
    training_require(step_prepare(&tiny.plan, &backend));
    training_require(step_open(&step, &tiny.plan, &backend, training->connect != NULL ? &connected : comm));
    if (training->checks) {
        step_check(step);
    }
    if (training->stalls) {
        step_time_stalls(step);
    }
    int64_t first = begin(training, &tiny.plan, step);
    if (training->decided && tiny.plan.router_bias >= 0) {
        decide_routing(&tiny.plan, step,
                       training->apart ? source_of(&tiny.plan, tiny.parallel.sequence_parallel != 0) : 0);
    }

    int64_t before = backend.allocations;
    for (int i = 0; i < training->steps; i++) {
        data_fill(step, &tiny.plan, training->data, training->seed, first + i);
        if (rank == 0 && i + 1 == training->steps) {
            step_trace(step, training->times);
        }
        double begin = clock_seconds();
        step_run(step);
        if (rank == 0) {
            training->step_seconds = clock_seconds() - begin;
            step_read(step, tiny.plan.loss, &training->loss[i]);
            step_read(step, tiny.plan.gradient_norm, &training->norm[i]);
            training_read_prediction(training, step, &tiny.plan, i);
            training_read_routing(training, step, &tiny.plan, i);
            training->device_seconds  = step_device_seconds(step);
            training->compute_seconds = step_compute_seconds(step);
        }
        if (i == 0 && training->captures && step_can_capture(step)) {
            training_require(step_capture(step));
        }
    }
    int64_t allocations = backend.allocations - before;
    for (int storage = 0; storage < STORAGE_COUNT && rank == 0; storage++) {
        training->storage_bytes[storage] = step_storage(step, (enum storage)storage).elements;
        training->planned_bytes[storage] = tiny.plan.storage_bytes[storage];
    }
    end(training, &tiny.plan, step, comm, first + training->steps);
    step_close(step);
    if (training->connect != NULL) {
        comm_close(&connected);
    }
    backend_close(&backend);
    plan_free(&tiny.plan);
    return allocations;
}

struct trained {
    struct training *training;
    int64_t          allocations[TRAINING_RANKS_MAX];
};

static void train(struct comm *comm, void *context)
{
    struct trained *trained                   = context;
    trained->allocations[comm->topology.rank] = training_run_rank(trained->training, comm);
}

void training_run(struct training *training)
{
    struct trained trained = {.training = training};
    ranks_run(training->ranks, train, &trained);
    training->allocations_in_steps = 0;
    for (int rank = 0; rank < training->ranks; rank++) {
        training->allocations_in_steps += trained.allocations[rank];
    }
}
