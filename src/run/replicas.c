// SPDX-License-Identifier: MIT
// Compares replicas of the weights bitwise after the last step.
#include <stdlib.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/layers.h"
#include "internal.h"

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

// Hashes expert weights, or all others: their replica groups differ.
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

// Replicas apply the same gradients to the same weights, so a difference means a broken rank.
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
