// SPDX-License-Identifier: MIT
// Atomic operations, and copies in the background, which arrive as late as they may: when they are waited for.
#include "shadow.h"
#include "traffic.h"

#include <bit>
#include <unordered_map>

namespace ptx
{
namespace
{
// Atomic operations are in order with each other, and with nothing else.
template <typename T, space where, auto f> void atomic(warp &w, const instruction &its)
{
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        int      lane    = __builtin_ctz(left);
        uint64_t address = address_of(w, its, its.a, lane);
        place    at      = find_place<sizeof(T), where>(w, its, lane, address);
        T        before, value;
        tag      own = atomic_tag(where);
        if (at.written[0] != own || at.read[0] != own) {
            read_lane<sizeof(T), where>(w, its, lane, address, (char *)&before, w.tag_of(lane));
            check_write(w, its, lane, at, sizeof(T), where);
        }
        memcpy(&before, at.data, sizeof(T));
        value = f(before, w.lanes<T>(its.b)[lane]);
        memcpy(at.data, &value, sizeof(T));
        for (size_t i = 0; i < sizeof(T); i++) {
            at.written[i] = at.read[i] = own;
        }
        if (its.to != NONE) {
            w.lanes<T>(its.to)[lane] = before;
        }
    }
}

// Nobody may read what is to be written, nor write it, until it has arrived.
template <int bytes> void copy_late(warp &w, const instruction &its)
{
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        int       lane   = __builtin_ctz(left);
        uint64_t  from   = w.lanes<uint64_t>(its.b)[lane];
        uint32_t  count  = its.c == NONE ? bytes : w.lanes<uint32_t>(its.c)[lane];
        place     to     = find_place<bytes, SHARED>(w, its, lane, w.lanes<uint32_t>(its.a)[lane]);
        late_copy copied = {to.data, to.written, lane, bytes, w.groups[lane], {}};
        if (count != 0) {
            read_lane<bytes, GLOBAL>(w, its, lane, from, copied.data, w.tag_of(lane));
        }
        check_write(w, its, lane, to, bytes, SHARED);
        memset(to.written, 0, bytes * sizeof(tag));
        w.copies.push_back(copied);
        the_traffic.read_bytes += the_count_runs ? bytes : 0;    // past the cache of a multiprocessor
    }
}

void close_group(warp &w, const instruction &)
{
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        w.groups[__builtin_ctz(left)]++;
    }
}

// All but the latest groups, as many as the instruction says.
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
        memcpy(each.to, each.data, (size_t)each.bytes);
        for (int i = 0; i < each.bytes; i++) {
            each.written[i] = w.tag_of(each.lane);
        }
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

typedef std::unordered_map<std::string, handler> table;

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

table make_table()
{
    table made;
    add_atomics<uint32_t>(made, "u32");
    add_atomics<int32_t>(made, "s32");
    add_atomics<uint64_t>(made, "u64");
    add_atomics<float>(made, "f32");
    add_atomic<uint32_t, [](uint32_t a, uint32_t b) { return a | b; }>(made, "or.b32");
    add_atomic<uint32_t, [](uint32_t a, uint32_t b) { return a & b; }>(made, "and.b32");
    made["cp.async.cg.shared.global"] = made["cp.async.cg.shared.global.L2::128B"] = copy_late<16>;
    made["cp.async.ca.shared.global"]                                              = copy_late<16>;
    made["cp.async.commit_group"]                                                  = close_group;
    made["cp.async.wait_group"]                                                    = wait_group;
    made["cp.async.wait_all"]                                                      = wait_group;
    made["cp.async.bulk.prefetch.L2.global"]                                       = skip;
    made["prefetch.global.L2"]                                                     = skip;
    made["membar.gl"] = made["membar.cta"] = made["fence.acq_rel.gpu"] = skip;
    made["trap"]                                                       = trap;
    made["ret"] = made["exit"] = leave;
    return made;
}
}    // namespace

handler find_late(const std::string &opcode)
{
    static const table all   = make_table();
    auto               found = all.find(opcode);
    return found == all.end() ? NULL : found->second;
}
}    // namespace ptx
