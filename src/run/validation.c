// SPDX-License-Identifier: MIT
// Verifies the steps of a run with the checks of src/validate. Some steps run twice, to compare their numbers: all
// steps with verify = full. With verify = quick these are the first (cold device), the last (hot device) and two random
// ones. After the last step, the replicas of the weights are compared bitwise.
#include <stdlib.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/plan_build.h"
#include "gswbench/random.h"
#include "internal.h"

static const uint64_t repeated_steps_stream = UINT64_MAX - 2;

static enum run_verify verify_level(const struct steps *steps)
{
    return (enum run_verify)steps->benchmark->job.config.run.verify;
}

// Returns whether a step is one of two random steps: one from each half of the steps between the first and the last.
static bool is_drawn(const struct steps *steps, int64_t index)
{
    const struct run_config *run   = &steps->benchmark->job.config.run;
    uint64_t                 key   = random_key((uint64_t)run->seed, repeated_steps_stream);
    int64_t                  inner = run->steps - 2, half = inner / 2, first = -1, second = -1;
    if (half > 0) {
        first = 1 + random_below(key, 0, 0, (uint32_t)half);
    }
    if (inner > 0) {
        second = 1 + half + random_below(key, 0, 1, (uint32_t)(inner - half));
    }
    return index == first || index == second;
}

bool validation_repeats(const struct steps *steps, int64_t index)
{
    switch (verify_level(steps)) {
    case VERIFY_FULL:
        return true;
    case VERIFY_QUICK:
        return index == 0 || index == steps->result->planned_steps - 1 || is_drawn(steps, index);
    case VERIFY_LIGHT:
    case VERIFY_OFF:
        return false;
    }
    return false;
}

static void beat(void *context)
{
    watch_beat(context);
}

void validation_prepare(struct steps *steps, struct backend *backend)
{
    const struct validation_setup setup = {.plan         = steps->plan,
                                           .step         = steps->step,
                                           .comm         = steps->comm,
                                           .result       = steps->result,
                                           .fingerprint  = environment_fingerprint(backend),
                                           .is_full      = verify_level(steps) == VERIFY_FULL,
                                           .sample_bytes = VALIDATION_SAMPLE_BYTES,
                                           .beat         = beat,
                                           .context      = steps->hang_watch};
    if (!steps->result->computes) {
        return;
    }
    steps->validation = validation_open(&setup);
    if (verify_level(steps) != VERIFY_OFF) {
        int64_t repeated = 0;
        for (int64_t i = 0; i < steps->result->planned_steps; i++) {
            repeated += validation_repeats(steps, i);
        }
        steps->result->verification = validation_expect(&setup, backend->ops->is_device, repeated);
    }
}

// Starts a verification outside the timed steps: hides its ops from profilers, and turns the injected fault on if
// `step` has one. Returns the start time.
static double begin_verification(struct steps *steps, int64_t step, bool is_repetition)
{
    profile_watch(steps, false);
    fault_begin(steps, step, is_repetition);
    return clock_seconds();
}

static void end_verification(struct steps *steps, double began)
{
    step_set_fault(steps->step, NULL);
    profile_watch(steps, true);
    steps->result->verification.seconds += clock_seconds() - began;
}

bool validation_of_parts(struct steps *steps, int64_t step)
{
    if (steps->validation == NULL || verify_level(steps) == VERIFY_OFF) {
        return true;
    }
    double began    = begin_verification(steps, step, step >= 0);
    bool   has_ops  = step < 0 || verify_level(steps) == VERIFY_FULL;
    bool   is_right = (!has_ops || validation_test_ops(steps->validation, step)) &&
                    validation_test_communications(steps->validation, step);
    end_verification(steps, began);
    return is_right;
}

void validation_start(struct steps *steps, int64_t index)
{
    bool   repeats = validation_repeats(steps, index);
    double began   = 0;
    if (steps->validation == NULL) {
        return;
    }
    if (repeats) {
        watch_enter(steps->hang_watch, index == 0 ? WATCH_OPENING : WATCH_STEP, index);
        steps_fill(steps, index);
        began = begin_verification(steps, index, true);
    }
    validation_begin(steps->validation, index, repeats);
    if (repeats) {
        end_verification(steps, began);
    }
}

bool validation_end(struct steps *steps, int64_t index, bool is_finite)
{
    bool is_right = true;
    if (steps->validation == NULL || (is_finite && !validation_repeats(steps, index))) {
        return true;
    }
    watch_enter(steps->hang_watch, WATCH_STEP, index);
    double began = begin_verification(steps, index, true);
    if (is_finite) {
        is_right = validation_repeat(steps->validation, index);
    } else {
        validation_find(steps->validation, index);
        is_right = false;
    }
    end_verification(steps, began);
    watch_enter(steps->hang_watch, WATCH_BETWEEN, index);
    return is_right;
}

static void hash_tensor(const struct steps *steps, int32_t tensor, XXH3_state_t *state)
{
    if (tensor >= 0) {
        size_t bytes = (size_t)steps->plan->tensors[tensor].bytes;
        void  *data  = memory_allocate(bytes);
        step_read(steps->step, tensor, data);
        XXH3_64bits_update(state, data, bytes);
        free(data);
    }
}

// Hashes either the weights of experts or all other weights, because the two have different replica groups.
static uint64_t hash_weights(const struct steps *steps, bool of_experts)
{
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    for (int32_t i = 0; i < steps->plan->unit_count; i++) {
        const struct plan_unit *unit = &steps->plan->units[i];
        if (unit->is_experts == of_experts) {
            hash_tensor(steps, unit->weight, state);
            hash_tensor(steps, steps->plan->is_zero ? -1 : unit->master, state);
        }
    }
    hash_tensor(steps, of_experts ? -1 : steps->plan->router_bias, state);
    uint64_t hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

// Compares the weights of each replica group. Replicas apply the same gradients to the same weights, so a difference
// means that a rank computes wrongly.
static void compare_groups(struct result *result, const struct steps *steps, bool of_experts)
{
    struct comm       *comm = steps->comm;
    const struct mesh *mesh = &steps->plan->mesh;
    uint32_t           axes = mesh_replica_axes(mesh, of_experts);
    int64_t            size = mesh_group_size(mesh, axes);
    if (size == 1) {
        return;
    }
    uint64_t  own   = hash_weights(steps, of_experts);
    int64_t  *group = memory_allocate((size_t)size * sizeof(*group));
    uint64_t *all   = comm_gather(comm, &own, sizeof(own));
    for (int64_t first = 0; first < comm->topology.ranks; first++) {
        mesh_group_ranks(mesh, first, axes, group);
        if (group[0] == first) {
            bool is_equal = true;
            for (int64_t i = 1; i < size; i++) {
                is_equal &= all[group[i]] == all[first];
            }
            result->replica_groups++;
            result->replica_groups_equal += is_equal;
        }
    }
    free(all);
    free(group);
}

void replicas_compare(struct result *result, const struct steps *steps)
{
    if (!result->computes) {
        return;
    }
    if (steps->plan->is_zero) {
        step_gather_weights(steps->step);
    }
    compare_groups(result, steps, false);
    if (layers_with_experts(&steps->plan->model) > 0) {
        compare_groups(result, steps, true);
    }
}
