// SPDX-License-Identifier: MIT
// Checked memory accesses of a lane. The checks find accesses out of bounds or misaligned, reads of unwritten bytes,
// and races.
#pragma once

#include "ptx.h"

#include <algorithm>

namespace ptx
{
enum space { GLOBAL, SHARED, LOCAL, SPACES };

struct place {
    char *data;
    tag  *written, *read;
};

// These tags mark bytes that several blocks or several warps have read, or that atomic operations have accessed.
inline tag several_blocks()
{
    return the_launch.first << LANE_BITS;
}
inline tag several_warps()
{
    return the_launch.interval << LANE_BITS;
}
inline tag atomic_tag(space where)
{
    return (where == GLOBAL ? the_launch.first + 1 : the_launch.interval + 1) << LANE_BITS;
}

// A range of tags, without `newest`. A write with a tag in this range is ordered before the current access, whichever
// thread wrote.
struct span {
    tag oldest, newest;
};
template <space where> span span_of()
{
    const launch &now = the_launch;
    return where == GLOBAL  ? span{BY_HOST, now.first << LANE_BITS}
           : where == LOCAL ? span{now.block_first << LANE_BITS, ALL}
                            : span{now.block_first << LANE_BITS, now.interval << LANE_BITS};
}

// Complete checks, which are called if the fast checks below cannot decide. An error ends the process.
void check_read(warp &w, const instruction &its, int lane, const place &at, int bytes, space where, tag own);
void check_write(warp &w, const instruction &its, int lane, const place &at, int bytes, space where);

memory *find_allocation(warp &w, const instruction &its, int lane, space where, uint64_t address, uint64_t bytes);
place   find_local(warp &w, const instruction &its, int lane, uint64_t address, uint64_t bytes);
[[noreturn]] void fail_alignment(warp &w, const instruction &its, int lane, uint64_t address, uint64_t bytes);

// Finds the bytes that a lane accesses. They must be in one allocation.
template <int bytes, space where> place find_place(warp &w, const instruction &its, int lane, uint64_t address)
{
    address &= where == GLOBAL ? ~UINT64_C(0) : ~(SHARED_BASE | LOCAL_BASE);
    if (address % bytes != 0) {
        fail_alignment(w, its, lane, address, bytes);
    }
    if (where == LOCAL) {
        return find_local(w, its, lane, address, bytes);
    }
    memory *nearest = w.nearest[where];
    if (nearest == NULL || address < nearest->begin || address + bytes > nearest->end) {
        nearest = w.nearest[where] = find_allocation(w, its, lane, where, address, bytes);
    }
    uint64_t at = address - nearest->begin;
    return {nearest->data + at, nearest->written + at, nearest->read + at};
}

inline uint64_t address_of(warp &w, const instruction &its, int lane, int operand = 0)
{
    uint32_t unit = its.operands[operand];
    uint64_t base = its.is_32_bit ? w.lanes<uint32_t>(unit)[lane] : w.lanes<uint64_t>(unit)[lane];
    return base + (uint64_t)(int64_t)its.offset;
}

// A fast check of accesses by `count` lanes to adjacent bytes. Returns false, without any effect, if the tags alone do
// not prove that there is no race. `own` is the tag of the first lane, and the next lanes have the next tags.
template <int bytes, space where, int count> bool try_read(const warp &w, const place &at, tag own)
{
    const span ok     = span_of<where>();
    const tag  blocks = several_blocks(), warps = several_warps(), lanes = w.tag_of(SEVERAL);
    uint32_t   is_odd = 0;
    for (uint32_t i = 0; i < bytes * count; i++) {
        tag self = own + i / bytes;
        is_odd |= (uint32_t)(at.written[i] - ok.oldest >= ok.newest - ok.oldest) & (uint32_t)(at.written[i] != self);
    }
    for (uint32_t i = 0; i < bytes * count && where != LOCAL; i++) {
        tag reader = at.read[i];
        is_odd |= (uint32_t)(reader >= ok.newest) & (uint32_t)(reader != own + i / bytes) &
                  (uint32_t)(reader != blocks) & (uint32_t)(reader != warps) & (uint32_t)(reader != lanes);
    }
    for (uint32_t i = 0; is_odd == 0 && i < bytes * count && where != LOCAL; i++) {
        tag reader = at.read[i];
        at.read[i] = (reader == blocks) | (reader == warps) | (reader == lanes) ? reader : own + i / bytes;
    }
    return is_odd == 0;
}
template <int bytes, space where, int count> bool try_write(const place &at, tag own)
{
    const span ok     = span_of<where>();
    uint32_t   is_odd = 0;
    for (uint32_t i = 0; i < bytes * count && where != LOCAL; i++) {
        tag self = own + i / bytes;
        is_odd |= ((uint32_t)(at.written[i] >= ok.newest) & (uint32_t)(at.written[i] != self)) |
                  ((uint32_t)(at.read[i] >= ok.newest) & (uint32_t)(at.read[i] != self));
    }
    for (uint32_t i = 0; is_odd == 0 && i < bytes * count; i++) {
        at.written[i] = own + i / bytes;
    }
    return is_odd == 0;
}

template <int bytes, space where>
void read_lane(warp &w, const instruction &its, int lane, uint64_t address, char *to, tag own)
{
    place at = find_place<bytes, where>(w, its, lane, address);
    if (!try_read<bytes, where, 1>(w, at, own)) {
        check_read(w, its, lane, at, bytes, where, own);
    }
    memcpy(to, at.data, bytes);
}
template <int bytes, space where>
void write_lane(warp &w, const instruction &its, int lane, uint64_t address, const char *from)
{
    place at = find_place<bytes, where>(w, its, lane, address);
    if (!try_write<bytes, where, 1>(at, w.tag_of(lane))) {
        check_write(w, its, lane, at, bytes, where);
        std::fill(at.written, at.written + bytes, w.tag_of(lane));
    }
    memcpy(at.data, from, bytes);
}

// Returns whether all lanes of a warp access adjacent bytes in the allocation of the last access.
template <int bytes, space where> bool find_row(warp &w, const instruction &its, place *at)
{
    const memory *nearest = w.nearest[where];
    if (where == LOCAL || w.active != ALL || nearest == NULL) {
        return false;
    }
    const uint64_t first = address_of(w, its, 0), begin = where == GLOBAL ? first : first & ~SHARED_BASE;
    bool           is_row = begin % bytes == 0 && begin >= nearest->begin && begin + bytes * LANES <= nearest->end;
    for (int l = 1; l < LANES; l++) {
        is_row &= address_of(w, its, l) == first + (uint64_t)(bytes * l);
    }
    *at = {nearest->data + (begin - nearest->begin), nearest->written + (begin - nearest->begin),
           nearest->read + (begin - nearest->begin)};
    return is_row;
}
template <int bytes, space where> bool read_row(warp &w, const instruction &its, char *to)
{
    place at;
    if (!find_row<bytes, where>(w, its, &at) || !try_read<bytes, where, LANES>(w, at, w.tag_of(0))) {
        return false;
    }
    memcpy(to, at.data, bytes * LANES);
    return true;
}
template <int bytes, space where> bool write_row(warp &w, const instruction &its, const char *from)
{
    place at;
    if (!find_row<bytes, where>(w, its, &at) || !try_write<bytes, where, LANES>(at, w.tag_of(0))) {
        return false;
    }
    memcpy(at.data, from, bytes * LANES);
    return true;
}
}    // namespace ptx
