// SPDX-License-Identifier: MIT
// What NCCL asks of a job's ranks, and how the ranks of a pipeline are connected: decided without NCCL.
#ifndef GSWBENCH_COMM_NCCL_JOB_H
#define GSWBENCH_COMM_NCCL_JOB_H

#include <stdint.h>

#include "gswbench/status.h"

// What ranks tell each other before they connect.
struct nccl_seat {
    int  version;        // of the library
    char host[64];       // where the rank runs
    char device[64];     // names one device of all hosts
    char host_id[64];    // NCCL_HOSTID, for tests: ranks with different ones may have one device; "": not set
};

// "2.28.9"
enum { NCCL_TEXT_BYTES = 16 };
const char *nccl_print_version(int version, char text[NCCL_TEXT_BYTES]);

// Fails (EXIT_LAUNCH) for a library that is too old.
status nccl_check_version(int version);

// Fails (EXIT_LAUNCH) when NCCL versions differ, or ranks have one device without being set apart.
status nccl_check_seats(const struct nccl_seat *seats, int ranks);

// By how many ids a group of that size finds itself, where each id is for so many ranks (0: for all): more only where
// two are full. nccl_id_owner: the member that makes an id, as far apart as can be, since ranks come to who made
// theirs.
int     nccl_ids(int64_t size, int ranks_per_id);
int64_t nccl_id_owner(int64_t size, int ids, int id);

// Members of a pipeline's group form a ring. NCCL executes what is enqueued on one communicator in order, while sends
// and receives of a rank are on two lanes: so each member has a communicator with the next and one with the one before
// it for what it sends, and shares theirs for what it receives.
enum nccl_direction { NCCL_NEXT, NCCL_BEFORE, NCCL_DIRECTIONS };

// Directions that exist: two members are each other's next.
int nccl_directions(int64_t size);

// The member that sender sends to.
int64_t nccl_receiver(int64_t size, int64_t sender, enum nccl_direction direction);

// The direction in which sender sends to receiver. Fatal when they are no neighbours.
enum nccl_direction nccl_direction(int64_t size, int64_t sender, int64_t receiver);

#endif
