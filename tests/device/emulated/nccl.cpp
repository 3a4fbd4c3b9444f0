// SPDX-License-Identifier: MIT
// An emulated NCCL. Ranks are processes on one machine, and share memory for each communicator. As in the real NCCL,
// the calls of a communicator are ordered, a send ends after its receiver has arrived, and the first use of a
// connection blocks the host. Reductions add as in a ring: they round at each hop, and each part of the data starts at
// another rank. Calls that do not match end the process, where the real NCCL would hang. FAKE_NCCL injects faults
// (struct faults).
#include <algorithm>

#include "gswbench/format.h"
#include "nccl_transfer.h"

namespace
{
thread_local std::string the_error = "no error";

ncclResult_t refuse(const char *function)
{
    the_error = std::string(function) + " was refused on command";
    return ncclSystemError;
}
#define REFUSE_ON_COMMAND                                                                                              \
    do {                                                                                                               \
        if (the_faults().refused == __func__) {                                                                        \
            return refuse(__func__);                                                                                   \
        }                                                                                                              \
    } while (0)

// Returns element i of a message.
float number_at(const char *data, ncclDataType_t type, size_t i)
{
    return type == ncclBfloat16 ? bf16_to_float(((const bf16 *)data)[i]) : ((const float *)data)[i];
}

// Computes the sum or maximum over the messages of all members, in the order of a ring that ends at member `last`. A
// captured call ends at the next member, because the real NCCL may use another algorithm or other channels in a graph.
void reduce(const std::vector<const std::vector<char> *> &given, ncclDataType_t type, ncclRedOp_t how, size_t first,
            size_t count, int last, char *out)
{
    size_t size = given.size();
    for (size_t i = 0; i < count; i++) {
        float sum = number_at(given[(size_t)(last + 1) % size]->data(), type, first + i);
        for (size_t hop = 2; hop <= size; hop++) {
            float other = number_at(given[((size_t)last + hop) % size]->data(), type, first + i);
            sum         = how == ncclMax ? std::max(sum, other) : sum + other;
            sum         = type == ncclBfloat16 ? bf16_to_float(bf16_from_float(sum)) : sum;
        }
        if (type == ncclBfloat16) {
            ((bf16 *)out)[i] = bf16_from_float(sum);
        } else {
            ((float *)out)[i] = sum;
        }
    }
}
}    // namespace

ncclResult_t make(ncclComm_t *made, const char *name, int size, int rank, const ncclConfig_t *config)
{
    if (config->size != sizeof(*config) || config->blocking == 0 || rank < 0 || rank >= size) {
        the_error = "an argument is wrong";
        return ncclInvalidArgument;
    }
    if (config->CTAPolicy != NCCL_CONFIG_UNDEF_INT && the_faults().version < 22800) {
        the_error = "this version knows no such CTA policy";
        return ncclInvalidArgument;
    }
    while (the_faults().is_absent) {
        fake_sleep();
    }
    *made = new ncclComm;
    (*made)->boxes.open(name, size, rank);
    (*made)->invitations.resize((size_t)size);
    if (FILE *log = the_log(); log != NULL) {
        fprintf(log, "NCCL INFO a communicator of %d ranks\n", size);
    }
    (*made)->copies   = config->CTAPolicy == 2;
    (*made)->channels = config->maxCTAs == NCCL_CONFIG_UNDEF_INT ? 32 : config->maxCTAs;
    return ncclSuccess;
}

extern "C" {

ncclResult_t ncclGetVersion(int *version)
{
    *version = the_faults().version;
    return ncclSuccess;
}
const char *ncclGetErrorString(ncclResult_t error)
{
    return error == ncclSuccess       ? "no error"
           : error == ncclRemoteError ? "remote process exited or there was a network error"
                                      : "unhandled system error";
}
const char *ncclGetLastError(ncclComm_t)
{
    return the_error.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    REFUSE_ON_COMMAND;
    mailboxes_name(id->internal, sizeof(id->internal));
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int size, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    REFUSE_ON_COMMAND;
    return make(made, id.internal, size, rank, config);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm->done != comm->calls) {
        fake_fail("a communicator is destroyed while %d of its calls run", (int)(comm->calls - comm->done));
    }
    for (const registration &one : comm->known) {
        if (one.is_open) {
            fake_fail("a communicator is destroyed that still knows memory of %zu bytes", one.bytes);
        }
    }
    comm->boxes.close();
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    *error = comm->is_lost ? ncclRemoteError : ncclSuccess;
    if (comm->is_lost) {
        the_error = "lost on command";
    }
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    begin_group();
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    end_group();
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    communication call;
    call.kind = {'S', (int)type, count};
    add_send(call, peer, from, count * bytes_of(type));
    return add(comm, stream, std::move(call));
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    communication call;
    call.kind = {'S', (int)type, count};
    add_receive(call, peer, count * bytes_of(type));
    call.finish.push_back([=](std::vector<part> &parts) { memcpy(to, parts[0].data.data(), parts[0].bytes); });
    return add(comm, stream, std::move(call));
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t how,
                           ncclComm_t comm, cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    communication call = exchange(comm, how == ncclMax ? 'M' : 'A', type, count, from, 0, from, to);
    int           size = comm->boxes.size, shift = emulator::captures() ? 1 : 0;
    call.finish.push_back([=](std::vector<part> &parts) {
        for (int keeper = 0; keeper < size; keeper++) {
            size_t first = count * (size_t)keeper / (size_t)size, end = count * (size_t)(keeper + 1) / (size_t)size;
            reduce(received(parts), type, how, first, end - first, keeper + shift, (char *)to + first * bytes_of(type));
        }
    });
    tell("AllReduce", comm, call);
    return add(comm, stream, std::move(call));
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t how,
                               ncclComm_t comm, cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    communication call = exchange(comm, 'R', type, count, from, count * bytes_of(type), from, NULL);
    int           last = comm->boxes.rank + (emulator::captures() ? 1 : 0);
    call.finish.push_back(
        [=](std::vector<part> &parts) { reduce(received(parts), type, how, 0, count, last, (char *)to); });
    tell("ReduceScatter", comm, call);
    return add(comm, stream, std::move(call));
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    communication call = exchange(comm, 'G', type, count, from, 0, NULL, to);
    call.finish.push_back([=](std::vector<part> &parts) { gather(parts, to); });
    tell("AllGather", comm, call);
    return add(comm, stream, std::move(call));
}

// A broadcast is an exchange between all members in which only the root sends.
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    communication call = exchange(comm, 'B', type, count, from, 0, from, to);
    std::erase_if(call.parts, [=](const part &one) { return one.sends ? comm->boxes.rank != root : one.peer != root; });
    call.finish.push_back([=](std::vector<part> &parts) { gather(parts, to); });
    tell("Broadcast", comm, call);
    return add(comm, stream, std::move(call));
}
}
