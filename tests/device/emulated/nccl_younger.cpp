// SPDX-License-Identifier: MIT
// Calls of the emulator's NCCL that the oldest library which will do lacks.
#include <stdio.h>
#include <unistd.h>

#include "nccl_transfer.h"

extern "C" {

// Each member's share of what it sends is the receiver's.
ncclResult_t ncclAlltoAll(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream)
{
    if (the_faults().refused == __func__) {
        return ncclSystemError;
    }
    transfer call = exchange(comm, 'X', type, count, from, count * bytes_of(type), from, to);
    call.finish.push_back([=](std::vector<part> &parts) { gather(parts, to); });
    if (comm->copies) {
        tell("AlltoAll", comm, call);    // else it is sends and receives, of which nothing is said
    }
    return add(comm, stream, std::move(call));
}

// The message says where in its window the receiver has what comes. The real one writes at once, whatever the receiver
// still reads there: here a put is an error before the receiver has sent a signal without data, the gswbench way to say
// that its place is free.
ncclResult_t ncclPutSignal(const void *from, size_t count, ncclDataType_t type, int peer, ncclWindow_t window,
                           size_t offset, int signal, int context, unsigned flags, ncclComm_t comm, cudaStream_t stream)
{
    const registration &one   = comm->known.at((size_t)window - 1);
    const size_t        bytes = count * bytes_of(type);
    if (!one.is_open || !one.is_window || offset + bytes > one.bytes || signal != 0 || context != 0 || flags != 0) {
        fake_fail("a put of %zu bytes to %zu of a window of %zu, signal %d, context %d, flags %u", bytes, offset,
                  one.bytes, signal, context, flags);
    }
    transfer call;
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
    transfer call;
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
    transfer call;
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

// Like the real one: id i is of the member that ranks of its part of the group come to, which runs where it was made.
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
