// SPDX-License-Identifier: MIT
// Declares the [parallel] options, and computes the device mesh that they describe.
#include "gswbench/mesh.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/text.h"

// clang-format off
static const char *const reshard_names[] = {
    [RESHARD_ALWAYS] = "always", [RESHARD_EXCEPT_LAST] = "except-last", [RESHARD_NEVER] = "never", NULL,
};

static const char *const context_names[] = {[CONTEXT_RING] = "ring", [CONTEXT_GATHER] = "gather",
                                            [CONTEXT_EXCHANGE] = "exchange", NULL};

static const char *const zero_gather_names[] = {
    [ZERO_GATHER_OPTIMIZER] = "optimizer", [ZERO_GATHER_FORWARD] = "forward", NULL,
};

static const char *const schedule_names[] = {
    [PIPELINE_1F1B] = "1f1b", [PIPELINE_ZERO_BUBBLE] = "zero-bubble", NULL,
};

static const char *const gradient_reduce_names[] = {
    [GRADIENT_REDUCE_STEP] = "step", [GRADIENT_REDUCE_MICROBATCH] = "microbatch", NULL,
};

#define AXIS_OPTION(NAME, key, option, maximum, help, ...) option(parallel_config, key, "1", 1, maximum, help),
const struct option parallel_options[] = {
    AXES(AXIS_OPTION)
    AUTO_OPTION(parallel_config, etp, "auto", 1, 1024, "ranks that shard each matrix of an expert: tp (auto) or 1; with 1, ep counts the tp ranks first and then the cp ranks, and tokens are not gathered over tp"),
    BOOLEAN_OPTION(parallel_config, ep_over_cp, "no", "cp > 1 and etp not 1: ep counts the cp ranks first, as in newer Megatron-LM"),
    INTEGER_OPTION(parallel_config, vp, "1", 1, 1024, "model chunks per pipeline stage (virtual pipeline, interleaved schedule)"),
    CHOICE_OPTION (parallel_config, schedule, "1f1b", schedule_names, "pp > 1: 1F1B (interleaved with vp > 1), or ZB-H1, which splits weight gradients off the backward pass and computes them where a stage would wait; the optimizer still waits for all stages"),
    BOOLEAN_OPTION(parallel_config, sequence_parallel, "yes", "tp > 1: shard norms and the residual stream over tp"),
    INTEGER_OPTION(parallel_config, zero, "0", 0, 1, "1: shard the optimizer over dp x cp (ZeRO-1)"),
    CHOICE_OPTION (parallel_config, zero_gather, "optimizer", zero_gather_names, "zero = 1: gather updated weights during the optimizer, or during the first forward pass of the next step"),
    CHOICE_OPTION (parallel_config, gradient_reduce, "step", gradient_reduce_names, "reduce gradients over dp x cp once per step, or after every microbatch, overlapped with its backward pass (DDP without no_sync); with microbatch and zero = 1, a rank keeps only the gradients that its optimizer reads"),
    INTEGER_OPTION(parallel_config, prefetch, "1", 0, 64, "fsdp > 1 or zero_gather = forward: FSDP units (the experts of a block, or all its other weights) gathered ahead of use"),
    CHOICE_OPTION (parallel_config, reshard, "always", reshard_names, "fsdp > 1: blocks whose gathered weights are freed after the forward pass and gathered again"),
    BOOLEAN_OPTION(parallel_config, shard_over_cp, "no", "cp > 1: shard weights, gradients and optimizer over fsdp x cp"),
    CHOICE_OPTION (parallel_config, context, "gather", context_names, "cp > 1: ring attention, all-gather of keys and values, or all-to-all between heads and positions (Ulysses)"),
    BOOLEAN_OPTION(parallel_config, tp_overlap, "no", "sequence_parallel = yes: split GEMMs to overlap them with the collectives of tp"),
    BOOLEAN_OPTION(parallel_config, tp_overlap_experts, "yes", "tp_overlap = yes: also split the GEMMs of experts"),
    BOOLEAN_OPTION(parallel_config, layers_per_chunk_embedding, "no", "embedding and loss each count as one layer when layers are assigned to pipeline chunks"),
    AUTO_OPTION   (parallel_config, last_chunk_layers, "auto", 1, 4096, "layers of the last pipeline chunk, not counting the loss and MTP modules; the chunks before it share the other layers"),
    INTEGER_OPTION(parallel_config, deferred_head_gradients, "0", 0, 1048576, "pp > 1: microbatches whose weight gradient of the output layer is deferred until the last stage has finished its backward passes"),
    END_OPTIONS
};
// clang-format on

// Returns the error for an axis whose size does not divide the remaining ranks. It lists their divisors, such as "1, 2,
// 4".
static status cannot_divide(enum axis axis, int64_t size, int64_t ranks, int64_t world)
{
    struct text_buffer allowed = {0};
    status             error;
    for (int64_t divisor = 1; divisor <= ranks; divisor++) {
        if (ranks % divisor == 0) {
            text_append(&allowed, "%s%" PRId64, divisor == 1 ? "" : ", ", divisor);
        }
    }
    if (ranks == world) {
        error = fail("[parallel] %s = %" PRId64 " does not divide %" PRId64 " rank%s (allowed: %s)",
                     axis_rows[axis].name, size, world, world == 1 ? "" : "s", allowed.text);
    } else {
        error = fail("[parallel] %s = %" PRId64 " does not divide the remaining %" PRId64 " of %" PRId64
                     " ranks (allowed: %s)",
                     axis_rows[axis].name, size, ranks, world, allowed.text);
    }
    text_free(&allowed);
    return error;
}

