// SPDX-License-Identifier: MIT
// Compares the bytes that each parallel axis sends in a step with closed forms of the layout, for tiny models and for
// published layouts. Also tests the all-gathers of FSDP: when a rank gathers the weights of a block, and how long it
// keeps them.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/job.h"
#include "gswbench/verify.h"
#include "layouts.h"
#include "line.h"
#include "success.h"

// Elements that the ranks with coordinate 0 on every axis except pp send in a step, summed over pipeline stages.
struct moved {
    double rows;                 // activations gathered and reduced over tp, in the activation format
    double statistics;           // values that vocabulary-parallel cross entropy reduces over tp
    double keys, gradients;      // over cp: keys and values, and their gradients
    double sends, receives;      // activations and their gradients over pp
    double scattered, shared;    // over optimizer shards: gradients that are reduced, and weights that are gathered
};

// Returns the elements that a rank sends in a ring, which is the minimum for any algorithm: everything except the
// rank's own share.
static double given_away(const struct plan_communication *communication)
{
    double elements = (double)communication->elements * (double)communication->count;
    bool   is_share = communication->kind == OP_ALL_GATHER || communication->kind == OP_REDUCE_SCATTER;
    return is_share ? elements * (double)(communication->group_size - 1) / (double)communication->group_size : elements;
}

// Adds the elements of a communication to the sum of its axis. All-reduces, of gradients over replicas and of norms,
// are left out, since account_test checks them.
static void add_communication(struct moved *moved, const struct plan_communication *communication,
                              enum format activation)
{
    double elements         = communication->kind == OP_ALL_REDUCE ? 0 : given_away(communication);
    bool   is_low_precision = communication->format == activation;
    switch (communication->axes) {
    case 1 << AXIS_TP:
        *(is_low_precision ? &moved->rows : &moved->statistics) += elements;
        break;
    case 1 << AXIS_CP:
        *(is_low_precision && communication->kind != OP_REDUCE_SCATTER ? &moved->keys : &moved->gradients) += elements;
        break;
    case 1 << AXIS_PP:
        *(communication->kind == OP_SEND ? &moved->sends : &moved->receives) += elements;
        break;
    default:
        *(communication->kind == OP_REDUCE_SCATTER ? &moved->scattered : &moved->shared) += elements;
        break;
    }
}

static struct moved add_up(const struct plan_request *request)
{
    struct moved moved = {0};
    for (int64_t stage = 0; stage < request->mesh.size[AXIS_PP]; stage++) {
        struct plan_request own = *request;
        struct plan         plan;
        struct account      account;
        own.rank = mesh_rank(&request->mesh, (const int64_t[AXIS_COUNT]){[AXIS_PP] = stage});
        REQUIRE(plan_build(&plan, &own));
        plan_account(&plan, &account);
        for (int32_t i = 0; i < account.communication_count; i++) {
            add_communication(&moved, &account.communications[i], plan.precision.activation);
        }
        plan_free(&plan);
    }
    return moved;
}

static struct moved expected(const struct plan_request *request, int64_t microbatches)
{
    const struct parallel_config *axes  = &request->parallel;
    const struct model_config    *model = &request->model;
    double                        tp = (double)axes->tp, cp = (double)axes->cp,
           tokens = (double)(request->train.micro_batch * request->train.sequence) / cp;
    double layers = (double)model->layers * (double)microbatches, count = (double)microbatches;
    bool   again = request->train.recompute == RECOMPUTE_FULL;
    // The forward pass of a layer has two all-gathers before GEMMs and two reduce-scatters after. The backward pass has
    // the same, and gathers the inputs of two weight gradients: 10 together. Recompute repeats all of the forward pass
    // except its last reduce-scatter: 13. Embedding and head add one in each pass. A deferred weight gradient of the
    // head gathers its input again.
    double deferred = axes->pp > 1 ? fmin((double)axes->deferred_head_gradients, count) : 0;
    double passes   = layers * (again ? 13 : 10) + 4 * count + deferred;
    // In each of forward, backward and recompute, every block of keys and values visits the cp - 1 other ranks.
    double visits = layers * (again ? 3 : 2) * (cp - 1);
    double block  = tokens * 2 * (double)model->kv_heads / tp * (double)model->head_dim;
    // A ring passes gradients on until they are back at their own rank, in cp steps. A reduce-scatter needs cp - 1.
    bool   is_ring    = axes->context == CONTEXT_RING;
    double homecoming = cp == 1 ? 0 : layers * (is_ring ? cp : cp - 1);
    double boundaries = (double)(axes->pp * axes->vp - 1) * 2 * count;
    double residual   = tokens / tp * (double)model->hidden;
    return (struct moved){.rows       = passes * tokens * (double)model->hidden * (tp - 1) / tp,
                          .statistics = count * 3 * tokens * (tp - 1),
                          .keys       = visits * block,
                          .gradients  = homecoming * block,
                          .sends      = boundaries * residual,
                          .receives   = boundaries * residual};
}

