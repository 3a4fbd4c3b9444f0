// SPDX-License-Identifier: MIT
// What a lane reads and writes of memory, checked: bounds, alignment, bytes that nobody wrote, and races.
#ifndef GSWBENCH_TESTS_PTX_SHADOW_H
#define GSWBENCH_TESTS_PTX_SHADOW_H

#include "ptx.h"

namespace ptx
{
enum space { GLOBAL, SHARED, LOCAL, SPACES };

struct place {
    char *data;
    tag  *written, *read;
};

// Accesses of more than one lane, warp or block, and atomic ones.
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

// A write with a tag from oldest on, below newest, happened before, whoever made it.
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

// What the tags do not tell at once; end the process where something is wrong.
void check_read(warp &w, const instruction &its, int lane, const place &at, int bytes, space where, tag own);
void check_write(warp &w, const instruction &its, int lane, const place &at, int bytes, space where);

memory *find_allocation(warp &w, const instruction &its, int lane, space where, uint64_t address, uint64_t bytes);
place   find_local(warp &w, const instruction &its, int lane, uint64_t address, uint64_t bytes);
[[noreturn]] void fail_alignment(warp &w, const instruction &its, int lane, uint64_t address, uint64_t bytes);

// Where a lane's bytes are, all of one allocation.
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

template <int bytes, space where>
void read_lane(warp &w, const instruction &its, int lane, uint64_t address, char *to, tag own)
{
    const span ok     = span_of<where>();
    place      at     = find_place<bytes, where>(w, its, lane, address);
    tag        blocks = several_blocks(), warps = several_warps();
    bool       is_odd = false;
    for (int i = 0; i < bytes; i++) {
        is_odd |= (at.written[i] - ok.oldest >= ok.newest - ok.oldest) & (at.written[i] != own);
    }
    for (int i = 0; i < bytes && where != LOCAL; i++) {
        tag reader = at.read[i];
        is_odd |= (reader >= ok.newest) & (reader != own) & (reader != blocks) & (reader != warps);
    }
    if (is_odd) {
        check_read(w, its, lane, at, bytes, where, own);
    } else if (where != LOCAL) {
        for (int i = 0; i < bytes; i++) {
            tag reader = at.read[i];
            at.read[i] = (reader == blocks) | (reader == warps) ? reader : own;
        }
    }
    memcpy(to, at.data, bytes);
}

template <int bytes, space where>
void write_lane(warp &w, const instruction &its, int lane, uint64_t address, const char *from)
{
    const span ok     = span_of<where>();
    place      at     = find_place<bytes, where>(w, its, lane, address);
    tag        own    = w.tag_of(lane);
    bool       is_odd = false;
    for (int i = 0; i < bytes && where != LOCAL; i++) {
        is_odd |=
            ((at.written[i] >= ok.newest) & (at.written[i] != own)) | ((at.read[i] >= ok.newest) & (at.read[i] != own));
    }
    if (is_odd) {
        check_write(w, its, lane, at, bytes, where);
    }
    for (int i = 0; i < bytes; i++) {
        at.written[i] = own;
    }
    memcpy(at.data, from, bytes);
}

inline uint64_t address_of(warp &w, const instruction &its, uint32_t unit, int lane)
{
    uint64_t base = its.is_narrow ? w.lanes<uint32_t>(unit)[lane] : w.lanes<uint64_t>(unit)[lane];
    return base + (uint64_t)(int64_t)its.offset;
}
}    // namespace ptx

#endif
