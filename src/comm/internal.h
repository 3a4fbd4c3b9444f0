// SPDX-License-Identifier: MIT
// Declares functions that the communicators share: they divide buffers, reduce in a fixed order, and tell which streams
// share a communicator.
#pragma once

#include <stdint.h>

#include "gswbench/comm.h"

// Returns the first element of a slice, if elements are divided into `size` slices as evenly as possible.
int64_t comm_slice_begin(int64_t elements, int64_t size, int64_t slice);

// Returns the number of rows before the rows of member `index` in an all-to-all. parts: rows of each member.
int64_t comm_rows_before(const int64_t *parts, int64_t index);

// Returns the member at position `index` of a ring, which may be negative or beyond `size`: index modulo size.
int64_t comm_ring_member(int64_t index, int64_t size);

// Copies the ranks of a group's members. The caller frees the copy.
int64_t *comm_copy_members(const int64_t *members, int64_t size);

// Copies like memcpy, but `to` may equal `from` (in-place ops).
void comm_copy(void *to, const void *from, int64_t bytes);

// Reduces the contributions of count members. out may be one of in.
typedef void    comm_reduction(void *out, const void *const *in, int64_t count, int64_t elements, enum format format);
comm_reduction  comm_sum;    // in[0] + in[1] + ..., accumulated in this order in fp32 and rounded once; i32 wraps
comm_reduction *comm_reduction_of(enum op_kind kind);

// Returns the stream whose communicator a stream uses. The pipeline send and receive streams share a communicator, so
// that sends and receives can match.
int comm_rendezvous_stream(int stream);

// Returns the name of the environment variable with this process's rank; NULL: no launcher.
const char *comm_rank_variable(void);

// Returns the topology of a job on one host.
struct comm_topology comm_one_host(int rank, int ranks);
