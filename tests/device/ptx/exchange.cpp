// SPDX-License-Identifier: MIT
// What lanes of a warp do together: shuffles, votes, matrix products; and barriers.
#include "shadow.h"
#include "traffic.h"

#include <bit>
#include <unordered_map>

namespace ptx
{
namespace
{
uint32_t operand(const warp &w, const instruction &its, int index)
{
    return w.code->operands[its.more + (uint32_t)index];
}

// Every lane has to name itself, and only lanes that come with it.
const uint32_t *masks_of(warp &w, const instruction &its, int index)
{
    const uint32_t *masks = w.lanes<uint32_t>(operand(w, its, index));
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        if ((masks[lane] >> lane & 1u) == 0 || (masks[lane] & ~w.active) != 0) {
            fail(w, its, lane, "mask %08x lacks the lane or names lanes that do not come: %08x do", masks[lane],
                 w.active);
        }
    }
    return masks;
}

void need_all(warp &w, const instruction &its)
{
    if (w.active != ALL) {
        fail(w, its, -1, "takes the whole warp, but lanes %08x come", w.active);
    }
}

enum way_of { UP, DOWN, ACROSS, INDEX };

// d|p, a, b, c, mask: the lane that d is from, by PTX ISA's table of shfl.sync.
template <way_of way> void shuffle(warp &w, const instruction &its)
{
    const uint32_t *masks = masks_of(w, its, 5), *a = w.lanes<uint32_t>(operand(w, its, 2));
    const uint32_t *b = w.lanes<uint32_t>(operand(w, its, 3)), *c = w.lanes<uint32_t>(operand(w, its, 4));
    uint32_t        result[LANES], within                         = 0;
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        int      lane    = __builtin_ctz(left);
        uint32_t segment = c[lane] >> 8 & 31u, own = (uint32_t)lane, by = b[lane] & 31u;
        int      last     = (int)((own & segment) | (c[lane] & 31u & ~segment));
        int      from     = way == UP      ? lane - (int)by
                            : way == DOWN  ? lane + (int)by
                            : way == INDEX ? (int)((own & segment) | (by & ~segment))
                                           : (int)(own ^ by);
        bool     is_there = way == UP ? from >= last : from <= last;
        from              = is_there ? from : lane;
        if ((masks[lane] >> from & 1u) == 0) {
            fail(w, its, lane, "takes the value of lane %d, which does not come", from);
        }
        result[lane] = a[from];
        within |= (uint32_t)is_there << lane;
    }
    uint32_t *to = w.lanes<uint32_t>(its.to), predicate = operand(w, its, 1);
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        to[__builtin_ctz(left)] = result[__builtin_ctz(left)];
    }
    if (predicate != NONE) {
        w.predicates[predicate] = (w.predicates[predicate] & ~w.active) | within;
    }
}

uint32_t source_predicate(const warp &w, const instruction &its, int index)
{
    return w.active & (w.predicates[operand(w, its, index)] ^ (its.is_negated_source ? ALL : 0));
}

void ballot(warp &w, const instruction &its)
{
    const uint32_t *masks = masks_of(w, its, 2);
    uint32_t        votes = source_predicate(w, its, 1);
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        int lane                        = __builtin_ctz(left);
        w.lanes<uint32_t>(its.to)[lane] = votes & masks[lane];
    }
}

template <bool is_any> void vote(warp &w, const instruction &its)
{
    const uint32_t *masks = masks_of(w, its, 2);
    uint32_t        votes = source_predicate(w, its, 1), result = 0;
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        int lane = __builtin_ctz(left);
        result |= (uint32_t)(is_any ? (votes & masks[lane]) != 0 : (votes & masks[lane]) == masks[lane]) << lane;
    }
    w.predicates[its.to] = (w.predicates[its.to] & ~w.active) | result;
}

void match(warp &w, const instruction &its)
{
    const uint32_t *masks = masks_of(w, its, 2), *a = w.lanes<uint32_t>(its.a);
    uint32_t        result[LANES] = {};
    for (int i = 0; i < LANES * LANES; i++) {
        int lane = i / LANES, other = i % LANES;
        result[lane] |= (uint32_t)((w.active & masks[lane] & 1u << other) != 0 && a[lane] == a[other]) << other;
    }
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        w.lanes<uint32_t>(its.to)[__builtin_ctz(left)] = result[__builtin_ctz(left)];
    }
}

// Orders what the lanes do before and after.
void synchronize(warp &w, const instruction &its)
{
    masks_of(w, its, 0);
    w.segment = begin_segment(w.number);
}

void active_mask(warp &w, const instruction &its)
{
    for (uint32_t left = w.active; left != 0; left &= left - 1) {
        w.lanes<uint32_t>(its.to)[__builtin_ctz(left)] = w.active;
    }
}

