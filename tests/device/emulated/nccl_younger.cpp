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
    transfer     call;
    const size_t share = count * bytes_of(type);
    call.kind          = {'X', (int)type, count, -1, -1, -1, -1};
    place(call, comm, from, to);
    for (int peer = 0; peer < comm->boxes.size; peer++) {
        add_send(call, peer, (const char *)from + (size_t)peer * share, share);
        add_receive(call, peer, share);
    }
    call.finish.push_back([=](std::vector<part> &parts) {
        char *next = (char *)to;
        for (const part &one : parts) {
            if (!one.sends) {
                memcpy(next, one.data.data(), share);
                next += share;
            }
        }
    });
    if (comm->copies) {
        tell("AlltoAll", comm, call);    // else it is sends and receives, of which nothing is said
    }
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
            int maker = 0;
            sscanf(ids[id].internal, "/gswbench-nccl-%d-", &maker);
            if (peer == id * size / id_count && maker != other->process) {
                fake_fail("id %d of %d was not made by member %d", id, id_count, peer);
            }
        }
    }
    return answer;
}
}
