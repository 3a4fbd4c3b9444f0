// SPDX-License-Identifier: MIT
// Tests models with different kinds of layers: each layer has its own weights, parameter groups and routing.
// model_layouts_test.c trains such models.
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "folder.h"
#include "gswbench/plan_build.h"
#include "layouts.h"

#define MIXED                                                                                                          \
    "layers 3; experts 4; top_k 2; auxiliary_loss 0.05; ffn 20; expert_ffn 12; kv_heads 4; capacity_scope sequence; "  \
    "sequence 16; pattern "

static const struct weight *find_weight(const struct plan *plan, const char *name)
{
    for (int32_t w = 0; w < plan->weight_count; w++) {
        for (int32_t part = 0; part < plan->weights[w].part_count; part++) {
            if (strcmp(plan->weights[w].part[part].name, name) == 0) {
                return &plan->weights[w];
            }
        }
    }
    return NULL;
}

Test(mixed_layers, have_the_weights_of_what_they_are)
{
    const struct plan *plan = tiny_plan_of(MIXED "dense, experts, dense", 0);
    const struct {
        const char *name;
        int64_t     rows, columns;    // 0: the model has no such weight
    } cases[] = {
        {"model.layers.0.mlp.up_proj.weight", 20, 16},
        {"model.layers.0.mlp.down_proj.weight", 16, 20},
        {"model.layers.0.block_sparse_moe.gate.weight", 0, 0},
        {"model.layers.1.mlp.up_proj.weight", 0, 0},
        {"model.layers.1.block_sparse_moe.gate.weight", 4, 16},
        {"model.layers.1.block_sparse_moe.experts.3.w3.weight", 12, 16},
        {"model.layers.1.block_sparse_moe.experts.3.w2.weight", 16, 12},
        {"model.layers.2.mlp.gate_proj.weight", 20, 16},
        {"model.layers.2.block_sparse_moe.experts.0.w1.weight", 0, 0},
        {"model.layers.2.post_attention_layernorm.weight", 1, 16},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct weight *weight = find_weight(plan, cases[i].name);
        cr_expect_eq(weight != NULL, cases[i].rows > 0, "%s", cases[i].name);
        for (int part = 0; weight != NULL && part < weight->part_count; part++) {
            cr_expect_eq(weight->part[part].rows, cases[i].rows, "%s", cases[i].name);
            cr_expect_eq(weight->part[part].columns, cases[i].columns, "%s", cases[i].name);
        }
    }
    int64_t elements = 0;
    for (int32_t w = 0; w < plan->weight_count; w++) {
        for (int32_t part = 0; part < plan->weights[w].part_count; part++) {
            elements += plan->weights[w].part[part].rows * plan->weights[w].part[part].columns;
        }
    }
    cr_expect_eq(elements, layers_parameters(&plan->model));
}

// The parameter groups are the embedding, three blocks, the experts of one block, and the head.
Test(mixed_layers, have_units_and_routing_only_where_there_are_experts)
{
    const struct plan   *plan     = tiny_plan_of(MIXED "dense, experts, dense", 0);
    static const int64_t places[] = {0, 1, 2, 5, 3, 4};
    cr_assert_eq(plan->unit_count, 6);
    for (int32_t unit = 0; unit < 6; unit++) {
        cr_expect_eq(plan->units[unit].place, places[unit], "unit %d", unit);
        cr_expect_eq(plan->units[unit].is_experts, unit == 3, "unit %d", unit);
    }
    cr_expect_eq(plan->tensors[plan->routing].dim[0], 1);
    cr_expect_eq(plan->tensors[plan->routing].dim[1], 4 + 2);
}

// No two weights may start with the same random numbers.
Test(mixed_layers, draw_each_weight_from_a_stream_of_its_own)
{
    const struct plan *plan = tiny_plan_of(MIXED "dense, 2 x experts", 0);
    int64_t            streams[64];
    int                count = 0;
    for (int32_t w = 0; w < plan->weight_count; w++) {
        for (int32_t part = 0; part < plan->weights[w].part_count; part++) {
            for (int i = 0; i < count; i++) {
                cr_expect_neq(streams[i], plan->weights[w].part[part].stream, "%s", plan->weights[w].part[part].name);
            }
            streams[count++] = plan->weights[w].part[part].stream;
        }
    }
    cr_expect_eq(count, 3 + 3 * 6 + 3 + 2 * (1 + 4 * 3));
}

Test(mixed_layers, report_the_load_of_the_layers_that_have_experts, .timeout = 60)
{
    make_folder();
    const char *line = line_of(
        "run --config tiny-llama --backend host --steps 2 --warmup 1 --json --out %s --set model.family=gswbench "
        "--set model.pattern=dense,experts,dense,experts --set model.experts=4 --set model.top_k=2",
        folder);
    expect_success(line);
    json_t *document = json_loads(output, 0, NULL), *load = json_object_get(document, "expert_load");
    cr_assert_eq(json_array_size(load), 2);
    cr_expect_eq(json_integer_value(json_object_get(json_array_get(load, 0), "layer")), 1);
    cr_expect_eq(json_integer_value(json_object_get(json_array_get(load, 1), "layer")), 3);
    json_decref(document);
    remove_folder();
}
