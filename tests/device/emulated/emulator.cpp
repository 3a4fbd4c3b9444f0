// SPDX-License-Identifier: MIT
// Fibers that take turns until all have ended. A fiber gives up its turn at a barrier; when none can go on and not all
// wait at the block's, the barrier is one that some of the threads never reach. Fibers live as long as the process, and
// do what a thread of one block after another does: to begin one takes system calls.
#include "emulator.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include <numeric>
#include <random>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

thread_local uint4 dynamic_shared_words[(227 << 10) / sizeof(uint4)];

using emulator::posted;

namespace
{
// A lane looks at what it received before it calls again, and in each round of turns it calls once at most: by the time
// that so many calls have followed, nobody needs the first one's words.
enum { STACK_BYTES = 128 << 10, CALLS_KEPT = 64 };

struct warp {
    posted   received[CALLS_KEPT][emulator::WARP];
    unsigned calls;
    unsigned waiting;    // lanes that wait in a collective call
};

struct late_copy {
    void       *to;
    const void *from;
    size_t      bytes;
    int         mark;    // marks of the thread before it
};

struct fiber {
    jmp_buf           turn;
    bool              has_started;
    std::vector<char> stack;
    dim3              thread;
    bool              is_done;
    unsigned          barrier;    // of the block, that it waits for or has passed
    unsigned          mask;       // of the warp's collective call that it waits in; 0: none
    posted            own;
    const posted     *received;    // of all lanes, in the latest such call

    std::vector<late_copy> copies;
    int                    marks;
};

struct block {
    std::vector<fiber> fibers;    // of the largest block so far
    std::vector<warp>  warps;
    unsigned           threads, alive;       // of this block; those that have not ended
    unsigned           arrived, barriers;    // at the barrier at hand; completed
    int                votes[2];             // at the barrier at hand and the one before it
    int                running;
    jmp_buf            scheduler;

    const std::function<void()> *body;
};

block        the_block;
unsigned     the_order;
std::mt19937 the_shuffle;

fiber &self()
{
    return the_block.fibers[(size_t)the_block.running];
}

void give_up_turn()
{
    if (_setjmp(self().turn) == 0) {
        _longjmp(the_block.scheduler, 1);
    }
}

void enter()
{
    for (;;) {
        (*the_block.body)();
        self().is_done = true;
        the_block.alive--;
        give_up_turn();
    }
}

// A context begins a fiber; later turns jump, which costs no system call.
void take_turn()
{
    static ucontext_t begun;
    if (_setjmp(the_block.scheduler) != 0) {
        return;
    }
    if (self().has_started) {
        _longjmp(self().turn, 1);
    }
    self().has_started = true;
    self().stack.resize(STACK_BYTES);
    getcontext(&begun);
    begun.uc_stack = {.ss_sp = self().stack.data(), .ss_flags = 0, .ss_size = self().stack.size()};
    makecontext(&begun, enter, 0);
    setcontext(&begun);
}

bool can_run(int index)
{
    const fiber &candidate = the_block.fibers[(size_t)index];
    return !candidate.is_done && candidate.mask == 0 && candidate.barrier <= the_block.barriers;
}

[[noreturn]] void stuck()
{
    fprintf(stderr, "block (%u, %u, %u): threads wait at a barrier that others never reach:", blockIdx.x, blockIdx.y,
            blockIdx.z);
    for (size_t i = 0; i < the_block.threads; i++) {
        const fiber &each = the_block.fibers[i];
        if (!each.is_done && each.mask != 0) {
            fprintf(stderr, " %zu (warp's, mask %08x)", i, each.mask);
        }
    }
    fprintf(stderr, "; %u of %u at the block's\n", the_block.arrived, the_block.alive);
    abort();
}

// Gives each lane of a warp that can go on one turn; returns whether there was one.
bool run_warp(int warp, std::vector<int> &lanes)
{
    bool has_run = false;
    if (the_order > 1) {
        std::shuffle(lanes.begin(), lanes.end(), the_shuffle);
    }
    for (int lane : lanes) {
        int index = warp * emulator::WARP + lane;
        if (index < (int)the_block.threads && can_run(index)) {
            has_run           = true;
            the_block.running = index;
            threadIdx         = self().thread;
            take_turn();
        }
    }
    return has_run;
}

// Every warp runs as far as it can before the next one begins, so that it comes too early or too late for what no
// barrier orders.
void take_turns()
{
    std::vector<int> warps((the_block.threads + emulator::WARP - 1) / emulator::WARP), lanes(emulator::WARP);
    std::iota(warps.begin(), warps.end(), 0);
    std::iota(lanes.begin(), lanes.end(), 0);
    if (the_order == 1) {
        std::reverse(warps.begin(), warps.end());
        std::reverse(lanes.begin(), lanes.end());
    }
    while (the_block.alive > 0) {
        if (the_order > 1) {
            std::shuffle(warps.begin(), warps.end(), the_shuffle);
        }
        for (int warp : warps) {
            while (run_warp(warp, lanes)) {
            }
        }
        if (the_block.arrived != the_block.alive) {
            stuck();
        }
        the_block.arrived = 0;
        the_block.barriers++;
        the_block.votes[the_block.barriers % 2] = 0;    // those of the barrier before are still looked at
    }
}

void run_block(dim3 size)
{
    size_t threads = (size_t)size.x * size.y * size.z;
    if (the_block.fibers.size() < threads) {
        the_block.fibers.resize(threads);
        the_block.warps.resize((threads + emulator::WARP - 1) / emulator::WARP);
    }
    the_block.threads = the_block.alive = (unsigned)threads;
    the_block.arrived                   = 0;
    the_block.barriers                  = 0;
    the_block.votes[0]                  = 0;
    for (size_t i = 0; i < threads; i++) {
        fiber &each  = the_block.fibers[i];
        each.thread  = dim3((unsigned)(i % size.x), (unsigned)(i / size.x % size.y), (unsigned)(i / size.x / size.y));
        each.is_done = false;
        each.barrier = 0;
        each.mask    = 0;
        each.marks   = 0;
        each.copies.clear();
    }
    take_turns();
}
}    // namespace

