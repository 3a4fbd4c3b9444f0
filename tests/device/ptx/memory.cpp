// SPDX-License-Identifier: MIT
// Device memory, which is allocated from the memory of the process, and the shadow memory that records accesses.
#include "shadow.h"

#include "../emulated/emulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <map>
#include <mutex>

namespace ptx
{
namespace
{
enum { SHARED_BYTES = DYNAMIC_AT + MOST_SHARED };

// Ranks are threads, so one rank may allocate while another runs a kernel.
std::mutex                          the_allocations_lock;
typedef std::lock_guard<std::mutex> guard;

std::map<uint64_t, memory> &allocations()
{
    static std::map<uint64_t, memory> all;    // keys are end addresses
    return all;
}

tag *make_shadow(size_t bytes)
{
    void *made =
        mmap(NULL, bytes * sizeof(tag), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) {
        perror("ptx: a shadow");
        abort();
    }
    return (tag *)made;
}

// Returns whether the access with this tag is ordered before the current access. It is if it was in an earlier launch,
// before a barrier, by the same thread, or before a bar.warp.sync of the warp.
bool is_before(const warp &w, tag of, tag own, space where)
{
    const launch &now     = the_launch;
    uint32_t      segment = of >> LANE_BITS;
    if (of == own || segment < (where == GLOBAL ? now.first : now.block_first)) {
        return true;
    }
    return segment >= now.block_first &&
           (segment < now.interval ||
            (segment != w.segment && segment != now.interval && now.owners[segment - now.block_first] == w.number));
}

std::string describe(tag of)
{
    const launch &now     = the_launch;
    uint32_t      segment = of >> LANE_BITS, lane = of & ((1u << LANE_BITS) - 1u);
    if (segment <= now.first + 1) {
        return segment == now.first ? "several blocks" : "an atomic operation";
    }
    if (segment < now.block_first) {
        return "another block";
    }
    uint32_t owner = now.owners[segment - now.block_first];
    return owner == NONE     ? "several warps, or an atomic operation,"
           : lane == SEVERAL ? "several lanes of warp " + std::to_string(owner)
                             : "thread " + std::to_string(owner * LANES + lane);
}

// Returns whether memory still has the bytes 0xff that cudaMalloc writes. Emulated libraries write without tags, so
// other bytes were written by one.
bool is_poison(const char *data, int bytes)
{
    while (bytes > 0 && data[bytes - 1] == (char)0xff) {
        bytes--;
    }
    return bytes == 0;
}

tag next_reader(const warp &w, tag reader, tag own, space where)
{
    uint32_t segment = reader >> LANE_BITS;
    if (reader == several_blocks() || reader == several_warps()) {
        return reader;
    }
    if (where == GLOBAL && segment >= the_launch.first && segment < the_launch.block_first) {
        return several_blocks();
    }
    return is_before(w, reader, own, where) ? own : segment == w.segment ? w.tag_of(SEVERAL) : several_warps();
}
}    // namespace

void check_read(warp &w, const instruction &its, int lane, const place &at, int bytes, space where, tag own)
{
    for (int i = 0; i < bytes; i++) {
        if (at.written[i] < (where == GLOBAL ? BY_HOST : the_launch.block_first << LANE_BITS)) {
            if (where != GLOBAL || is_poison(at.data, bytes)) {
                fail(w, its, lane, "reads byte %d of %d that nobody wrote", i, bytes);
            }
            at.written[i] = BY_HOST;
        }
        if (where == LOCAL) {
            continue;
        }
        if (!is_before(w, at.written[i], own, where)) {
            fail(w, its, lane, "race: reads byte %d of %d, which %s wrote since the last barrier", i, bytes,
                 describe(at.written[i]).c_str());
        }
        at.read[i] = next_reader(w, at.read[i], own, where);
    }
}

void check_write(warp &w, const instruction &its, int lane, const place &at, int bytes, space where)
{
    tag own = w.tag_of(lane);
    for (int i = 0; i < bytes; i++) {
        for (tag of : {at.written[i], at.read[i]}) {
            if (!is_before(w, of, own, where)) {
                fail(w, its, lane, "race: writes byte %d of %d, which %s %s since the last barrier", i, bytes,
                     describe(of).c_str(), of == at.written[i] ? "wrote" : "read");
            }
        }
    }
}

memory *find_memory(uint64_t address, uint64_t bytes)
{
    guard held(the_allocations_lock);
    auto  next = allocations().upper_bound(address);
    return next != allocations().end() && address >= next->second.begin && address + bytes <= next->second.end
               ? &next->second
               : NULL;
}

memory *find_allocation(warp &w, const instruction &its, int lane, space where, uint64_t address, uint64_t bytes)
{
    if (where == GLOBAL) {
        memory *found = find_memory(address, bytes);
        if (found != NULL) {
            return found;
        }
        fail(w, its, lane, "%d bytes at %#llx are of no allocation, or go beyond its end", (int)bytes,
             (unsigned long long)address);
    }
    for (memory &each : the_launch.shared) {
        if (address >= each.begin && address + bytes <= each.end) {
            return &each;
        }
    }
    fail(w, its, lane, "%d bytes at %lld of shared memory are of no array, or go beyond its end", (int)bytes,
         (long long)(address - SHARED_START));
}

place find_local(warp &w, const instruction &its, int lane, uint64_t address, uint64_t bytes)
{
    uint64_t at = address - LOCAL_START, size = w.code->local_bytes;
    if (address < LOCAL_START || at + bytes > size) {
        fail(w, its, lane, "%d bytes at %lld of %d bytes of local memory", (int)bytes, (long long)at, (int)size);
    }
    return {&w.local[at + (uint64_t)lane * size], &w.local_written[at + (uint64_t)lane * size], NULL};
}

void fail_alignment(warp &w, const instruction &its, int lane, uint64_t address, uint64_t bytes)
{
    fail(w, its, lane, "address %#llx is no multiple of %d", (unsigned long long)address, (int)bytes);
}

static void note_written(void *to, const void *from, size_t bytes)
{
    memory *target = find_memory((uint64_t)(uintptr_t)to, bytes), *source = NULL;
    if (from != NULL) {
        source = find_memory((uint64_t)(uintptr_t)from, bytes);
    }
    for (size_t i = 0; target != NULL && i < bytes; i++) {
        tag *at = &target->written[(uint64_t)(uintptr_t)to - target->begin + i];
        *at     = source == NULL || source->written[(uint64_t)(uintptr_t)from - source->begin + i] != 0 ? BY_HOST : 0;
    }
}

void forget_segments(void)
{
    guard held(the_allocations_lock);
    for (auto &each : allocations()) {
        memory &its = each.second;
        for (uint64_t i = 0; i < its.end - its.begin; i++) {
            its.written[i] = its.written[i] != 0 ? BY_HOST : 0;
        }
        memset(its.read, 0, (its.end - its.begin) * sizeof(tag));
    }
    prepare_shared(*the_launch.code, 0);
    for (const memory &each : the_launch.shared) {
        memset(each.written, 0, (each.end - each.begin) * sizeof(tag));
        memset(each.read, 0, (each.end - each.begin) * sizeof(tag));
    }
}

// Arrays of shared memory have gaps between them, so an access out of bounds hits no other array.
void prepare_shared(const kernel &code, uint32_t dynamic_bytes)
{
    static char *data    = (char *)aligned_alloc(256, SHARED_BYTES);
    static tag  *written = make_shadow(SHARED_BYTES), *read = make_shadow(SHARED_BYTES);
    the_launch.shared.clear();
    for (const variable &each : code.shared) {
        uint32_t bytes = each.bytes == 0 ? dynamic_bytes : each.bytes, at = each.offset;
        the_launch.shared.push_back({SHARED_START + at, SHARED_START + at + bytes, data + at, written + at, read + at});
    }
}
}    // namespace ptx

