// SPDX-License-Identifier: MIT
// Emulates load and store instructions of PTX. The first operand of an instruction is the address.
#include "shadow.h"

#include <bit>
#include <type_traits>

namespace ptx
{
namespace
{
enum { PARAMETER = SPACES };    // kernel parameters are one more memory space, which is only read

template <int size>
using word =
    std::conditional_t<size == 1, uint8_t,
                       std::conditional_t<size == 2, uint16_t, std::conditional_t<size == 4, uint32_t, uint64_t>>>;

// Stores the loaded elements in registers, extended to the width of the registers.
template <typename E, typename R> void spread(warp &w, uint32_t unit, const char *from, int pitch)
{
    R values[LANES];
    for (int l = 0; l < LANES; l++) {
        E value;
        memcpy(&value, from + l * pitch, sizeof(E));
        values[l] = (R)value;
    }
    w.put(unit, values);
}
template <typename E> void spread_to(warp &w, uint32_t unit, int width, const char *from, int pitch)
{
    if (width == 2) {
        spread<E, uint16_t>(w, unit, from, pitch);
    } else if (width == 4) {
        spread<E, uint32_t>(w, unit, from, pitch);
    } else {
        spread<E, uint64_t>(w, unit, from, pitch);
    }
}

template <int bytes> void read_parameter(warp &w, const instruction &its, int lane, uint64_t address, char *to)
{
    if (address + bytes > w.code->parameter_bytes) {
        fail(w, its, lane, "byte %llu of %u bytes of parameters", (unsigned long long)address, w.code->parameter_bytes);
    }
    memcpy(to, the_launch.parameters + address, bytes);
}

template <int size, int count, int where> void load(warp &w, const instruction &its)
{
    enum { BYTES = size * count };
    char words[LANES][BYTES];
    if constexpr (where == PARAMETER) {
        for_lanes(w.active,
                  [&](int lane) { read_parameter<BYTES>(w, its, lane, address_of(w, its, lane), words[lane]); });
    } else if (!read_row<BYTES, (space)where>(w, its, words[0])) {
        for_lanes(w.active, [&](int lane) {
            read_lane<BYTES, (space)where>(w, its, lane, address_of(w, its, lane), words[lane], w.tag_of(lane));
        });
    }
    if (where == GLOBAL && the_count_runs) {
        for_lanes(w.active, [&](int lane) { count_read(address_of(w, its, lane), BYTES); });
    }
    for (int i = 0; i < count; i++) {
        const char *from = &words[0][i * size];
        if (its.is_signed) {
            spread_to<std::make_signed_t<word<size>>>(w, its.operands[1 + i], its.width, from, BYTES);
        } else {
            spread_to<word<size>>(w, its.operands[1 + i], its.width, from, BYTES);
        }
    }
}

template <int size, int count, int where> void store(warp &w, const instruction &its)
{
    enum { BYTES = size * count };
    char words[LANES][BYTES];
    for (int i = 0; i < count; i++) {
        const char *from = w.lanes<char>(its.operands[1 + i]);
        for (int l = 0; l < LANES; l++) {
            memcpy(&words[l][i * size], from + l * its.width, size);
        }
    }
    if (!write_row<BYTES, (space)where>(w, its, words[0])) {
        for_lanes(w.active, [&](int lane) {
            write_lane<BYTES, (space)where>(w, its, lane, address_of(w, its, lane), words[lane]);
        });
    }
    if (where == GLOBAL && the_count_runs) {
        the_traffic.written_bytes += BYTES * __builtin_popcount(w.active);
    }
}

// Accesses a generic address. Its upper bits select the memory space of each lane.
template <handler global, handler shared, handler local> void generic(warp &w, const instruction &its)
{
    const handler handlers[SPACES] = {global, shared, local};
    uint32_t      all = w.active, in[SPACES] = {0, 0, 0};
    for_lanes(all, [&](int lane) {
        uint64_t address = address_of(w, its, lane);
        in[(address & SHARED_BASE) != 0 ? SHARED : (address & LOCAL_BASE) != 0 ? LOCAL : GLOBAL] |= 1u << lane;
    });
    for (int i = 0; i < SPACES; i++) {
        w.active = in[i];
        if (w.active != 0) {
            handlers[i](w, its);
        }
    }
    w.active = all;
}

template <int size, int count> handler choose(bool is_store, std::string_view where)
{
    constexpr handler loads[]  = {load<size, count, GLOBAL>, load<size, count, SHARED>, load<size, count, LOCAL>};
    constexpr handler stores[] = {store<size, count, GLOBAL>, store<size, count, SHARED>, store<size, count, LOCAL>};
    const handler    *all      = is_store ? stores : loads;
    if (where == "param") {
        return is_store ? NULL : load<size, count, PARAMETER>;
    }
    return where == "global"   ? all[GLOBAL]
           : where == "shared" ? all[SHARED]
           : where == "local"  ? all[LOCAL]
           : is_store          ? generic<stores[GLOBAL], stores[SHARED], stores[LOCAL]>
                               : generic<loads[GLOBAL], loads[SHARED], loads[LOCAL]>;
}
}    // namespace

// Returns the function for an instruction. Its words are: ld or st, an optional space, cache operators, v2 or v4, and
// the type.
handler find_access(const std::vector<std::string_view> &words, uint32_t size)
{
    typedef handler (*chooser)(bool is_store, std::string_view where);
    constexpr chooser choosers[4][3] = {{choose<1, 1>, choose<1, 2>, choose<1, 4>},
                                        {choose<2, 1>, choose<2, 2>, choose<2, 4>},
                                        {choose<4, 1>, choose<4, 2>, choose<4, 4>},
                                        {choose<8, 1>, choose<8, 2>, NULL}};
    std::string_view  where;
    int               wide = 0;
    for (std::string_view word : words) {
        where = word == "global" || word == "shared" || word == "local" || word == "param" ? word : where;
        wide  = word == "v2" ? 1 : word == "v4" ? 2 : wide;
    }
    chooser found = size == 0 || size > 8 ? NULL : choosers[std::countr_zero(size)][wide];
    return found != NULL ? found(words[0] == "st", where) : NULL;
}
}    // namespace ptx
