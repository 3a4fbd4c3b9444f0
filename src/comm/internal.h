// SPDX-License-Identifier: MIT
// What the communicators share: how a buffer is cut, in which order contributions add up, which lanes pair.
#ifndef GSWBENCH_COMM_INTERNAL_H
#define GSWBENCH_COMM_INTERNAL_H

#include <stdint.h>

#include "gswbench/comm.h"

// Where slice number slice begins when elements are cut into size slices, as equal as can be.
int64_t comm_slice_begin(int64_t elements, int64_t size, int64_t slice);

// Rows of the members before that one, of an all-to-all whose parts are as long as parts says.
int64_t comm_rows_before(const int64_t *parts, int64_t index);

// The member at a place of the ring that the members form, however often the place goes round it, on or back.
int64_t comm_ring_member(int64_t place, int64_t size);

// memcpy, but a buffer may be copied to itself: an in-place transfer.
void comm_copy(void *to, const void *from, int64_t bytes);

// What count members contribute becomes one. out may be one of in.
typedef void    comm_reduction(void *out, const void *const *in, int64_t count, int64_t elements, enum format format);
comm_reduction  comm_sum;        // in[0] + in[1] + ..., added in this order in fp32 (i32: wrapping) and rounded once
comm_reduction  comm_maximum;    // f32 only
comm_reduction *comm_reduction_of(enum op_kind kind);

// The lane whose communicator a lane uses: pipeline sends meet the receives of the other rank's receive lane.
int comm_meeting_lane(int lane);

// ranks, rank and host filled in; a single host.
struct comm_place comm_place_on_one_host(int rank, int ranks);

#endif
