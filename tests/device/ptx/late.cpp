// SPDX-License-Identifier: MIT
// Emulates atomic operations, and cp.async, whose data arrives as late as PTX allows: when the thread waits for it.
#include "shadow.h"

namespace ptx
{
namespace
{
// Atomic operations are ordered only with each other. The operands are the register for the previous value or NONE, the
// address, and the value.
template <typename T, space where, auto f> void atomic(warp &w, const instruction &its)
{
    for_lanes(w.active, [&](int lane) {
        uint64_t address = address_of(w, its, lane, 1);
        place    at      = find_place<sizeof(T), where>(w, its, lane, address);
        T        before, value;
        tag      own = atomic_tag(where);
        if (at.written[0] != own || at.read[0] != own) {
            read_lane<sizeof(T), where>(w, its, lane, address, (char *)&before, w.tag_of(lane));
            check_write(w, its, lane, at, sizeof(T), where);
        }
        memcpy(&before, at.data, sizeof(T));
        value = f(before, w.lanes<T>(its.operands[2])[lane]);
        memcpy(at.data, &value, sizeof(T));
        std::fill(at.written, at.written + sizeof(T), own);
        std::fill(at.read, at.read + sizeof(T), own);
        if (its.operands[0] != NONE) {
            w.lanes<T>(its.operands[0])[lane] = before;
        }
    });
}

// Starts a copy. No thread may read or write its destination until the copy arrives. The operands are destination,
// source, bytes, and the number of bytes to copy (NONE: all; 0: write zeros).
void copy_late(warp &w, const instruction &its)
{
    enum { BYTES = sizeof(late_copy::data) };
    for_lanes(w.active, [&](int lane) {
        uint64_t  from   = w.lanes<uint64_t>(its.operands[1])[lane];
        bool      copies = its.operands[3] == NONE || w.lanes<uint32_t>(its.operands[3])[lane] != 0;
        place     to     = find_place<BYTES, SHARED>(w, its, lane, w.lanes<uint32_t>(its.operands[0])[lane]);
        late_copy copied = {to.data, to.written, lane, w.groups[lane], {}};
        if (copies) {
            read_lane<BYTES, GLOBAL>(w, its, lane, from, copied.data, w.tag_of(lane));
        }
        check_write(w, its, lane, to, BYTES, SHARED);
        std::fill(to.written, to.written + BYTES, 0u);
        w.copies.push_back(copied);
        the_traffic.read_bytes += the_count_runs ? BYTES : 0;    // cp.async.cg bypasses the L1 cache
    });
}

void close_group(warp &w, const instruction &)
{
    for_lanes(w.active, [&](int lane) { w.groups[lane]++; });
}

// Completes all groups except the last `offset`. If offset is -1, completes every copy.
void wait_group(warp &w, const instruction &its)
{
    size_t kept = 0;
    for (const late_copy &each : w.copies) {
        bool is_due = (w.active >> each.lane & 1u) != 0 &&
                      (its.offset < 0 || each.group + (uint32_t)its.offset < w.groups[each.lane]);
        if (!is_due) {
            w.copies[kept++] = each;
            continue;
        }
        memcpy(each.to, each.data, sizeof(each.data));
        std::fill(each.written, each.written + sizeof(each.data), w.tag_of(each.lane));
    }
    w.copies.resize(kept);
}

void skip(warp &, const instruction &)
{
}

[[noreturn]] void trap(warp &w, const instruction &its)
{
    fail(w, its, -1, "the kernel ends itself");
}

template <typename T, auto f> void add_atomic(table &to, const std::string &name)
{
    to["atom.global." + name] = to["red.global." + name] = atomic<T, GLOBAL, f>;
    to["atom.shared." + name] = to["red.shared." + name] = atomic<T, SHARED, f>;
}
template <typename T> void add_atomics(table &to, const std::string &type)
{
    add_atomic<T, [](T a, T b) { return (T)(a + b); }>(to, "add." + type);
    add_atomic<T, [](T a, T b) { return a < b ? b : a; }>(to, "max." + type);
    add_atomic<T, [](T a, T b) { return b < a ? b : a; }>(to, "min." + type);
    add_atomic<T, [](T, T b) { return b; }>(to, "exch." + type);
}
}    // namespace

void add_late(table &to)
{
    add_atomics<uint32_t>(to, "u32");
    add_atomics<int32_t>(to, "s32");
    add_atomics<uint64_t>(to, "u64");
    add_atomics<float>(to, "f32");
    add_atomic<uint32_t, [](uint32_t a, uint32_t b) { return a | b; }>(to, "or.b32");
    add_atomic<uint32_t, [](uint32_t a, uint32_t b) { return a & b; }>(to, "and.b32");
    to.insert({{"cp.async.cg.shared.global", copy_late},
               {"cp.async.cg.shared.global.L2::128B", copy_late},
               {"cp.async.ca.shared.global", copy_late},
               {"cp.async.commit_group", close_group},
               {"cp.async.wait_group", wait_group},
               {"cp.async.wait_all", wait_group},
               {"cp.async.bulk.prefetch.L2.global", skip},
               {"prefetch.global.L2", skip},
               {"membar.gl", skip},
               {"membar.cta", skip},
               {"fence.acq_rel.gpu", skip},
               {"trap", trap},
               {"ret", leave},
               {"exit", leave}});
}
}    // namespace ptx
