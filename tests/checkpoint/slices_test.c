// SPDX-License-Identifier: MIT
// Tests that names of slices can be parsed back, and that the slices that all ranks save cover every tensor exactly
// once.
#include "checkpoint/slices.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/checkpoint.h"
#include "layouts.h"
#include "line.h"

static void expect_name(const char *name, struct rectangle expected)
{
    char             tensor[SLICE_NAME_BYTES], again[SLICE_NAME_BYTES];
    struct rectangle at;
    int32_t          dims;
    cr_assert(slice_parse(name, tensor, &at, &dims), "%s", name);
    cr_expect_arr_eq(&at, &expected, sizeof(at), "%s", name);
    struct weight_part part = {.is_vector = dims == 1};
    strcpy(part.name, tensor);
    slice_name(&(struct slice){.part = &part, .at = at}, STATE_WEIGHT, again);
    cr_expect_str_eq(again, name);
}

Test(slices, have_names_that_are_read_back)
{
    expect_name("a.weight[0:4]", (struct rectangle){0, 1, 0, 4});
    expect_name("master.b[3:5,128:131]", (struct rectangle){3, 2, 128, 3});
    expect_name("[x][7:8,0:1]", (struct rectangle){7, 1, 0, 1});
}

Test(slices, refuse_what_is_no_name_of_theirs)
{
    static const char *const names[] = {"a",        "a[",
                                        "a[]",      "a[1]",
                                        "[0:1]",    "a[0:0]",
                                        "a[2:1]",   "a[0:1",
                                        "a[0:1]x",  "a[-1:1]",
                                        "a[+0:1]",  "a[0:1,]",
                                        "a[0:1,2]", "a[0:1,2:3,4:5]",
                                        "a[0: 1]",  "a[0:9999999999999999999]"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char             tensor[SLICE_NAME_BYTES];
        struct rectangle at;
        int32_t          dims;
        cr_expect_not(slice_parse(names[i], tensor, &at, &dims), "%s", names[i]);
    }
}

// For each element of the named weight, counts the ranks that save it.
static void count_saved(const char *layout, const char *name, int *counts, int64_t columns)
{
    for (int64_t rank = 0; rank < layout_request(layout).mesh.world; rank++) {
        const struct plan *plan = tiny_plan_of(layout, rank);
        for (int32_t u = 0; u < plan->unit_count; u++) {
            struct slice_list list = slices_owned(plan, &plan->units[u]);
            for (int64_t i = 0; i < list.count; i++) {
                const struct rectangle *at = &list.items[i].at;
                for (int64_t row = at->row; strcmp(list.items[i].part->name, name) == 0 && row < at->row + at->rows;
                     row++) {
                    for (int64_t column = at->column; column < at->column + at->columns; column++) {
                        counts[row * columns + column]++;
                    }
                }
            }
            free(list.items);
        }
    }
}

// A plan states the checkpoint bytes of its rank and of the whole job. The bytes of the ranks must add up to the bytes
// of the job.
Test(slices, add_up_to_the_bytes_that_a_plan_tells)
{
    static const char *const jobs[] = {"fsdp 4; compute bf16", "dp 2; tp 2; zero 1; pp 2; compute fp32; tied yes",
                                       "dp 4; ep 2; experts 4; top_k 2; compute bf16",
                                       "fsdp 2; compute fp8; recipe delayed; fp8_weights yes",
                                       "dp 4; ep 2; experts 4; top_k 2; zero 1; compute bf16; optimizer muon"};
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        const char *row = line_of(
            "layers 2; hidden 32; head_dim 16; ffn 64; heads 4; kv_heads 4; vocab 64; sequence 16; %s", jobs[i]);
        int64_t bytes = 0, whole = 0;
        for (int64_t rank = 0; rank < layout_request(row).mesh.world; rank++) {
            const struct plan *plan  = tiny_plan_of(row, rank);
            struct shard       shard = shard_describe(plan);
            bytes += shard.bytes;
            shard_free(&shard);
            whole = checkpoint_whole_bytes(plan);
        }
        cr_expect_eq(bytes, whole, "%s: %d bytes, not %d", jobs[i], (int)bytes, (int)whole);
    }
}

Test(slices, save_every_element_once_in_every_layout)
{
    static const char *const layouts[] = {"fsdp 1",
                                          "dp 3",
                                          "fsdp 4",
                                          "dp 2; fsdp 2",
                                          "dp 4; zero 1",
                                          "tp 4",
                                          "fsdp 2; tp 2",
                                          "dp 2; tp 2; zero 1",
                                          "dp 3; tp 2; zero 1; optimizer muon",
                                          "cp 2",
                                          "pp 2",
                                          "dp 2; fsdp 2; tp 2; pp 2"};
    static const struct {
        const char *name;
        int64_t     rows, columns;
    } parts[] = {{"model.embed_tokens.weight", 37, 16},
                 {"model.layers.1.mlp.down_proj.weight", 16, 20},
                 {"model.layers.0.self_attn.k_proj.weight", 16, 16},
                 {"model.norm.weight", 1, 16}};
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        for (size_t j = 0; j < sizeof(parts) / sizeof(parts[0]); j++) {
            int counts[1024] = {0};
            count_saved(
                line_of("layers 2; ffn 20; kv_heads 4; vocab 37; vocab_multiple 2; sequence 16; %s", layouts[i]),
                parts[j].name, counts, parts[j].columns);
            for (int64_t element = 0; element < parts[j].rows * parts[j].columns; element++) {
                cr_assert_eq(counts[element], 1, "%s: element %d of %s is saved %d times", layouts[i], (int)element,
                             parts[j].name, counts[element]);
            }
        }
    }
}
