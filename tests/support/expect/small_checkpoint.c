// SPDX-License-Identifier: MIT
// The folder of the test, and the plan for its weights.
#include "small_checkpoint.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "meshes.h"

static char path[128];

char weights_folder[64];

const char *in_folder(const char *name)
{
    snprintf(path, sizeof(path), "%s/%s", weights_folder, name);
    return path;
}

void make_base(void)
{
    make_folder();
    snprintf(weights_folder, sizeof(weights_folder), "%s/weights", folder);
}

// The one parameter group has 32 elements: a norm of 4, and from element 8 on a matrix. Its rows are q [3, 4], k [2, 4]
// and a row of padding.
struct tensor small_tensors[] = {{.format = FORMAT_F32, .elements = 32}, {.format = FORMAT_F32, .elements = 32}};
#define PART(name_, rows_, ...)                                                                                        \
    {                                                                                                                  \
        .name = name_, .rows = rows_, .columns = 4, .local_rows = rows_, .local_columns = 4, __VA_ARGS__               \
    }
struct weight small_weights[] = {
    {.rows       = 1,
     .columns    = 4,
     .part_count = 1,
     .part       = {PART("model.norm.weight", 1, .is_vector = true, .constant = 1)}},
    {.first      = 8,
     .rows       = 6,
     .columns    = 4,
     .part_count = 2,
     .part       = {PART("q_proj.weight", 3, .stream = 5, .deviation = 0.02f),
                    PART("k_proj.weight", 2, .stream = 6, .deviation = 0.02f, .offset = 12)}},
};
struct plan_unit small_unit = {
    .elements = 32, .weight_count = 2, .kept = {0, 32}, .updated = {0, 32}, .weight = 0, .master = -1};
const struct plan small_plan = {
    .tensors      = small_tensors,
    .weights      = small_weights,
    .weight_count = 2,
    .units        = &small_unit,
    .unit_count   = 1,
    .is_zero      = false,
    .router_bias  = -1,
    .mesh         = MESH_OF_ONE_RANK,
    .train        = {.sequence = 64},
    .model        = {.family       = "llama",
                     .layers       = 2,
                     .hidden       = 4,
                     .heads        = 3,
                     .kv_heads     = 1,
                     .head_dim     = 2,
                     .ffn          = 8,
                     .vocab        = 10,
                     .norm_epsilon = 1e-5,
                     .rope_theta   = 500000,
                     .rope_scaling = 8,
                     .tied         = 1},
};
