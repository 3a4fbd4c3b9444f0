// SPDX-License-Identifier: MIT
// Runs the blocks and warps of a kernel launch. Lanes of a warp diverge at branches and join again.
#include "ptx.h"

#include "../emulated/emulator.h"

#include <cxxabi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace ptx
{
launch the_launch;

namespace
{
unsigned          the_order;
std::mt19937      the_shuffle;
uint32_t          the_segments = 1;    // number of the next segment
std::vector<warp> the_warps;           // warps of the running block

enum { MOST_SEGMENTS = 1 << (32 - LANE_BITS), MARGIN = 1 << 24 };

dim3 thread_of(uint32_t index)
{
    const dim3 &size = the_launch.block;
    return dim3(index % size.x, index / size.x % size.y, index / size.x / size.y);
}

// Sets the special registers of all lanes, except %ctaid, the only one that differs between blocks.
void fill_special(warp &w)
{
    const dim3 &size = the_launch.block, &grid = the_launch.grid;
    for (uint32_t l = 0; l < LANES; l++) {
        const dim3     thread   = thread_of(w.number * LANES + l);
        const uint32_t values[] = {thread.x, thread.y, thread.z, size.x, size.y, size.z,         grid.x, grid.y,
                                   grid.z,   l,        0,        0,      0,      (1u << l) - 1u, 1u << l};
        for (const constant &each : w.code->special) {
            w.lanes<uint32_t>(each.unit)[l] = values[each.value];
        }
    }
}
void fill_block_index(warp &w)
{
    const dim3    &index    = the_launch.index;
    const uint32_t values[] = {index.x, index.y, index.z};
    for (const constant &each : w.code->special) {
        if (each.value - BLOCK_INDEX < 3) {
            uint32_t *to = w.lanes<uint32_t>(each.unit);
            std::fill(to, to + LANES, values[each.value - BLOCK_INDEX]);
        }
    }
}

// Allocates the registers of a warp and sets its constants.
void prepare_warp(warp &w, const kernel &code, uint32_t number, uint32_t threads)
{
    static std::vector<char>     registers;
    static std::vector<uint32_t> predicates;
    uint32_t                     warps = (threads + LANES - 1) / LANES;
    if (number == 0) {
        registers.resize((size_t)warps * code.units * UNIT + UNIT);
        predicates.resize((size_t)warps * code.predicates);
    }
    char *begin     = (char *)(((uintptr_t)registers.data() + UNIT - 1) / UNIT * UNIT);
    w.code          = &code;
    w.number        = number;
    w.registers     = begin + (size_t)number * code.units * UNIT;
    w.predicates    = predicates.data() + (size_t)number * code.predicates;
    w.predicates[0] = 0;
    w.predicates[1] = ALL;
    memset(w.nearest, 0, sizeof(w.nearest));
    w.local.resize((size_t)code.local_bytes * LANES);
    w.local_written.resize((size_t)code.local_bytes * LANES);
    for (const constant &each : code.constants) {
        for (uint32_t l = 0; l < LANES; l++) {
            memcpy(w.lanes<char>(each.unit) + l * each.bytes, &each.value, each.bytes);
        }
    }
    fill_special(w);
}

// Reserves two segments whose tags mean "read by several warps" and "accessed by an atomic operation" (shadow.h).
uint32_t begin_interval(void)
{
    uint32_t first = begin_segment(NONE);
    begin_segment(NONE);
    return first;
}

void begin_block(uint32_t threads)
{
    launch &now     = the_launch;
    now.block_first = the_segments;
    now.owners.clear();
    now.blocks.push_back(now.block_first);
    now.interval = begin_interval();
    for (warp &w : the_warps) {
        uint32_t lanes = std::min<uint32_t>(threads - w.number * LANES, LANES);
        w.active = w.alive = lanes == LANES ? ALL : (1u << lanes) - 1u;
        w.pc               = 0;
        w.join             = NONE;
        w.barrier          = NULL;
        w.has_ended        = false;
        w.ways.clear();
        w.copies.clear();
        memset(w.groups, 0, sizeof(w.groups));
        w.segment = begin_segment(w.number);
        fill_block_index(w);
    }
}

// Continues with lanes that wait at a join or for the other side of a branch. Returns false if there are none.
bool resume(warp &w)
{
    do {
        if (w.ways.empty()) {
            w.has_ended = true;
            return false;
        }
        w.pc     = w.ways.back().pc;
        w.join   = w.ways.back().join;
        w.active = w.ways.back().lanes & w.alive;
        w.ways.pop_back();
    } while (w.active == 0);
    return true;
}

// Runs a warp until its next barrier or its end.
void run_warp(warp &w)
{
    const instruction *code    = w.code->code.data();
    uint8_t           *reached = w.code->reached;
    while (!w.has_ended && w.barrier == NULL) {
        if (w.pc == w.join || w.active == 0) {
            resume(w);
            continue;
        }
        const instruction &its = code[w.pc];
        reached[w.pc++]        = 1;
        if (its.guard == NONE) {
            its.run(w, its);
            continue;
        }
        uint32_t all = w.active;
        w.active &= w.predicates[its.guard] ^ (its.is_negated ? ALL : 0);
        if (w.active != 0) {
            its.run(w, its);
        }
        w.active = all & w.alive;
    }
}

// Releases the barrier at which all remaining warps wait, and computes the result of bar.red.
void release(void)
{
    const instruction *first = NULL;
    uint32_t           votes = 0;
    the_launch.alive         = 0;
    for (warp &w : the_warps) {
        if (w.barrier != NULL && first != NULL && w.barrier != first) {
            fail(w, *w.barrier, -1, "other warps wait at another barrier, that of line %u", first->line);
        }
        first = w.barrier != NULL ? w.barrier : first;
        votes += w.barrier != NULL ? (uint32_t)__builtin_popcount(w.vote) : 0;
        the_launch.alive += w.barrier != NULL ? (uint32_t)__builtin_popcount(w.active) : 0;
    }
    the_launch.interval = begin_interval();
    for (warp &w : the_warps) {
        if (w.barrier != NULL) {
            finish_barrier(w, *w.barrier, votes);
            w.barrier = NULL;
            w.segment = begin_segment(w.number);
        }
    }
}

void run_block(std::vector<uint32_t> &order)
{
    for (bool goes_on = true; goes_on;) {
        if (the_order > 1) {
            std::shuffle(order.begin(), order.end(), the_shuffle);
        }
        goes_on = false;
        for (uint32_t number : order) {
            run_warp(the_warps[number]);
            goes_on = goes_on || the_warps[number].barrier != NULL;
        }
        if (goes_on) {
            release();
        }
    }
}

std::vector<uint32_t> ordered(uint32_t count)
{
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    if (the_order == 1) {
        std::reverse(order.begin(), order.end());
    } else if (the_order > 1) {
        std::shuffle(order.begin(), order.end(), the_shuffle);
    }
    return order;
}

[[noreturn]] void explain(const char *kernel, uint32_t line, const char *text, const char *where, const char *format,
                          va_list arguments)
{
    char  what[512];
    int   status, length = (int)strcspn(text, ";\n");
    char *plain = abi::__cxa_demangle(kernel, NULL, NULL, &status);
    vsnprintf(what, sizeof(what), format, arguments);
    fflush(NULL);
    fprintf(stderr, "ptx: %s%s: line %u, %.*s: %s\n", plain != NULL ? plain : kernel, where, line, length, text, what);
    abort();
}
}    // namespace

void fail(const warp &of, const instruction &at, int lane, const char *format, ...)
{
    char    where[160];
    dim3    thread = thread_of(of.number * LANES + (uint32_t)(lane < 0 ? 0 : lane)), block = the_launch.index;
    va_list arguments;
    va_start(arguments, format);
    snprintf(where, sizeof(where), ", block (%u, %u, %u), %s (%u, %u, %u)", block.x, block.y, block.z,
             lane < 0 ? "warp of thread" : "thread", thread.x, thread.y, thread.z);
    explain(of.code->name.c_str(), at.line, at.text, where, format, arguments);
}

void fail_kernel(const char *kernel, uint32_t line, const char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    explain(kernel, line, text, "", format, arguments);
}

uint32_t begin_segment(uint32_t warp)
{
    the_launch.owners.push_back(warp);
    return the_segments++;
}

void run_grid(const kernel &code, dim3 grid, dim3 block, const char *parameters)
{
    uint32_t threads = block.x * block.y * block.z, warps = (threads + LANES - 1) / LANES;
    if (the_segments > MOST_SEGMENTS - MARGIN) {
        forget_segments();
        the_warps.clear();
        the_segments = 1;
    }
    launch &now = the_launch;
    now.code = &code, now.grid = grid, now.block = block, now.parameters = parameters;
    now.first = the_segments;
    the_segments += 2;    // their tags mean: read by several blocks, and accessed by an atomic operation
    now.blocks.clear();
    the_warps.resize(warps);
    for (uint32_t i = 0; i < warps; i++) {
        prepare_warp(the_warps[i], code, i, threads);
    }
    std::vector<uint32_t> order = ordered(warps);
    for (uint32_t i : ordered(grid.x * grid.y * grid.z)) {
        now.index = dim3(i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y);
        begin_block(threads);
        run_block(order);
    }
}

// If lanes diverge at a branch, the lanes of each side run its code, one side after the other. Then all continue at the
// join.
void branch(warp &w, const instruction &its)
{
    uint32_t there = w.active, other = 0;
    if (its.operands[0] != NONE) {
        there = w.active & (w.predicates[its.operands[0]] ^ (its.is_negated_source ? ALL : 0));
        other = w.active & ~there;
    }
    if (there != 0 && other != 0) {
        if (its.join != w.join) {
            w.ways.push_back({its.join, w.join, w.active});
        }
        bool is_first = the_order != 1;    // in descending order, the side that does not branch runs first
        w.ways.push_back({is_first ? w.pc : its.target, its.join, is_first ? other : there});
        w.join   = its.join;
        w.active = is_first ? there : other;
        w.pc     = is_first ? its.target : w.pc;
    } else if (there != 0) {
        w.pc = its.target;
    }
}

void leave(warp &w, const instruction &)
{
    w.alive &= ~w.active;
    w.active = 0;
}

void arrive(warp &w, const instruction &its)
{
    if (w.active != w.alive) {
        fail(w, its, -1, "lanes %08x come to the barrier of the block, %08x do not come with them", w.active,
             w.alive & ~w.active);
    }
    w.vote    = 0;
    w.barrier = &its;
}
}    // namespace ptx

void emulator_order(unsigned seed)
{
    ptx::the_order = seed;
    ptx::the_shuffle.seed(seed);
}