namespace emulator
{
void add_memory(void *data, size_t bytes)
{
    ptx::guard held(ptx::the_allocations_lock);
    uint64_t   begin                  = (uint64_t)(uintptr_t)data;
    ptx::allocations()[begin + bytes] = {begin, begin + bytes, (char *)data, ptx::make_shadow(bytes),
                                         ptx::make_shadow(bytes)};
}

void remove_memory(void *data)
{
    ptx::guard held(ptx::the_allocations_lock);
    auto       found = ptx::allocations().upper_bound((uint64_t)(uintptr_t)data);
    if (data == NULL) {
        return;
    }
    if (found == ptx::allocations().end() || found->second.data != data) {
        fprintf(stderr, "ptx: memory is freed that was not allocated\n");
        abort();
    }
    size_t bytes = (found->second.end - found->second.begin) * sizeof(ptx::tag);
    munmap(found->second.written, bytes);
    munmap(found->second.read, bytes);
    ptx::allocations().erase(found);
}
}    // namespace emulator

extern "C" {
// The memory is filled with 0xff, so that reads of unwritten memory are found.
cudaError_t cudaMalloc(void **data, size_t bytes)
{
    if (bytes == 0) {
        *data = NULL;
        return cudaSuccess;
    }
    *data = aligned_alloc(256, (bytes + 256) / 256 * 256);
    memset(*data, 0xff, bytes);
    emulator::add_memory(*data, bytes);
    return cudaSuccess;
}
cudaError_t cudaFree(void *data)
{
    emulator::remove_memory(data);
    free(data);
    return cudaSuccess;
}
cudaError_t cudaMallocHost(void **data, size_t bytes)
{
    return cudaMalloc(data, bytes);
}
cudaError_t cudaFreeHost(void *data)
{
    return cudaFree(data);
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream)
{
    emulator::enqueue(stream, [=]() {
        memcpy(to, from, bytes);
        ptx::note_written(to, from, bytes);
        ptx::the_traffic.copied_bytes += (int64_t)bytes;
    });
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    emulator::enqueue(stream, [=]() {
        memset(to, value, bytes);
        ptx::note_written(to, NULL, bytes);
    });
    return cudaSuccess;
}
}