// Returns the axis that this axis takes its ranks from, such as dp for ep: the first candidate with more than one rank,
// else the last candidate. An axis without candidates is its own parent.
static enum axis parent_axis(const struct mesh *mesh, enum axis axis)
{
    enum axis parent = axis;
    for (int other = 0; other < AXIS_COUNT && (parent == axis || mesh->asked[parent] == 1); other++) {
        parent = (axis_rows[axis].within >> other & 1u) != 0 ? (enum axis)other : parent;
    }
    return parent;
}

// Adds cp to the expert-parallel group (ep_over_cp = yes). The group then has the cp ranks before ranks of fsdp or dp.
// Experts stay sharded over tp.
static status choose_owners_over_cp(struct mesh *mesh, int64_t ep)
{
    int64_t cp = mesh->size[AXIS_CP];
    FAIL_IF(mesh->etp != mesh->size[AXIS_TP], "[parallel] ep_over_cp = yes has no effect with etp = 1, where ep counts "
                                              "the tp ranks and then the cp ranks: set ep_over_cp = no");
    FAIL_IF(ep % cp != 0,
            "[parallel] ep = %" PRId64 " with ep_over_cp = yes: allowed are cp = %" PRId64
            " and its multiples, since ep counts the cp ranks first, then fsdp or dp",
            ep, cp);
    mesh->owner_axes |= 1u << AXIS_CP;
    return OK;
}

// Chooses the axes of the expert-parallel group. With etp = 1, experts are not sharded over tp, and ep takes the ranks
// of tp first, then of cp, then of fsdp or dp, as in Megatron-LM.
static status choose_owners(struct mesh *mesh, const struct parallel_config *config)
{
    int64_t tp = mesh->size[AXIS_TP], cp = mesh->size[AXIS_CP], ep = mesh_asked(config, AXIS_EP);
    mesh->etp        = config->etp == 0 ? tp : config->etp;
    mesh->owner_axes = axis_sharing(AXIS_SHARES_EXPERTS);
    if (config->ep_over_cp && cp > 1 && ep > 1) {
        return choose_owners_over_cp(mesh, ep);
    }
    if (mesh->etp == tp) {
        return OK;
    }
    FAIL_IF(mesh->etp != 1,
            "[parallel] etp = %" PRId64 " with tp = %" PRId64 ": allowed are 1 (each expert on one rank) and %" PRId64
            " (auto: its matrices sharded over tp)",
            mesh->etp, tp, tp);
    FAIL_IF(!config->sequence_parallel,
            "[parallel] etp = 1 with tp = %" PRId64
            " needs sequence_parallel = yes: each tp rank sends its own tokens to experts",
            tp);
    mesh->owner_axes |= 1u << AXIS_TP | (cp > 1 && ep != tp ? 1u << AXIS_CP : 0);
    if (ep % mesh_group_size(mesh, mesh->owner_axes) != 0) {
        char more[64] = " and its multiples";
        if (cp > 1) {
            snprintf(more, sizeof(more), " and multiples of tp x cp = %" PRId64, tp * cp);
        }
        return fail("[parallel] ep = %" PRId64 " with etp = 1: allowed are tp = %" PRId64
                    "%s, since ep counts the tp ranks first, then cp, then fsdp or dp",
                    ep, tp, more);
    }
    return OK;
}

// Takes the ranks of `axis` from its parent axis: ep = 2 makes dp = 8 into dp = 4 and ep = 2. If the expert-parallel
// group contains tp or cp, ep is divided by their sizes first.
static status split(struct mesh *mesh, enum axis axis, int64_t asked)
{
    enum axis from  = parent_axis(mesh, axis);
    bool      owns  = (mesh->owner_axes >> axis & 1u) != 0;
    int64_t   among = owns ? mesh_group_size(mesh, mesh->owner_axes) : 1, size = asked / among;
    if (mesh->size[from] % size != 0) {
        char shared[96] = "";
        if (among > 1) {
            snprintf(shared, sizeof(shared), " over the %" PRId64 " ranks of %s leaves %" PRId64 ", which", among,
                     (mesh->owner_axes >> AXIS_TP & 1u) == 0   ? "cp"
                     : (mesh->owner_axes >> AXIS_CP & 1u) != 0 ? "tp x cp"
                                                               : "tp",
                     size);
        }
        return fail("[parallel] %s = %" PRId64 "%s does not divide %s = %" PRId64, axis_rows[axis].name, asked, shared,
                    axis_rows[from].name, mesh->size[from]);
    }
    mesh->size[from] /= size;
    mesh->size[axis]  = size;
    mesh->asked[axis] = asked;
    return OK;
}

