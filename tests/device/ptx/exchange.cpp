// SPDX-License-Identifier: MIT
// Emulates PTX instructions that work across lanes: shuffles, votes, matrix multiplication, and barriers.
#include "shadow.h"

#include <bit>

namespace ptx
{
namespace
{
// Checks the member masks of an instruction. The mask of each lane must contain this lane, and only lanes that execute
// the instruction.
const uint32_t *masks_of(warp &w, const instruction &its, int operand)
{
    const uint32_t *masks = w.lanes<uint32_t>(its.operands[operand]);
    for_lanes(w.active, [&](int lane) {
        if ((masks[lane] >> lane & 1u) == 0 || (masks[lane] & ~w.active) != 0) {
            fail(w, its, lane, "mask %08x lacks the lane or names lanes that do not come: %08x do", masks[lane],
                 w.active);
        }
    });
    return masks;
}

void need_all(warp &w, const instruction &its)
{
    if (w.active != ALL) {
        fail(w, its, -1, "takes the whole warp, but lanes %08x come", w.active);
    }
}

enum way_of { UP, DOWN, ACROSS, INDEX };

// Emulates shfl.sync with the operands d|p, a, b, c, mask. The source lane is computed as in the table of the PTX ISA.
template <way_of way> void shuffle(warp &w, const instruction &its)
{
    const uint32_t *masks = masks_of(w, its, 5), *a = w.lanes<uint32_t>(its.operands[2]);
    const uint32_t *b = w.lanes<uint32_t>(its.operands[3]), *c = w.lanes<uint32_t>(its.operands[4]);
    uint32_t        result[LANES], within                      = 0;
    for_lanes(w.active, [&](int lane) {
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
    });
    w.put(its.operands[0], result);
    if (its.operands[1] != NONE) {
        w.put_predicate(its.operands[1], within);
    }
}

uint32_t source_predicate(const warp &w, const instruction &its, int operand)
{
    return w.active & (w.predicates[its.operands[operand]] ^ (its.is_negated_source ? ALL : 0));
}

void ballot(warp &w, const instruction &its)
{
    const uint32_t *masks = masks_of(w, its, 2);
    uint32_t        votes = source_predicate(w, its, 1), result[LANES];
    for_lanes(w.active, [&](int lane) { result[lane] = votes & masks[lane]; });
    w.put(its.operands[0], result);
}

template <bool is_any> void vote(warp &w, const instruction &its)
{
    const uint32_t *masks = masks_of(w, its, 2);
    uint32_t        votes = source_predicate(w, its, 1), result = 0;
    for_lanes(w.active, [&](int lane) {
        uint32_t found = votes & masks[lane];
        result |= (uint32_t)(is_any ? found != 0 : found == masks[lane]) << lane;
    });
    w.put_predicate(its.operands[0], result);
}

void match(warp &w, const instruction &its)
{
    const uint32_t *masks = masks_of(w, its, 2), *a = w.lanes<uint32_t>(its.operands[1]);
    uint32_t        result[LANES] = {};
    for (int i = 0; i < LANES * LANES; i++) {
        int lane = i / LANES, other = i % LANES;
        result[lane] |= (uint32_t)((w.active & masks[lane] & 1u << other) != 0 && a[lane] == a[other]) << other;
    }
    w.put(its.operands[0], result);
}

// Starts a new segment of the warp, so that accesses before bar.warp.sync are ordered before later ones.
void synchronize(warp &w, const instruction &its)
{
    masks_of(w, its, 0);
    w.segment = begin_segment(w.number);
}

void active_mask(warp &w, const instruction &its)
{
    uint32_t result[LANES];
    std::fill(result, result + LANES, w.active);
    w.put(its.operands[0], result);
}

// Emulates ldmatrix. Lanes 8 i to 8 i + 7 have the row addresses of matrix i. A lane receives the elements 2 (lane % 4)
// and 2 (lane % 4) + 1 of row lane / 4, or of column lane / 4 if transposed.
template <int count, bool is_transposed> void load_matrix(warp &w, const instruction &its)
{
    uint16_t rows[count][8][8];
    need_all(w, its);
    for (int lane = 0; lane < 8 * count; lane++) {
        uint64_t address = address_of(w, its, lane, count);
        read_lane<16, SHARED>(w, its, lane, address, (char *)rows[lane / 8][lane % 8], w.tag_of(SEVERAL));
    }
    for (int i = 0; i < count; i++) {
        uint32_t *to = w.lanes<uint32_t>(its.operands[i]);
        for (int lane = 0; lane < LANES; lane++) {
            int      across = lane / 4, along = lane % 4 * 2;
            uint32_t low = is_transposed ? rows[i][along][across] : rows[i][across][along];
            to[lane] = low | (uint32_t)(is_transposed ? rows[i][along + 1][across] : rows[i][across][along + 1]) << 16;
        }
    }
    the_traffic.fed_bytes += the_count_runs ? 4 * count * LANES : 0;
}

float low_half(uint32_t word)
{
    return std::bit_cast<float>(word << 16);
}
float high_half(uint32_t word)
{
    return std::bit_cast<float>(word & 0xffff0000u);
}

// Emulates mma: d [16, 8] = a [16, 16] b [16, 8] + c, summed in the order of k. The PTX ISA says which lane has which
// elements ("Matrix Fragments for mma.m16n8k16"). The operands are four registers of d, four of a, two of b, four of c.
void multiply_matrix(warp &w, const instruction &its)
{
    float a[16][16], b[16][8], c[16][8];
    need_all(w, its);
    for (int part = 0; part < 4; part++) {
        const uint32_t *from = w.lanes<uint32_t>(its.operands[4 + part]);
        const float    *sum  = w.lanes<float>(its.operands[10 + part]);
        for (int lane = 0; lane < LANES; lane++) {
            float *to = &a[lane / 4 + part % 2 * 8][lane % 4 * 2 + part / 2 * 8];
            to[0]     = low_half(from[lane]);
            to[1]     = high_half(from[lane]);
            c[lane / 4 + part / 2 * 8][lane % 4 * 2 + part % 2] = sum[lane];
        }
    }
    for (int part = 0; part < 2; part++) {
        const uint32_t *from = w.lanes<uint32_t>(its.operands[8 + part]);
        for (int lane = 0; lane < LANES; lane++) {
            b[lane % 4 * 2 + part * 8][lane / 4]     = low_half(from[lane]);
            b[lane % 4 * 2 + part * 8 + 1][lane / 4] = high_half(from[lane]);
        }
    }
    for (int row = 0; row < 16; row++) {
        for (int k = 0; k < 16; k++) {
            for (int column = 0; column < 8; column++) {
                c[row][column] += a[row][k] * b[k][column];
            }
        }
    }
    for (int part = 0; part < 4; part++) {
        float *to = w.lanes<float>(its.operands[part]);
        for (int lane = 0; lane < LANES; lane++) {
            to[lane] = c[lane / 4 + part / 2 * 8][lane % 4 * 2 + part % 2];
        }
    }
    the_traffic.operations += the_count_runs ? 2 * 16 * 16 * 8 : 0;
}

void add_votes(warp &w, const instruction &its)
{
    arrive(w, its);
    w.vote = source_predicate(w, its, 2);
}
}    // namespace

void add_exchange(table &to)
{
    to.insert({{"shfl.sync.up.b32", shuffle<UP>},
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
               {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", multiply_matrix}});
}

// Stores the result of bar.red after all warps have arrived.
void finish_barrier(warp &w, const instruction &its, uint32_t votes)
{
    if (its.run != add_votes) {
        return;
    }
    if (strncmp(its.text, "bar.red.popc", 12) == 0) {
        uint32_t *to = w.lanes<uint32_t>(its.operands[0]);
        std::fill(to, to + LANES, votes);
        return;
    }
    bool is_or                    = strncmp(its.text, "bar.red.or", 10) == 0;
    w.predicates[its.operands[0]] = (is_or ? votes > 0 : votes == the_launch.alive) ? ALL : 0;
}
}    // namespace ptx