static void expect_moved(const char *name, const char *what, double found, double right)
{
    cr_expect_float_eq(found, right, 1e-9 * right, "%s: %.17g %s, not %.17g", name, found, what, right);
}

static struct moved expect_closed_forms(const char *name, const struct plan_request *request, int64_t microbatches)
{
    struct moved found = add_up(request), right = expected(request, microbatches);
    expect_moved(name, "rows over tp", found.rows, right.rows);
    expect_moved(name, "statistics over tp", found.statistics, right.statistics);
    expect_moved(name, "keys over cp", found.keys, right.keys);
    expect_moved(name, "gradients over cp", found.gradients, right.gradients);
    expect_moved(name, "sends over pp", found.sends, right.sends);
    expect_moved(name, "receives over pp", found.receives, right.receives);
    return found;
}

Test(communications, are_those_of_the_layout)
{
    static const char *const rows[] = {
        "tp 2; accumulation 3",
        "tp 2; recompute full",
        "tp 4; tp_overlap yes; accumulation 2",
        "cp 2; accumulation 2",
        "cp 4; context ring; accumulation 2",
        "cp 4; context ring; recompute full",
        "pp 4; accumulation 6",
        "pp 2; vp 2; accumulation 4",
        "tp 2; cp 2; pp 2; vp 2; tp_overlap yes; context ring; accumulation 3; recompute full",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct plan_request request =
            layout_request(line_of("layers 4; kv_heads 4; compute bf16; context gather; %s", rows[i]));
        expect_closed_forms(rows[i], &request, request.train.accumulation);
    }
}

// In these published layouts, each rank must also reduce-scatter its parameters over dp x cp and gather them again,
// once per step. The expected values are computed by hand in units of 2^20 elements. For tp they are rows x (tp - 1) /
// tp x ((10 x layers + 4) x microbatches + deferred head gradients), with rows = tokens x hidden.
Test(communications, of_published_rows_are_those_of_their_layout, .timeout = 60)
{
    static const struct {
        const char *config;
        int64_t     ranks, microbatches;
        double      rows, keys, sends, parameters;
    } published[] = {
        {"llama3.1-70b", 64, 64, 32.0 * 3 / 4 * (804 * 64 + 22), 2.0 * 160 * 64, 8.0 * 38 * 64, 70.55e9},
        {"llama3.1-405b", 512, 64, 64.0 * 7 / 8 * (1264 * 64 + 50), 1.0 * 252 * 64, 8.0 * 126 * 64, 405.85e9},
        {"nemotron4-340b", 128, 16, 72.0 * 7 / 8 * (964 * 16 + 16), 0, 9.0 * 190 * 16, 341.03e9},
    };
    for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
        struct job job;
        layout_job(&job, published[i].config, published[i].ranks, "precision.compute=bf16");
        struct moved moved = expect_closed_forms(published[i].config, &job.request, published[i].microbatches);
        double       mebi  = 1 << 20,
               sharers     = (double)published[i].ranks / (double)(job.config.parallel.tp * job.config.parallel.pp);
        double share       = published[i].parameters / (double)job.config.parallel.tp * (sharers - 1) / sharers;
        cr_expect_float_eq(moved.rows, published[i].rows * mebi, 1);
        cr_expect_float_eq(moved.keys, published[i].keys * mebi, 1);
        cr_expect_float_eq(moved.sends, published[i].sends * mebi, 1);
        cr_expect_float_eq(moved.scattered, share, 1e-3 * share, "%.6g %.6g", moved.scattered, share);
        cr_expect_float_eq(moved.shared, moved.scattered, 1);
    }
}

// Returns the number of ranks in the reduction with this role, or 0 if there is none.
static int64_t ranks_of(const struct plan *plan, const char *role)
{
    int64_t ranks = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op_is_communication((enum op_kind)op->kind) && strcmp(op->tag.role, role) == 0) {
            cr_expect_eq(ranks, 0, "a second %s", role);
            ranks = plan->groups[op->shape.communication.group].size;
        }
    }
    return ranks;
}

