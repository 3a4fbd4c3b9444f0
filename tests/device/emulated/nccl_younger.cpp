// SPDX-License-Identifier: MIT
// Functions of newer NCCL versions, which the oldest supported version lacks: allocation and registration of memory,
// symmetric windows, all-to-all, and puts. Misuse ends the process: windows with different offsets or sizes on the
// members, where the real NCCL would read other memory; memory that is not from ncclMemAlloc; and memory that is freed
// while it is registered.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <map>

#include "nccl_transfer.h"

namespace
{
enum { GRAIN = 2 << 20 };    // ncclMemAlloc rounds sizes up to a multiple of this
std::map<char *, size_t> the_memory;
int                      the_known;    // number of open registrations of all communicators

// Returns the start of the allocation that contains this range.
char *find(const char *function, void *data, size_t bytes)
{
    auto next = the_memory.upper_bound((char *)data);
    if (next == the_memory.begin() || (--next)->first + next->second < (char *)data + bytes) {
        fake_fail("%s of %zu bytes that are not ncclMemAlloc's", function, bytes);
    }
    return next->first;
}

// Checks that all members open their n-th window with the same offset and size.
void compare(ncclComm_t comm, size_t offset, size_t bytes)
{
    const size_t own[] = {comm->known.size(), offset, bytes};
    auto         heard = tell_all(comm->boxes, own, sizeof(own));
    for (int peer = 0; peer < comm->boxes.size; peer++) {
        const size_t *other = (const size_t *)heard[(size_t)peer].data();
        if (other[0] != own[0] || other[1] != own[1] || other[2] != own[2]) {
            fake_fail("member %d opens window %zu at %zu of %zu bytes, member %d %zu at %zu of %zu", comm->boxes.rank,
                      own[0], own[1], own[2], peer, other[0], other[1], other[2]);
        }
    }
}

void *keep(ncclComm_t comm, void *data, size_t bytes, bool is_window)
{
    comm->known.push_back({(const char *)data, bytes, is_window, true});
    the_known++;
    return (void *)comm->known.size();    // starts at 1, so it is never NULL
}

ncclResult_t forget(ncclComm_t comm, void *handle, bool is_window)
{
    size_t index = (size_t)handle - 1;
    if (index >= comm->known.size() || !comm->known[index].is_open || comm->known[index].is_window != is_window) {
        fake_fail("a %s is closed that is not open", is_window ? "window" : "registration");
    }
    comm->known[index].is_open = false;
    the_known--;
    return ncclSuccess;
}
}    // namespace

