// SPDX-License-Identifier: MIT
// Loads and stores.
#include "shadow.h"
#include "traffic.h"

#include <initializer_list>
#include <type_traits>

namespace ptx
{
namespace
{
template <int size>
using word =
    std::conditional_t<size == 1, uint8_t,
                       std::conditional_t<size == 2, uint16_t, std::conditional_t<size == 4, uint32_t, uint64_t>>>;

// From loaded words to registers that are as wide, or wider.
template <typename E, typename R> void spread(R *to, const char *from, int pitch, uint32_t active)
{
    for (int l = 0; l < LANES; l++) {
        E value;
        memcpy(&value, from + l * pitch, sizeof(E));
        to[l] = (active >> l & 1u) != 0 ? (R)value : to[l];
    }
}
template <typename E> void spread_to(warp &w, uint32_t unit, int width, const char *from, int pitch)
{
    if (width == 2) {
        spread<E>(w.lanes<uint16_t>(unit), from, pitch, w.active);
    } else if (width == 4) {
        spread<E>(w.lanes<uint32_t>(unit), from, pitch, w.active);
    } else {
        spread<E>(w.lanes<uint64_t>(unit), from, pitch, w.active);
    }
}

template <int size> void spread_words(bool is_signed, warp &w, uint32_t unit, int width, const char *from, int pitch)
{
    if (is_signed) {
        spread_to<std::make_signed_t<word<size>>>(w, unit, width, from, pitch);
    } else {
        spread_to<word<size>>(w, unit, width, from, pitch);
    }
}
constexpr auto spread_by_log = {spread_words<1>, spread_words<2>, spread_words<4>, spread_words<8>};

template <int size, int count, space where> void load(warp &w, const instruction &its)
{
    enum { BYTES = size * count };
    char words[LANES][BYTES];
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        int      lane    = __builtin_ctz(left);
        uint64_t address = address_of(w, its, its.a, lane);
        read_lane<BYTES, where>(w, its, lane, address, words[lane], w.tag_of(lane));
        if (where == GLOBAL && the_count_runs) {
            count_read(address, BYTES);
        }
    }
    for (int i = 0; i < count; i++) {
        uint32_t unit = w.code->operands[its.more + (uint32_t)i];
        spread_words<size>(its.is_signed, w, unit, its.width, &words[0][i * size], BYTES);
    }
}

template <int size, int count, space where> void store(warp &w, const instruction &its)
{
    enum { BYTES = size * count };
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        char words[BYTES];
        int  lane = __builtin_ctz(left);
        for (int i = 0; i < count; i++) {
            memcpy(words + i * size, w.lanes<char>(w.code->operands[its.more + (uint32_t)i]) + lane * its.width, size);
        }
        write_lane<BYTES, where>(w, its, lane, address_of(w, its, its.a, lane), words);
        if (where == GLOBAL && the_count_runs) {
            count_written(BYTES);
        }
    }
}

// A generic address has its space in its upper bits.
template <handler global, handler shared, handler local> void generic(warp &w, const instruction &its)
{
    const handler handlers[SPACES] = {global, shared, local};
    uint32_t      all = w.active, in[SPACES] = {0, 0, 0};
    for (uint32_t left = all; left != 0; left &= left - 1) {
        int      lane    = __builtin_ctz(left);
        uint64_t address = address_of(w, its, its.a, lane);
        in[(address & SHARED_BASE) != 0 ? SHARED : (address & LOCAL_BASE) != 0 ? LOCAL : GLOBAL] |= 1u << lane;
    }
    for (int i = 0; i < SPACES; i++) {
        w.active = in[i];
        if (w.active != 0) {
            handlers[i](w, its);
        }
    }
    w.active = all;
}

// By space (SPACES: generic).
template <int size, int count> handler choose(bool is_store, int where)
{
    static const handler loads[] = {
        load<size, count, GLOBAL>, load<size, count, SHARED>, load<size, count, LOCAL>,
        generic<load<size, count, GLOBAL>, load<size, count, SHARED>, load<size, count, LOCAL>>};
    static const handler stores[] = {
        store<size, count, GLOBAL>, store<size, count, SHARED>, store<size, count, LOCAL>,
        generic<store<size, count, GLOBAL>, store<size, count, SHARED>, store<size, count, LOCAL>>};
    return is_store ? stores[where] : loads[where];
}
template <int size> handler choose_count(bool is_store, int where, int count)
{
    if constexpr (size < 8) {
        if (count == 4) {
            return choose<size, 4>(is_store, where);
        }
    }
    return count == 1 ? choose<size, 1>(is_store, where) : count == 2 ? choose<size, 2>(is_store, where) : NULL;
}
}    // namespace

handler find_access(bool is_store, int where, int size, int count)
{
    return size == 1   ? choose_count<1>(is_store, where, count)
           : size == 2 ? choose_count<2>(is_store, where, count)
           : size == 4 ? choose_count<4>(is_store, where, count)
           : size == 8 ? choose_count<8>(is_store, where, count)
                       : NULL;
}

void load_parameter(warp &w, const instruction &its)
{
    char words[LANES][16] = {};
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        int      lane = __builtin_ctz(left);
        uint64_t at   = address_of(w, its, its.a, lane);
        if (at + its.b * its.c > w.code->parameter_bytes) {
            fail(w, its, lane, "byte %llu of %u bytes of parameters", (unsigned long long)at, w.code->parameter_bytes);
        }
        memcpy(words[lane], the_launch.parameters + at, its.b * its.c);
    }
    for (uint32_t i = 0; i < its.b; i++) {
        spread_by_log.begin()[__builtin_ctz(its.c)](its.is_signed, w, w.code->operands[its.more + i], its.width,
                                                    &words[0][i * its.c], 16);
    }
}
}    // namespace ptx