static status split_within(struct mesh *mesh, const struct parallel_config *config)
{
    TRY(choose_owners(mesh, config));
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (axis_rows[axis].within != 0) {
            TRY(split(mesh, (enum axis)axis, mesh_asked(config, (enum axis)axis)));
        }
    }
    return OK;
}

// Splits axes such as ep off their parent axes, and checks rules that concern several options.
static status check_rules(struct mesh *mesh, const struct parallel_config *config)
{
    status errors = split_within(mesh, config);
    if (mesh->vp > 1 && mesh->size[AXIS_PP] == 1) {
        status_add(&errors, fail("[parallel] vp = %" PRId64 " needs pp > 1", mesh->vp));
    }
    if (mesh->size[AXIS_TP] > 1 && config->tp_overlap && !config->sequence_parallel) {
        status_add(&errors, fail("[parallel] tp_overlap = yes needs sequence_parallel = yes: it overlaps the "
                                 "collectives of sequence parallelism"));
    }
    return errors;
}

// Checks that the axes use all ranks. If an axis is auto, it gets the remaining ranks.
static status tile(struct mesh *mesh, int64_t world)
{
    int64_t left   = world;
    int     spread = -1;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        int64_t size = mesh->size[axis];
        if (size == 0) {
            spread = axis;
        } else if (left % size != 0) {
            return cannot_divide((enum axis)axis, size, left, world);
        } else {
            left /= size;
        }
    }
    if (spread >= 0) {
        mesh->size[spread] = left;
    } else if (left != 1) {
        return fail("[parallel] the axes use %" PRId64 " of %" PRId64 " ranks (dp = %" PRId64 ", or auto, uses all)",
                    world / left, world, mesh->size[AXIS_DP] * left);
    }
    return OK;
}

int64_t mesh_asked(const struct parallel_config *config, enum axis axis)
{
    return *(const int64_t *)(const void *)((const char *)config + axis_rows[axis].field);
}

void mesh_ask(struct parallel_config *config, enum axis axis, int64_t size)
{
    *(int64_t *)(void *)((char *)config + axis_rows[axis].field) = size;
}

bool mesh_has_auto(const struct parallel_config *config)
{
    bool has_auto = false;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        has_auto |= mesh_asked(config, (enum axis)axis) == 0;
    }
    return has_auto;
}

int64_t mesh_asked_ranks(const struct parallel_config *config, uint32_t axes)
{
    int64_t ranks = 1;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        int64_t size     = mesh_asked(config, (enum axis)axis);
        bool    is_among = (axes >> axis & 1u) != 0 && axis_rows[axis].within == 0;
        ranks *= is_among && size > 0 ? size : 1;
    }
    return ranks;
}

status mesh_init(struct mesh *mesh, const struct parallel_config *config, int64_t world)
{
    *mesh      = (struct mesh){.world          = world == 0 ? mesh_asked_ranks(config, MESH_ALL_AXES) : world,
                               .vp             = config->vp,
                               .shards_over_cp = config->shard_over_cp != 0};
    int spread = -1;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        mesh->size[axis] = axis_rows[axis].within != 0 ? 1 : mesh_asked(config, (enum axis)axis);
        FAIL_IF(mesh->size[axis] == 0 && spread >= 0, "[parallel] %s = auto and %s = auto: only one axis can be auto",
                axis_rows[spread].name, axis_rows[axis].name);
        spread = mesh->size[axis] == 0 ? axis : spread;
    }
    TRY(tile(mesh, mesh->world));
    memcpy(mesh->asked, mesh->size, sizeof(mesh->asked));
    mesh->delays_weights = config->schedule == PIPELINE_ZERO_BUBBLE && mesh->size[AXIS_PP] > 1;
    return check_rules(mesh, config);
}

void mesh_resolve(struct parallel_config *config, const struct mesh *mesh)
{
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        mesh_ask(config, (enum axis)axis, mesh->asked[axis]);
    }
    config->etp = mesh_has_whole_experts(mesh) ? 1 : 0;
}

bool mesh_has_whole_experts(const struct mesh *mesh)
{
    return mesh->etp == 1 && mesh->asked[AXIS_TP] > 1;
}

// An axis that takes its ranks from an axis with sharded weights, as ep does from fsdp, shards the weights as well.
uint32_t mesh_shard_axes(const struct mesh *mesh, bool of_experts)
{
    uint32_t axes = axis_sharing(AXIS_SHARES_WEIGHTS) | (mesh->shards_over_cp ? 1u << AXIS_CP : 0);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        axes |= (axes >> parent_axis(mesh, (enum axis)axis) & 1u) << axis;
    }
    return axes & ~(of_experts ? mesh->owner_axes : 0);
}

uint32_t mesh_replica_axes(const struct mesh *mesh, bool of_experts)
{
    uint32_t others = mesh_shard_axes(mesh, of_experts) | (of_experts ? mesh->owner_axes : 0);
    return axis_sharing(AXIS_SHARES_TOKENS) & ~others;
}

bool mesh_is_sharded(const struct mesh *mesh)
{
    return mesh_group_size(mesh, mesh_shard_axes(mesh, false)) > 1;
}