extern "C" {

// The memory is filled with 0xff, as cudaMalloc does here, so that reads of unwritten values are noticed.
ncclResult_t ncclMemAlloc(void **data, size_t bytes)
{
    size_t all = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    *data      = aligned_alloc(GRAIN, all);
    memset(*data, 0xff, all);
    the_memory[(char *)*data] = all;
    emulator::add_memory(*data, all);
    return ncclSuccess;
}

ncclResult_t ncclMemFree(void *data)
{
    if (the_memory.count((char *)data) == 0 || the_known > 0) {
        fake_fail("ncclMemFree of memory that is %s", the_known > 0 ? "still known" : "not its own");
    }
    the_memory.erase((char *)data);
    emulator::remove_memory(data);
    free(data);
    return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *data, size_t bytes, void **handle)
{
    find("ncclCommRegister", data, bytes);
    *handle = the_faults().knows_nothing ? NULL : keep(comm, data, bytes, false);
    return ncclSuccess;
}

// Supports only the statistic 3, ncclStatGpuMemTotal.
ncclResult_t ncclCommMemStats(ncclComm_t comm, int stat, uint64_t *value)
{
    if (stat != 3) {
        fake_fail("ncclCommMemStats of number %d", stat);
    }
    *value = comm->is_used ? (uint64_t)comm->channels << 20 : 0;
    return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return forget(comm, handle, false);
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *data, size_t bytes, ncclWindow_t *window, int flags)
{
    size_t offset = (size_t)((char *)data - find("ncclCommWindowRegister", data, bytes));
    if (offset % NCCL_WIN_REQUIRED_ALIGNMENT != 0 || flags != NCCL_WIN_COLL_SYMMETRIC) {
        fake_fail("a window at offset %zu with flags %d", offset, flags);
    }
    compare(comm, offset, bytes);
    *window = the_faults().knows_nothing ? NULL : (ncclWindow_t)keep(comm, data, bytes, true);
    return ncclSuccess;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    return forget(comm, window, true);
}
// Receiver i gets part i of each member's data.
ncclResult_t ncclAlltoAll(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream)
{
    if (the_faults().refused == __func__) {
        return ncclSystemError;
    }
    communication call = exchange(comm, 'X', type, count, from, count * bytes_of(type), from, to);
    call.finish.push_back([=](std::vector<part> &parts) { gather(parts, to); });
    if (comm->copies) {
        tell("AlltoAll", comm, call);    // without copy engines, NCCL uses sends and receives, which it does not log
    }
    return add(comm, stream, std::move(call));
}

// The message carries its destination in the receiver's window. The real NCCL writes at once, even if the receiver
// still reads this memory. So gswbench's receivers first send a signal without data, and the emulator ends the process
// if the signal is missing.
ncclResult_t ncclPutSignal(const void *from, size_t count, ncclDataType_t type, int peer, ncclWindow_t window,
                           size_t offset, int signal, int context, unsigned flags, ncclComm_t comm, cudaStream_t stream)
{
    const registration &one   = comm->known.at((size_t)window - 1);
    const size_t        bytes = count * bytes_of(type);
    if (!one.is_open || !one.is_window || offset + bytes > one.bytes || signal != 0 || context != 0 || flags != 0) {
        fake_fail("a put of %zu bytes to %zu of a window of %zu, signal %d, context %d, flags %u", bytes, offset,
                  one.bytes, signal, context, flags);
    }
    communication call;
    call.kind = {'P', (int)type, count, -1, -1, (long)window - 1, (long)offset};
    add_send(call, peer, from, bytes);
    call.parts[0].is_one_sided = true;
    call.finish.push_back([=](std::vector<part> &) {
        if (comm->invitations[(size_t)peer]-- == 0) {
            fake_fail("a put to member %d, which has not said that its place is free", peer);
        }
    });
    return add(comm, stream, std::move(call));
}

ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags, ncclComm_t comm, cudaStream_t stream)
{
    if (signal != 0 || context != 0 || flags != 0) {
        fake_fail("signal %d, context %d, flags %u", signal, context, flags);
    }
    communication call;
    call.kind = {'P'};
    add_send(call, peer, NULL, 0);
    call.parts[0].is_one_sided = true;
    return add(comm, stream, std::move(call));
}

struct wait_for_signals {
    int count, peer, signal, context;
};
ncclResult_t ncclWaitSignal(int count, wait_for_signals *awaited, ncclComm_t comm, cudaStream_t stream)
{
    const int peer = awaited->peer;
    if (count != 1 || awaited->count != 1 || awaited->signal != 0 || awaited->context != 0) {
        fake_fail("the emulator waits for one signal at a time");
    }
    communication call;
    call.kind = {'P'};
    add_receive(call, peer, 0);
    call.parts[0].is_one_sided = true;
    call.finish.push_back([=](std::vector<part> &parts) {
        const part &came = parts[0];
        if (came.kind.count == 0) {
            comm->invitations[(size_t)peer]++;
        } else {
            char *window = (char *)comm->known.at((size_t)came.kind.out_window).data;
            memcpy(window + came.kind.out_offset, came.data.data(), came.data.size());
        }
    });
    return add(comm, stream, std::move(call));
}

// As in the real NCCL, id i must come from the first rank of part i of the group.
ncclResult_t ncclCommInitRankScalable(ncclComm_t *made, int size, int rank, int id_count, ncclUniqueId *ids,
                                      ncclConfig_t *config)
{
    struct {
        int          process;
        ncclUniqueId ids[16];
    } own = {(int)getpid(), {}};
    if (id_count < 2 || id_count > 16 || id_count > size) {
        fake_fail("%d ids of %d ranks", id_count, size);
    }
    memcpy(own.ids, ids, (size_t)id_count * sizeof(*ids));
    ncclResult_t answer = make(made, ids[0].internal, size, rank, config);
    auto         heard  = tell_all((*made)->boxes, &own, sizeof(own));
    for (int peer = 0; peer < size; peer++) {
        const auto *other = (const decltype(own) *)heard[(size_t)peer].data();
        if (memcmp(other->ids, own.ids, sizeof(own.ids)) != 0) {
            fake_fail("members %d and %d have other ids", rank, peer);
        }
        for (int id = 0; id < id_count; id++) {
            int         maker = 0;
            const char *name  = ids[id].internal;
            bool is_named = sscanf(name, "/proc/%d/", &maker) == 1 || sscanf(name, "/gswbench-nccl-%d-", &maker) == 1;
            if (peer == id * size / id_count && (!is_named || maker != other->process)) {
                fake_fail("id %d of %d was not made by member %d", id, id_count, peer);
            }
        }
    }
    return answer;
}
}
