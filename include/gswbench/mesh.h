// SPDX-License-Identifier: MIT
// How ranks form a mesh of axes, and which ranks form a group along one of them.
#ifndef GSWBENCH_MESH_H
#define GSWBENCH_MESH_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/axis.h"
#include "gswbench/option.h"
#include "gswbench/status.h"

// When fsdp frees gathered weights after their forward pass, to gather them again for the backward pass.
enum reshard { RESHARD_ALWAYS, RESHARD_EXCEPT_LAST, RESHARD_NEVER };

// How the ranks of cp see each other's keys and values: passed round a ring while attention works on blocks of
// them, or all gathered first; or each rank has some heads at all positions while it computes attention.
enum context { CONTEXT_RING, CONTEXT_GATHER, CONTEXT_EXCHANGE };

// When ranks over which the optimizer is sharded gather each other's weights: after the update of a unit, or in the
// next step before its first use, so that whole weights are out of date between steps but for the slice that this rank
// updates.
enum zero_gather { ZERO_GATHER_OPTIMIZER, ZERO_GATHER_FORWARD };

// When gradients are summed over replicas: when all microbatches of a step have added to them, or those of each.
enum gradient_reduce { GRADIENT_REDUCE_STEP, GRADIENT_REDUCE_MICROBATCH };

// [parallel]
struct parallel_config {
// clang-format off
#define AXIS_FIELD(NAME, key, ...) int64_t key;    // 0: auto (what is left of the world; one axis at most)
    AXES(AXIS_FIELD)
    // clang-format on
    int64_t etp;           // ranks that share out an expert's matrices: 0: those of tp, or 1
    int64_t ep_over_cp;    // ep counts the ranks of cp first
    int64_t vp;
    int64_t sequence_parallel;             // norms and residual sharded over tp
    int64_t zero;                          // 0, or 1: optimizer sharded over dp x cp
    int64_t zero_gather;                   // enum zero_gather
    int64_t gradient_reduce;               // enum gradient_reduce
    int64_t prefetch;                      // units gathered ahead of their use
    int64_t reshard;                       // enum reshard
    int64_t shard_over_cp;                 // weights are sharded over fsdp x cp
    int64_t context;                       // enum context
    int64_t tp_overlap;                    // GEMMs split so that tensor-parallel transfers hide behind them
    int64_t tp_overlap_experts;            // those of experts, too
    int64_t layers_per_chunk_embedding;    // embedding and loss each count as one layer of the pipeline
    int64_t last_chunk_layers;             // of the pipeline; 0: as many as are dealt to it
    int64_t deferred_head_gradients;       // microbatches whose weight gradient of the head waits for the drain
};
extern const struct option parallel_options[];

struct mesh {
    int64_t  world;
    int64_t  size[AXIS_COUNT];     // their product is world
    int64_t  asked[AXIS_COUNT];    // as [parallel] counts them: fsdp or dp with the ranks of ep, ep with all owners
    bool     shards_over_cp;       // weights are sharded over cp, too
    int64_t  etp;                  // ranks of tp that share out an expert's matrices: all, or 1
    uint32_t owner_axes;           // 1 << axis: the owners of experts are the ranks along these
    int64_t  head_copies;          // ranks of tp that have one key and value head alike; 0: each has its own
    int64_t  vp;
};

// Whether each rank of tp has experts of its own, which are whole.
bool mesh_has_whole_experts(const struct mesh *mesh);

// Reads and sets the size that [parallel] asks for on an axis.
int64_t mesh_asked(const struct parallel_config *config, enum axis axis);
void    mesh_ask(struct parallel_config *config, enum axis axis, int64_t size);

// Whether an axis is auto, and the ranks that these axes (1 << AXIS_DP | ...) ask for together, where auto is 1.
bool    mesh_has_auto(const struct parallel_config *config);
int64_t mesh_asked_ranks(const struct parallel_config *config, uint32_t axes);

// Fills in the sizes; auto takes what is left of the world. world 0: all that the axes ask for.
status mesh_init(struct mesh *mesh, const struct parallel_config *config, int64_t world);

// Asks for the sizes that the mesh has, so that no axis is auto.
void mesh_resolve(struct parallel_config *config, const struct mesh *mesh);

// The rank's place on every axis, and back.
void    mesh_coordinates(const struct mesh *mesh, int64_t rank, int64_t coordinates[AXIS_COUNT]);
int64_t mesh_rank(const struct mesh *mesh, const int64_t coordinates[AXIS_COUNT]);

// In masks of axes, MESH_HEAD_COPIES is a part of tp: those of its ranks, neighbours, that have a key and value head
// alike.
enum { MESH_ALL_AXES = (1 << AXIS_COUNT) - 1, MESH_HEAD_COPIES = 1 << AXIS_COUNT, MESH_MASK_BITS = AXIS_COUNT + 1 };

// With fewer key and value heads than ranks of tp, several of these have one.
void mesh_share_heads(struct mesh *mesh, int64_t kv_heads);

// Axes over which weights are sharded, and those over which ranks hold the same weights and see other tokens. Experts
// are sharded over further axes of their own.
uint32_t mesh_shard_axes(const struct mesh *mesh, bool of_experts);
uint32_t mesh_replica_axes(const struct mesh *mesh, bool of_experts);
bool     mesh_is_sharded(const struct mesh *mesh);    // whether any weights but experts are

// How far apart neighbours along an axis are: the ranks of all faster axes.
int64_t mesh_stride(const struct mesh *mesh, enum axis axis);

// A group: the ranks that differ from a given rank only on the axes of the mask (1 << AXIS_DP | ...), in rank order.
int64_t mesh_group_size(const struct mesh *mesh, uint32_t axes);
void    mesh_group_ranks(const struct mesh *mesh, int64_t rank, uint32_t axes, int64_t *ranks);    // [group_size]
int64_t mesh_group_index(const struct mesh *mesh, int64_t rank, uint32_t axes);    // the rank's place in its group

#endif
