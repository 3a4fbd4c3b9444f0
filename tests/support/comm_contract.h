// SPDX-License-Identifier: MIT
// Contract of every communicator, for ranks as threads and as processes. Expected values come from plain loops over
// ranks, so two communicators that pass give the same bits.
#ifndef GSWBENCH_TESTS_COMM_CONTRACT_H
#define GSWBENCH_TESTS_COMM_CONTRACT_H

#include "gswbench/comm.h"

enum { CONTRACT_RANKS_MAX = 16 };

// Each returns the number of errors on the caller's rank.

// Maximum over all members, of unsorted values.
int64_t contract_check_maximum(struct comm *comm);

// Every collective and format at several sizes, on groups of each size up to the world's.
int64_t contract_check_collectives(struct comm *comm);

// All-to-alls with unequal and empty parts, on groups of each size.
int64_t contract_check_parts(struct comm *comm);

// Larger than the pieces in which a communicator may work.
int64_t contract_check_large(struct comm *comm);

// Sums that show order and rounding: 1e8 + 1 rounds to 1e8, and a bf16 running sum would stop at 256.
int64_t contract_check_rank_order(struct comm *comm);

// Groups of different sizes at the same time, each lane in its own thread, without blocking or mixing.
int64_t contract_check_lanes(struct comm *comm);

// A ring: each rank sends to the next on one lane while it receives from the previous on another.
int64_t contract_check_ring(struct comm *comm);

// Barrier, gather and broadcast among all ranks.
int64_t contract_check_control(struct comm *comm);

#endif
