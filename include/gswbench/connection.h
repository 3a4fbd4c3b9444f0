// SPDX-License-Identifier: MIT
// Declares the connections that a communication library opens for a plan: one per group and stream, so that streams
// never block each other. The pipeline streams have one per neighbour and direction. docs/method.md has the sources of
// the formulas for a connection's device memory.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gswbench/plan.h"

struct plan_connection {
    int      stream;    // enum stream; of a pipeline link, this rank's stream (the peer uses the other pipeline stream)
    int32_t  group;
    int64_t  peer;    // pipeline: index of the neighbour in the group; -1: connects all members
    int64_t  members, nodes;
    uint32_t kinds;            // kinds of the connection's ops, as bits 1 << (kind - OP_COMPUTE_COUNT)
    int64_t  largest_bytes;    // bytes of the connection's largest op
    int      processors;       // maximum SMs of one op, which has one thread block (CTA) per SM
    int64_t  bytes;            // device memory of the connection's buffers
};

struct plan_connections {
    struct plan_connection *list;
    int32_t                 count;
    int                     processors;    // maximum SMs of the ops that can run at the same time
    int64_t                 bytes;
};

// Lists a plan's connections, sorted by stream. Assumes that ranks fill one node after another. The caller frees list.
void plan_connections(struct plan_connections *connections, const struct plan *plan, int64_t ranks_per_node);

// Checks whether concurrent communication may occupy every SM, so that no compute can start and ranks wait for each
// other forever. device: SMs of the device; 0: unknown. maximum: SM limit per op; 0: none. Returns NULL if an SM is
// left or the device is unknown, else `text`, into which it writes the problem and a remedy.
const char *plan_connections_excess(const struct plan_connections *connections, int64_t device, int64_t maximum,
                                    char *text, size_t bytes);

// Hashes how a group's ops on a stream use a storage (enum storage): its size, and the offsets of the ops' operands.
// NCCL can register the storage as a symmetric window only if all members have the same hash. 0: the ops do not use it.
uint64_t plan_communication_layout(const struct plan *plan, int stream, int32_t group, enum storage storage);

// Returns the number of SMs that an op on a stream may take. largest_bytes: size of the largest op of its connection.
int plan_connection_processors(int stream, int64_t largest_bytes);
