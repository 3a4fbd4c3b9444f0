// SPDX-License-Identifier: MIT
// NCCL for the emulator: ranks are processes of this machine, which meet in a file of shared memory for each
// communicator. Like the real one, it keeps a communicator's calls in order, lets no send end before its receiver has
// come, makes the way between ranks when it is first used, with the host waiting, and adds up as a ring does: a
// rounding at each hop, beginning elsewhere in each part. Ranks whose calls do not match are told, where the real one
// hangs. FAKE_NCCL asks for faults, see struct faults.
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

float number_at(const std::vector<char> &data, ncclDataType_t type, size_t i)
{
    if (type == ncclBfloat16) {
        bf16 value;
        memcpy(&value, &data[i * 2], 2);
        return bf16_to_float(value);
    }
    float value;
    memcpy(&value, &data[i * 4], 4);
    return value;
}

void store(char *to, ncclDataType_t type, float value)
{
    if (type == ncclBfloat16) {
        bf16 rounded = bf16_from_float(value);
        memcpy(to, &rounded, 2);
    } else {
        memcpy(to, &value, 4);
    }
}

// Sums or maxima of what all members sent, in the order of a ring that ends at the member that keeps the part, or at
// the next one: the real one may take another algorithm or other channels in a graph, and then adds in another order.
void reduce(const std::vector<const std::vector<char> *> &given, ncclDataType_t type, ncclRedOp_t how, size_t first,
            size_t count, int last, char *out)
{
    int size = (int)given.size();
    for (size_t i = 0; i < count; i++) {
        std::vector<char> rounded(4);
        float             sum = number_at(*given[(size_t)((last + 1) % size)], type, first + i);
        for (int hop = 2; hop <= size; hop++) {
            float other = number_at(*given[(size_t)((last + hop) % size)], type, first + i);
            store(rounded.data(), type, how == ncclMax ? std::max(sum, other) : sum + other);
            sum = number_at(rounded, type, 0);
        }
        store(out + i * bytes_of(type), type, sum);
    }
}

std::vector<const std::vector<char> *> received(const std::vector<part> &parts)
{
    std::vector<const std::vector<char> *> found;
    for (const part &one : parts) {
        if (!one.sends) {
            found.push_back(&one.data);
        }
    }
    return found;
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
    (*made)->copies    = config->CTAPolicy == 2;
    (*made)->channels  = config->maxCTAs == NCCL_CONFIG_UNDEF_INT ? 32 : config->maxCTAs;
    emulator::channels = (int)(*made)->channels;
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
    emulator::channels = 0;
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
    transfer call;
    call.kind = {'S', (int)type, count, -1, -1, -1, -1};
    add_send(call, peer, from, count * bytes_of(type));
    return add(comm, stream, std::move(call));
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    transfer call;
    call.kind = {'S', (int)type, count, -1, -1, -1, -1};
    add_receive(call, peer, count * bytes_of(type));
    call.finish.push_back([=](std::vector<part> &parts) { memcpy(to, parts[0].data.data(), parts[0].bytes); });
    return add(comm, stream, std::move(call));
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t how,
                           ncclComm_t comm, cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    transfer call;
    int      size = comm->boxes.size;
    call.kind     = {how == ncclMax ? 'M' : 'A', (int)type, count, -1, -1, -1, -1};
    int shift     = emulator::captures() ? 1 : 0;
    place(call, comm, from, to);
    for (int peer = 0; peer < size; peer++) {
        add_send(call, peer, from, count * bytes_of(type));
        add_receive(call, peer, count * bytes_of(type));
    }
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
    transfer call;
    int      last  = comm->boxes.rank + (emulator::captures() ? 1 : 0);
    size_t   share = count * bytes_of(type);
    call.kind      = {'R', (int)type, count, -1, -1, -1, -1};
    place(call, comm, from, NULL);
    for (int peer = 0; peer < comm->boxes.size; peer++) {
        add_send(call, peer, (const char *)from + (size_t)peer * share, share);
        add_receive(call, peer, share);
    }
    call.finish.push_back(
        [=](std::vector<part> &parts) { reduce(received(parts), type, how, 0, count, last, (char *)to); });
    tell("ReduceScatter", comm, call);
    return add(comm, stream, std::move(call));
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    transfer call;
    size_t   share = count * bytes_of(type);
    call.kind      = {'G', (int)type, count, -1, -1, -1, -1};
    place(call, comm, NULL, to);
    for (int peer = 0; peer < comm->boxes.size; peer++) {
        add_send(call, peer, from, share);
        add_receive(call, peer, share);
    }
    call.finish.push_back([=](std::vector<part> &parts) {
        char *next = (char *)to;
        for (const std::vector<char> *data : received(parts)) {
            memcpy(next, data->data(), share);
            next += share;
        }
    });
    tell("AllGather", comm, call);
    return add(comm, stream, std::move(call));
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    transfer call;
    call.kind = {'B', (int)type, count, -1, -1, -1, -1};
    place(call, comm, from, to);
    for (int peer = 0; peer < comm->boxes.size && comm->boxes.rank == root; peer++) {
        add_send(call, peer, from, count * bytes_of(type));
    }
    add_receive(call, root, count * bytes_of(type));
    call.finish.push_back([=](std::vector<part> &parts) {
        const std::vector<char> *data = received(parts)[0];
        memcpy(to, data->data(), data->size());
    });
    tell("Broadcast", comm, call);
    return add(comm, stream, std::move(call));
}
}
