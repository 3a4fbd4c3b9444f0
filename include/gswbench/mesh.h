// SPDX-License-Identifier: MIT
// Declares the device mesh: the parallel axes, the coordinates of ranks, and the groups of ranks along axes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gswbench/option.h"
#include "gswbench/status.h"

// The macro AXES has one row per parallel axis. Options, sweeps, layouts in text and JSON, comparisons, waterfall parts
// and machine checks are generated from these rows.

// The axes in rank order: ranks that differ only on the first axis are adjacent.
enum axis { AXIS_TP, AXIS_CP, AXIS_EP, AXIS_FSDP, AXIS_DP, AXIS_PP, AXIS_COUNT };

// The sizes that gswbench predict --sweep tries on an axis.
enum axis_values {
    AXIS_OVER_RANKS,      // divisors of the number of ranks
    AXIS_OVER_NODE,       // divisors of the number of ranks, up to an NVLink domain
    AXIS_OVER_LAYERS,     // divisors of the number of ranks, up to the number of layers
    AXIS_OVER_EXPERTS,    // divisors of the number of experts
    AXIS_REST             // one size: the remaining ranks
};

// How the work is sharded along an axis. The values are bits of a mask.
enum axis_share {
    AXIS_SHARES_SEQUENCES = 1,     // each rank has some sequences of a step
    AXIS_SHARES_POSITIONS = 2,     // each rank has some positions of every sequence
    AXIS_SHARES_WEIGHTS   = 4,     // each rank keeps a shard of the weights and gathers them before use
    AXIS_SHARES_MATRICES  = 8,     // each rank computes with its part of every matrix
    AXIS_SHARES_EXPERTS   = 16,    // each rank has some of the experts
    AXIS_SHARES_LAYERS    = 32,    // each rank has some of the layers
    AXIS_SHARES_TOKENS    = AXIS_SHARES_SEQUENCES | AXIS_SHARES_POSITIONS,
};

// clang-format off
// AXIS(NAME, key in [parallel], option type, maximum, help, fields of struct axis_row), in the order of options, JSON
// and waterfalls.
#define AXES(AXIS) \
    AXIS(DP, dp, AUTO_OPTION, 65536, \
         "data-parallel replicas; auto (on one axis only): all remaining ranks", \
         .values = AXIS_REST, .shown = 1, .claim = 1, .shares = AXIS_SHARES_SEQUENCES) \
    AXIS(FSDP, fsdp, AUTO_OPTION, 65536, \
         "ranks that shard weights, gradients and optimizer state; with dp > 1 this is HSDP", \
         .values = AXIS_OVER_RANKS, .shown = 0, .claim = 0, .shares = AXIS_SHARES_SEQUENCES | AXIS_SHARES_WEIGHTS) \
    AXIS(TP, tp, AUTO_OPTION, 1024, \
         "tensor-parallel ranks; they shard each weight matrix", \
         .values = AXIS_OVER_NODE, .shown = 2, .claim = 4, .shares = AXIS_SHARES_MATRICES, .stays_in_node = true, \
         .divides = {"model.heads", "model.ffn", "model.shared_ffn", "model.mamba_groups"}, .meets = "model.kv_heads") \
    AXIS(CP, cp, AUTO_OPTION, 1024, \
         "context-parallel ranks; each has two chunks of every sequence, which balances causal attention", \
         .values = AXIS_OVER_NODE, .shown = 3, .claim = 3, .shares = AXIS_SHARES_POSITIONS, .pieces = 2, \
         .divides = {"train.sequence"}) \
    AXIS(EP, ep, INTEGER_OPTION, 1024, \
         "expert-parallel ranks, taken from the data-parallel ranks; with etp = 1 from the tp and cp ranks first", \
         .values = AXIS_OVER_EXPERTS, .shown = 4, .claim = 2, .shares = AXIS_SHARES_SEQUENCES | AXIS_SHARES_EXPERTS, \
         .within = 1 << AXIS_FSDP | 1 << AXIS_DP, .divides = {"model.experts"}) \
    AXIS(PP, pp, AUTO_OPTION, 1024, \
         "pipeline stages", \
         .values = AXIS_OVER_LAYERS, .shown = 5, .claim = 5, .shares = AXIS_SHARES_LAYERS)
