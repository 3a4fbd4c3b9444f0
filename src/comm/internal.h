// SPDX-License-Identifier: MIT
// Shared by the communicators: partitioning of buffers, order of reductions, pairing of streams.
#pragma once

#include <stdint.h>

#include "gswbench/comm.h"

// First element of a slice, for elements divided into size slices as evenly as possible.
int64_t comm_slice_begin(int64_t elements, int64_t size, int64_t slice);

// Rows before member index, for an all-to-all with per-member row counts.
int64_t comm_rows_before(const int64_t *parts, int64_t index);

// index modulo size, also for a negative index.
int64_t comm_ring_member(int64_t index, int64_t size);

// Copy of a group's members, which the caller frees.
int64_t *comm_copy_members(const int64_t *members, int64_t size);

// memcpy that allows to == from, for in-place ops.
void comm_copy(void *to, const void *from, int64_t bytes);

// Reduces the contributions of count members. out may be one of in.
typedef void    comm_reduction(void *out, const void *const *in, int64_t count, int64_t elements, enum format format);
comm_reduction  comm_sum;    // in[0] + in[1] + ..., accumulated in this order in fp32 and rounded once; i32 wraps
comm_reduction *comm_reduction_of(enum op_kind kind);

// The stream whose communicator a stream uses: pipeline sends and receives share one.
int comm_rendezvous_stream(int stream);

// Returns the environment variable that holds this process's rank; NULL: no launcher.
const char *comm_rank_variable(void);

// Fills in ranks, rank and host, for a single host.
struct comm_topology comm_one_host(int rank, int ranks);