// The last bits of a sum could differ if each replica reduced it in its own communicator. So one communicator must join
// all ranks, unless each rank has the whole sum already.
Test(communications, that_sum_loss_and_norm_join_all_ranks_or_none)
{
    static const struct {
        const char *layout;
        int64_t     ranks, loss, norm;
    } rows[] = {
        {"dp 4", 4, 4, 0},         {"dp 2; fsdp 2", 4, 4, 4},
        {"tp 2", 2, 0, 2},         {"dp 2; tp 2", 4, 4, 4},
        {"fsdp 2; tp 2", 4, 4, 4}, {"dp 2; pp 2", 4, 4, 4},
        {"tp 2; pp 2", 4, 4, 4},   {"dp 2; fsdp 2; tp 2; pp 2", 16, 16, 16},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int64_t rank = 0; rank < rows[i].ranks; rank++) {
            const struct plan *plan = tiny_plan_of(rows[i].layout, rank);
            cr_expect_eq(ranks_of(plan, "loss reduce"), rows[i].loss, "%s, rank %d", rows[i].layout, (int)rank);
            cr_expect_eq(ranks_of(plan, "gradient norm reduce"), rows[i].norm, "%s, rank %d", rows[i].layout,
                         (int)rank);
        }
    }
}

enum { LAYERS = 4 };

// Counts the all-gathers of a layer's weights among the ops before index `end`.
static int count_gathers(const struct plan *plan, int64_t layer, int32_t end)
{
    int count = 0;
    for (int32_t i = 0; i < end; i++) {
        count += plan->ops[i].kind == OP_ALL_GATHER && plan->ops[i].tag.layer == layer;
    }
    return count;
}

static int32_t first_op(const struct plan *plan, const char *role, int64_t layer)
{
    int32_t i = 0;
    while (i < plan->op_count && (plan->ops[i].tag.layer != layer || strcmp(plan->ops[i].tag.role, role) != 0)) {
        i++;
    }
    cr_assert_lt(i, plan->op_count, "no %s on layer %d", role, (int)layer);
    return i;
}

// Checks how often a step gathers the weights of each layer.
static void expect_gathers(const char *reshard, const int expected[LAYERS])
{
    const struct plan *plan = tiny_plan_of(line_of("layers 4; fsdp 2; reshard %s", reshard), 0);
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        int count = count_gathers(plan, layer, plan->op_count);
        cr_expect_eq(count, expected[layer], "reshard %s: layer %d is gathered %d times", reshard, (int)layer, count);
    }
}

Test(gather, is_done_again_in_the_backward_pass_for_all_blocks_but_those_that_stay)
{
    expect_gathers("always", (const int[]){2, 2, 2, 2});
    expect_gathers("except-last", (const int[]){2, 2, 2, 1});
    expect_gathers("never", (const int[]){1, 1, 1, 1});
}

// Checks how many all-gathers of each layer's weights are queued before layer 0 starts.
static void expect_ahead(const char *layout, const int expected[LAYERS])
{
    const struct plan *plan  = tiny_plan_of(line_of("layers 4; fsdp 2; %s", layout), 0);
    int32_t            begin = first_op(plan, "attention norm", 0);
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        int count = count_gathers(plan, layer, begin);
        cr_expect_eq(count, expected[layer], "%s: layer %d is gathered %d times", layout, (int)layer, count);
    }
}

Test(gather, begins_as_many_blocks_ahead_as_prefetch_says)
{
    expect_ahead("prefetch 0", (const int[]){1, 0, 0, 0});
    expect_ahead("prefetch 1", (const int[]){1, 1, 0, 0});
    expect_ahead("prefetch 2", (const int[]){1, 1, 1, 0});
}

// With weights stored in FP8, the linears of a block are a separate FSDP unit, so each block has two all-gathers.
Test(gather, of_weights_in_fp8_brings_whole_blocks_ahead)
{
    expect_ahead("compute fp8; recipe current; fp8_weights yes; prefetch 0", (const int[]){2, 0, 0, 0});
    expect_ahead("compute fp8; recipe current; fp8_weights yes; prefetch 1", (const int[]){2, 2, 0, 0});
    expect_ahead("compute fp8; recipe current; fp8_weights yes; prefetch 2", (const int[]){2, 2, 2, 0});
}