// Rows of eight elements start where lanes 8 i to 8 i + 7 say, for matrix i. A lane receives elements 2 (lane % 4) and
// the next of row lane / 4; transposed: of column lane / 4.
template <int count, bool is_transposed> void load_matrix(warp &w, const instruction &its)
{
    uint16_t rows[8 * count][8];
    need_all(w, its);
    for (int lane = 0; lane < 8 * count; lane++) {
        read_lane<16, SHARED>(w, its, lane, address_of(w, its, its.a, lane), (char *)rows[lane], w.tag_of(SEVERAL));
    }
    for (int i = 0; i < LANES * count; i++) {
        int             lane = i % LANES, first = i / LANES * 8, across = lane / 4, along = lane % 4 * 2;
        const uint16_t *one                                 = rows[first + across] + along;
        uint32_t        low                                 = is_transposed ? rows[first + along][across] : one[0],
                 high                                       = is_transposed ? rows[first + along + 1][across] : one[1];
        w.lanes<uint32_t>(operand(w, its, i / LANES))[lane] = low | high << 16;
    }
    the_traffic.fed_bytes += the_count_runs ? 4 * count * LANES : 0;
}

float wide(uint32_t word, int half)
{
    return std::bit_cast<float>(half == 0 ? word << 16 : word & 0xffff0000u);
}

// d [16, 8] = a [16, 16] b [16, 8] + c, in the order of k; where lanes have what: PTX ISA, "Matrix Fragments for
// mma.m16n8k16".
void multiply_matrix(warp &w, const instruction &its)
{
    float a[16][16], b[16][8], c[16][8];
    need_all(w, its);
    for (int i = 0; i < LANES * 8; i++) {
        int lane = i % LANES, part = i / LANES / 2, half = i / LANES % 2;
        a[lane / 4 + part % 2 * 8][lane % 4 * 2 + half + part / 2 * 8] =
            wide(w.lanes<uint32_t>(operand(w, its, 4 + part))[lane], half);
        if (part < 2) {
            b[lane % 4 * 2 + half + part * 8][lane / 4] =
                wide(w.lanes<uint32_t>(operand(w, its, 8 + part))[lane], half);
            c[lane / 4 + part * 8][lane % 4 * 2 + half] = w.lanes<float>(operand(w, its, 10 + 2 * part + half))[lane];
        }
    }
    for (int row = 0; row < 16; row++) {
        for (int k = 0; k < 16; k++) {
            for (int column = 0; column < 8; column++) {
                c[row][column] += a[row][k] * b[k][column];
            }
        }
    }
    for (int i = 0; i < LANES * 4; i++) {
        int lane = i % LANES, part = i / LANES;
        w.lanes<float>(operand(w, its, part))[lane] = c[lane / 4 + part / 2 * 8][lane % 4 * 2 + part % 2];
    }
    the_traffic.operations += the_count_runs ? 2 * 16 * 16 * 8 : 0;
}

void add_votes(warp &w, const instruction &its)
{
    arrive(w, its);
    w.vote = source_predicate(w, its, 2);
}
}    // namespace

handler find_exchange(const std::string &opcode)
{
    static const std::unordered_map<std::string, handler> all = {
        {"shfl.sync.up.b32", shuffle<UP>},
        {"shfl.sync.down.b32", shuffle<DOWN>},
        {"shfl.sync.bfly.b32", shuffle<ACROSS>},
        {"shfl.sync.idx.b32", shuffle<INDEX>},
        {"vote.sync.ballot.b32", ballot},
        {"vote.sync.any.pred", vote<true>},
        {"vote.sync.all.pred", vote<false>},
        {"match.any.sync.b32", match},
        {"activemask.b32", active_mask},
        {"bar.warp.sync", synchronize},
        {"bar.sync", arrive},
        {"barrier.sync", arrive},
        {"bar.red.popc.u32", add_votes},
        {"bar.red.or.pred", add_votes},
        {"bar.red.and.pred", add_votes},
        {"ldmatrix.sync.aligned.m8n8.x1.shared.b16", load_matrix<1, false>},
        {"ldmatrix.sync.aligned.m8n8.x2.shared.b16", load_matrix<2, false>},
        {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", load_matrix<4, false>},
        {"ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16", load_matrix<1, true>},
        {"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", load_matrix<2, true>},
        {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", load_matrix<4, true>},
        {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", multiply_matrix},
    };
    auto found = all.find(opcode);
    return found == all.end() ? NULL : found->second;
}

// What a reduction by a barrier gives, when all warps have come.
void finish_barrier(warp &w, const instruction &its, uint32_t votes)
{
    const launch &now = the_launch;
    if (its.run != add_votes) {
        return;
    }
    if (strncmp(its.text, "bar.red.popc", 12) == 0) {
        for (int lane = 0; lane < LANES; lane++) {
            w.lanes<uint32_t>(its.to)[lane] = votes;
        }
        return;
    }
    bool is_or           = strncmp(its.text, "bar.red.or", 10) == 0;
    w.predicates[its.to] = (is_or ? votes > 0 : votes == now.alive) ? ALL : 0;
}
}    // namespace ptx
