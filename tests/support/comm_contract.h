// SPDX-License-Identifier: MIT
// What every communicator must do, checked on one that is given: the same checks for threads and for processes.
// Expected values come from plain loops over ranks, so that two communicators that pass give the same bits.
#ifndef GSWBENCH_TESTS_COMM_CONTRACT_H
#define GSWBENCH_TESTS_COMM_CONTRACT_H

#include "gswbench/comm.h"

enum { CONTRACT_RANKS_MAX = 16 };

// Each returns how much the caller's rank found wrong.

// The largest of all members, of values of any order.
int64_t contract_check_maximum(struct comm *comm);

// Every collective, format and a few sizes, on groups of each size up to the world's.
int64_t contract_check_collectives(struct comm *comm);

// All-to-alls of parts that are unequal, and some of them empty, on groups of each size.
int64_t contract_check_parts(struct comm *comm);

// Larger than the pieces in which a communicator may work.
int64_t contract_check_large(struct comm *comm);

// Sums whose value shows the order and the rounding: 1e8 swallows the 1 that is added to it, and a bf16 running sum
// would stay at 256.
int64_t contract_check_rank_order(struct comm *comm);

// Groups of different sizes at the same time, each lane in its own thread: none waits for another, none mixes.
int64_t contract_check_lanes(struct comm *comm);

// A ring: each rank sends to the next on one lane while it receives from the one before on the other lane.
int64_t contract_check_ring(struct comm *comm);

// Barrier, gather and share among all ranks.
int64_t contract_check_control(struct comm *comm);

#endif