// clang-format on

enum { AXIS_DIVIDES = 4 };
struct axis_row {
    const char      *name;      // also the key in [parallel] and JSON
    size_t           field;     // offset in struct parallel_config
    enum axis_values values;    // sizes that a sweep tries
    int              shown;     // position in the layout text: "fsdp 128 dp 4"
    int              claim;     // exposed communication over several axes counts for the axis with the lowest claim
    uint32_t         shares;    // mask of enum axis_share
    bool             stays_in_node;    // every layer communicates along the axis: needs the links within a node
    uint32_t         within;    // mask of 1 << axis: takes its ranks from the first of these axes with several ranks
    const char      *divides[AXIS_DIVIDES];    // "section.key" of numbers that must be multiples of pieces * size
    const char      *meets;     // "section.key" of a number that size must divide, or vice versa; or NULL
    int64_t          pieces;    // chunks per rank of each number in `divides`: 2 for cp; 0: one
};
extern const struct axis_row axis_rows[AXIS_COUNT];

// axis_listed has the axes in the order of AXES. axis_shown returns the axis at a position of the layout text.
extern const enum axis axis_listed[AXIS_COUNT];
enum axis              axis_shown(int place);

// Returns a mask of the axes (1 << axis) that have at least one of these shares (enum axis_share).
uint32_t axis_sharing(uint32_t shares);

// Formats a mask of axes (1 << AXIS_DP | ...) as "fsdp x dp", or MESH_HEAD_COPIES (below) as "copies". Returns text.
const char *axis_names(uint32_t axes, char *text, size_t bytes);

// Returns the axis that exposed communication over these axes (1 << AXIS_DP | ...) counts for; AXIS_COUNT without axes.
enum axis axis_claims(uint32_t axes);

// Whether FSDP frees weights between the forward and the backward pass: always, except in the last layer, or never.
enum reshard { RESHARD_ALWAYS, RESHARD_EXCEPT_LAST, RESHARD_NEVER };

// How the ranks of cp exchange keys and values: blockwise around a ring during attention, by an all-gather before it,
// or by an all-to-all that gives each rank some heads at all positions (Ulysses).
enum context { CONTEXT_RING, CONTEXT_GATHER, CONTEXT_EXCHANGE };

// When ranks that shard the optimizer (ZeRO-1) gather weights: after the update of each FSDP unit, or in the next step
// before its first use. In the second case a rank's weights outside its own slice are stale between steps.
enum zero_gather { ZERO_GATHER_OPTIMIZER, ZERO_GATHER_FORWARD };

// When gradients are reduced over replicas: after the last microbatch of a step, or after each microbatch.
enum gradient_reduce { GRADIENT_REDUCE_STEP, GRADIENT_REDUCE_MICROBATCH };

// The order of passes in a pipeline: 1F1B, or ZB-H1, which runs weight gradients while a stage would wait.
enum pipeline_schedule { PIPELINE_1F1B, PIPELINE_ZERO_BUBBLE };

// Options of [parallel]. parallel_options in src/layout/mesh.c explains each. "auto" of an integer is stored as its
// minimum - 1, here 0.
struct parallel_config {
// clang-format off
#define AXIS_FIELD(NAME, key, ...) int64_t key;    // auto: the remaining ranks; one axis at most
    AXES(AXIS_FIELD)
    // clang-format on
    int64_t etp;    // ranks that shard each matrix of an expert: 1, or all of tp (auto)
    int64_t ep_over_cp, vp, sequence_parallel, zero, prefetch, shard_over_cp, tp_overlap, tp_overlap_experts;
    int64_t schedule, zero_gather, gradient_reduce, reshard, context;    // values of the enums above
    int64_t layers_per_chunk_embedding, last_chunk_layers, deferred_head_gradients;
};
extern const struct option parallel_options[];