void emulator_order(unsigned seed)
{
    the_order = seed;
    the_shuffle.seed(seed);
}

namespace emulator
{
void run(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &body)
{
    gridDim        = grid;
    blockDim       = block;
    the_block.body = &body;
    begin_launch();
    for (unsigned i = 0; i < grid.x * grid.y * grid.z; i++) {
        blockIdx = dim3(i % grid.x, i / grid.x % grid.y, i / grid.x / grid.y);
        memset(dynamic_shared_words, 0xff, shared_bytes);    // NaN: nothing may rely on what was there
        run_block(block);
    }
}

int wait_block(bool vote)
{
    int *votes = &the_block.votes[the_block.barriers % 2];
    *votes += vote;
    the_block.arrived++;
    self().barrier = the_block.barriers + 1;
    give_up_turn();
    return *votes;
}

int lane()
{
    return the_block.running % WARP;
}

// The last lane of the mask to call hands everything to all of them.
const posted *collect(unsigned mask, const void *value, size_t bytes)
{
    size_t after = the_block.threads - (size_t)(the_block.running - lane());
    bool   lacks = after < WARP && mask >> after != 0;
    if ((mask >> lane() & 1u) == 0 || lacks || bytes > sizeof(posted)) {
        fprintf(stderr, "thread %d: mask %08x lacks it or names lanes that are not there\n", the_block.running, mask);
        abort();
    }
    warp  &its   = the_block.warps[(size_t)the_block.running / WARP];
    fiber *lanes = &the_block.fibers[(size_t)(the_block.running - lane())];
    self().mask  = mask;
    memcpy(self().own.bytes, value, bytes);
    its.waiting |= 1u << lane();
    bool is_last = (its.waiting & mask) == mask;
    for (int i = 0; i < WARP && is_last; i++) {
        is_last = (mask >> i & 1u) == 0 || lanes[i].mask == mask;
    }
    if (!is_last) {
        give_up_turn();
        return self().received;
    }
    posted *kept = its.received[its.calls++ % CALLS_KEPT];
    for (int i = 0; i < WARP; i++) {
        kept[i] = posted{};
        if ((mask >> i & 1u) != 0) {
            kept[i]           = lanes[i].own;
            lanes[i].mask     = 0;
            lanes[i].received = kept;
        }
    }
    its.waiting &= ~mask;
    return kept;
}

void wait_warp(unsigned mask)
{
    collect(mask, "", 0);
}

void copy_late(void *to, const void *from, size_t bytes)
{
    self().copies.push_back({to, from, bytes, self().marks});
}

void copy_mark()
{
    self().marks++;
}

void copy_arrive(int pending)
{
    std::vector<late_copy> &copies = self().copies;
    while (!copies.empty() && copies.front().mark < self().marks - pending) {
        memcpy(copies.front().to, copies.front().from, copies.front().bytes);
        copies.erase(copies.begin());
    }
}
}    // namespace emulator
