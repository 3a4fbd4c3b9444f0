// SPDX-License-Identifier: MIT
// Checks NCCL's requirements on the ranks of a job, and finds the connections of a pipeline. This module does not call
// NCCL.
#pragma once

#include <stdint.h>

#include "gswbench/status.h"

// Data about a rank that all ranks exchange before they connect.
struct nccl_seat {
    int  version;    // of the NCCL library
    char host[64];
    char device[64];     // unique id of the device across hosts
    char host_id[64];    // NCCL_HOSTID or ""; different ids let tests share a device
};

// Prints a version number: "2.28.9".
enum { NCCL_TEXT_BYTES = 16 };
const char *nccl_print_version(int version, char text[NCCL_TEXT_BYTES]);

// Fails with EXIT_LAUNCH if the library is too old.
status nccl_check_version(int version);

// Fails with EXIT_LAUNCH if NCCL versions differ, or if ranks share a device and a host id.
status nccl_check_seats(const struct nccl_seat *seats, int ranks);

// nccl_ids returns the number of unique ids for a group: one per ranks_per_id ranks. It is 1 if the group has fewer
// than 2 * ranks_per_id ranks, or if ranks_per_id is 0. nccl_id_owner returns the member that creates an id. Each rank
// connects to the owner of its id, so owners are evenly spaced to spread this work over hosts.
int     nccl_ids(int64_t size, int ranks_per_id);
int64_t nccl_id_owner(int64_t size, int ids, int id);

// The members of a pipeline group form a ring. NCCL executes the ops of a communicator in order, but a rank sends and
// receives on two streams. So each member has one communicator for its sends to each neighbour, and receives on the
// communicators of its neighbours' sends.
enum nccl_direction { NCCL_NEXT, NCCL_BEFORE, NCCL_DIRECTIONS };

// Returns the number of directions of the ring: 1 if it has two members, which are each other's only neighbour.
int nccl_directions(int64_t size);

int64_t nccl_receiver(int64_t size, int64_t sender, enum nccl_direction direction);

// Returns the direction from sender to receiver. Ends the job if they are not neighbours.
enum nccl_direction nccl_direction(int64_t size, int64_t sender, int64_t receiver);