struct mesh {
    int64_t world;
    int64_t size[AXIS_COUNT];    // the product is world
    // Sizes as in [parallel]: ep is the whole expert-parallel group, and fsdp or dp includes it. size[AXIS_EP] has only
    // the factor of ep that comes from fsdp or dp, and the size of that axis is divided by this factor.
    int64_t  asked[AXIS_COUNT];
    bool     shards_over_cp;    // weights are sharded over cp as well
    int64_t  etp;               // number of ranks that shard each matrix of an expert: all of tp, or 1
    uint32_t owner_axes;        // 1 << axis: axes of the expert-parallel group
    int64_t  head_copies;       // number of tp ranks with the same key and value head; 0: each rank has its own heads
    int64_t  vp;
    bool     delays_weights;    // zero-bubble, several stages: weight gradients are computed after the backward pass
};

// Returns whether tp > 1 and experts are not sharded over tp.
bool mesh_has_whole_experts(const struct mesh *mesh);

// Read and set the requested size of an axis.
int64_t mesh_asked(const struct parallel_config *config, enum axis axis);
void    mesh_ask(struct parallel_config *config, enum axis axis, int64_t size);

// mesh_has_auto returns whether an axis is auto. mesh_asked_ranks returns the product of the requested sizes of the
// axes in a mask. Auto counts as 1, and so does ep, whose ranks are among the ranks of other axes.
bool    mesh_has_auto(const struct parallel_config *config);
int64_t mesh_asked_ranks(const struct parallel_config *config, uint32_t axes);

// Computes the mesh; an auto axis gets the remaining ranks. world: ranks of the job; 0: product of the requested sizes.
status mesh_init(struct mesh *mesh, const struct parallel_config *config, int64_t world);

// Replaces auto in the configuration by the sizes of the mesh.
void mesh_resolve(struct parallel_config *config, const struct mesh *mesh);

// Converts a rank to its coordinates on every axis, and back.
void    mesh_coordinates(const struct mesh *mesh, int64_t rank, int64_t coordinates[AXIS_COUNT]);
int64_t mesh_rank(const struct mesh *mesh, const int64_t coordinates[AXIS_COUNT]);

// In masks of axes, MESH_HEAD_COPIES selects a subgroup of tp: adjacent ranks that have a copy of the same key and
// value head.
enum { MESH_ALL_AXES = (1 << AXIS_COUNT) - 1, MESH_HEAD_COPIES = 1 << AXIS_COUNT, MESH_MASK_BITS = AXIS_COUNT + 1 };

// If tp has more ranks than the model has key and value heads, sets the number of ranks that share a head.
void mesh_share_heads(struct mesh *mesh, int64_t kv_heads);

// mesh_shard_axes returns the axes that weights are sharded over by FSDP. mesh_replica_axes returns the axes along
// which ranks have the same weights and different tokens. of_experts: for weights of experts. These are also sharded
// over the expert-parallel group, whose axes neither mask contains.
uint32_t mesh_shard_axes(const struct mesh *mesh, bool of_experts);
uint32_t mesh_replica_axes(const struct mesh *mesh, bool of_experts);
bool     mesh_is_sharded(const struct mesh *mesh);    // whether FSDP shards weights other than experts

// Returns the distance between neighbours along an axis, in ranks.
int64_t mesh_stride(const struct mesh *mesh, enum axis axis);

// A group has the ranks, in order, that differ from a given rank only on the axes of the mask (1 << AXIS_DP | ...).
// mesh_group_ranks fills ranks [mesh_group_size]. mesh_group_index returns the rank's own index in the group.
int64_t mesh_group_size(const struct mesh *mesh, uint32_t axes);
void    mesh_group_ranks(const struct mesh *mesh, int64_t rank, uint32_t axes, int64_t *ranks);
int64_t mesh_group_index(const struct mesh *mesh, int64_t rank, uint32_t axes);
