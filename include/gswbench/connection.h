// SPDX-License-Identifier: MIT
// What a library opens to move data between the devices of a plan's ranks: a connection of its own for each group and
// lane, so that lanes never block each other, and on the pipeline's lanes one for each neighbour and way. What they
// take of a device is a model, whose sources are in docs/method.md.
#ifndef GSWBENCH_CONNECTION_H
#define GSWBENCH_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gswbench/plan.h"

struct plan_connection {
    int      lane;    // enum lane; of the pipeline's ways the one that this rank uses
    int32_t  group;
    int64_t  peer;    // the neighbour's place in the group; -1: all members
    int64_t  members, nodes;
    uint32_t kinds;            // of its ops: 1 << kind - OP_COMPUTE_COUNT
    int64_t  largest_bytes;    // of its ops
    int      processors;       // multiprocessors that one of its ops may take, a block on each
    int64_t  bytes;            // of device memory
};

struct plan_connections {
    struct plan_connection *list;
    int32_t                 count;
    int                     processors;    // that all lanes may take at a time
    int64_t                 bytes;
};

// The connections of a plan, lane by lane, whose ranks fill one node after another. The caller frees list.
void plan_connections(struct plan_connections *connections, const struct plan *plan, int64_t ranks_per_node);

// Whether transfers may hold so many multiprocessors of a device at a time, where none takes more than most (0: no
// bound of the user's), that none is left to compute: then ranks may wait for each other without end. Writes what there
// is to be done into text, and returns it; NULL: some are left, or the device's number is not known (0).
const char *plan_connections_excess(const struct plan_connections *connections, int64_t device, int64_t most,
                                    char *text, size_t bytes);

// What the transfers of a group on a lane see of a storage: its size, and which bytes of it each of them takes. Equal
// on members that have it alike; 0: they do not use it.
uint64_t plan_transfer_layout(const struct plan *plan, int lane, int32_t group, enum storage storage);

// How many multiprocessors a transfer on a lane may take, of so many bytes at the most.
int plan_connection_processors(int lane, int64_t largest_bytes);

#endif
