// SPDX-License-Identifier: MIT
// The threads of a block as contexts that hand over to each other where they wait.
#include "emulator.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <ucontext.h>

dim3 threadIdx, blockIdx, blockDim, gridDim;
bool emulator_is_reversed;

enum { THREADS_MAX = 1024, WARP = 32, STACK_BYTES = 256 << 10 };

enum thread_state { READY, AT_WARP, AT_BLOCK, DONE };

struct emulated_thread {
    ucontext_t   context;
    thread_state state;
    uint64_t     value;    // that it brings to others
};
static emulated_thread threads[THREADS_MAX];
static ucontext_t      scheduler;
static char           *stacks;
static void (*thread_body)(void *);
static void *thread_context;

static void enter()
{
    thread_body(thread_context);
    threads[threadIdx.x].state = DONE;
}

static void wait(thread_state state)
{
    emulated_thread *thread = &threads[threadIdx.x];
    thread->state           = state;
    swapcontext(&thread->context, &scheduler);
}

void emulator_synchronize(bool is_whole_block)
{
    wait(is_whole_block ? AT_BLOCK : AT_WARP);
}

uint64_t emulator_exchange_in_warp(uint64_t value, uint32_t from)
{
    threads[threadIdx.x].value = value;
    wait(AT_WARP);
    value = threads[threadIdx.x / WARP * WARP + from % WARP].value;
    wait(AT_WARP);    // the values have been read
    return value;
}

uint32_t emulator_count(bool flag, bool is_whole_block, uint32_t *flags_of_warp)
{
    uint32_t first = is_whole_block ? 0 : threadIdx.x / WARP * WARP;
    uint32_t end = is_whole_block ? blockDim.x : first + WARP, count = 0, flags = 0;
    threads[threadIdx.x].value = flag;
    emulator_synchronize(is_whole_block);
    for (uint32_t i = first; i < end; i++) {
        count += threads[i].value != 0;
        flags |= (uint32_t)(threads[i].value != 0) << (i % WARP);
    }
    emulator_synchronize(is_whole_block);
    if (flags_of_warp != nullptr) {
        *flags_of_warp = flags;
    }
    return count;
}

// Lets go on the threads first .. end - 1 if all that have not ended wait for that; returns whether they did.
static bool release(uint32_t first, uint32_t end, thread_state state)
{
    uint32_t waiting = 0, running = 0;
    for (uint32_t i = first; i < end; i++) {
        waiting += threads[i].state == state;
        running += threads[i].state != DONE;
    }
    for (uint32_t i = first; i < end && waiting == running; i++) {
        threads[i].state = threads[i].state == DONE ? DONE : READY;
    }
    return waiting > 0 && waiting == running;
}

// Runs a warp until its threads wait for others of the block, or for what never comes.
static void run_warp(uint32_t first)
{
    do {
        for (uint32_t turn = 0; turn < WARP; turn++) {
            uint32_t i = first + (emulator_is_reversed ? WARP - 1 - turn : turn);
            if (threads[i].state == READY) {
                threadIdx = dim3(i);
                swapcontext(&scheduler, &threads[i].context);
            }
        }
    } while (release(first, first + WARP, AT_WARP));
}

static void run_block(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        getcontext(&threads[i].context);
        threads[i].context.uc_stack.ss_sp   = stacks + (size_t)i * STACK_BYTES;
        threads[i].context.uc_stack.ss_size = STACK_BYTES;
        threads[i].context.uc_link          = &scheduler;
        threads[i].state                    = READY;
        makecontext(&threads[i].context, enter, 0);
    }
    do {
        for (uint32_t turn = 0; turn < count; turn += WARP) {
            run_warp(emulator_is_reversed ? count - WARP - turn : turn);
        }
    } while (release(0, count, AT_BLOCK));
    for (uint32_t i = 0; i < count; i++) {
        if (threads[i].state != DONE) {
            fprintf(stderr, "emulator: thread %u of block %u waits for a barrier that others do not reach\n", i,
                    blockIdx.x);
            abort();
        }
    }
}

void emulator_run(uint32_t blocks, uint32_t count, size_t shared_bytes, void (*body)(void *), void *context)
{
    if (count % WARP != 0 || count > THREADS_MAX || shared_bytes > sizeof(dynamic_shared_words)) {
        fprintf(stderr, "emulator: a block of %u threads with %zu bytes\n", count, shared_bytes);
        abort();
    }
    if (stacks == nullptr) {
        stacks = static_cast<char *>(mmap(nullptr, (size_t)THREADS_MAX * STACK_BYTES, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    }
    thread_body    = body;
    thread_context = context;
    blockDim       = dim3(count);
    gridDim        = dim3(blocks);
    for (uint32_t block = 0; block < blocks; block++) {
        blockIdx = dim3(block);
        memset(dynamic_shared_words, 0xff, sizeof(dynamic_shared_words));    // NaN, and -1
        run_block(count);
    }
}
