// SPDX-License-Identifier: MIT
// NCCL for the emulator: ranks are processes of this machine, which meet in a file of shared memory for each
// communicator. Like the real one, it keeps a communicator's calls in order, lets no send end before its receiver has
// come, makes the way between ranks when it is first used, with the host waiting, and adds up as a ring does: a
// rounding at each hop, beginning elsewhere in each part. Ranks whose calls do not match are told, where the real one
// hangs. FAKE_NCCL asks for faults, see struct faults.
#include "nccl_mailbox.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "emulator.h"
#include "gswbench/format.h"

namespace
{
// What FAKE_NCCL asks for, words after each other: "version=RANK:21800"; "refuse=RANK:ncclSend"; "lose=RANK:CALLS",
// after so many transfers that rank's connections are lost; "absent=RANK", which comes to no communicator.
struct faults {
    int         version = NCCL_VERSION_CODE, lost_after = -1;
    std::string refused;
    bool        is_absent = false;

    faults()
    {
        const char *text = getenv("FAKE_NCCL"), *own = getenv("OMPI_COMM_WORLD_RANK");
        int         rank = own == NULL ? 0 : atoi(own), number, calls;
        char        name[64];
        for (; text != NULL && *text != '\0'; text = strchr(text, ' ') == NULL ? NULL : strchr(text, ' ') + 1) {
            if (sscanf(text, "version=%d:%d", &number, &calls) == 2) {
                version = number == rank ? calls : version;
            } else if (sscanf(text, "refuse=%d:%63s", &number, name) == 2) {
                refused = number == rank ? name : refused;
            } else if (sscanf(text, "lose=%d:%d", &number, &calls) == 2) {
                lost_after = number == rank ? calls : lost_after;
            } else if (sscanf(text, "absent=%d", &number) == 1) {
                is_absent = number == rank;
            } else {
                fake_fail("FAKE_NCCL has no '%s'", text);
            }
        }
    }
};

const faults &the_faults()
{
    static const faults read;
    return read;
}

size_t bytes_of(ncclDataType_t type)
{
    return type == ncclFloat32 || type == ncclInt32 ? 4 : type == ncclBfloat16 ? 2 : 1;
}

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

// One message of a call, to or from a member.
struct part {
    int               peer;
    bool              sends, is_started, is_done;
    const void       *from;
    std::vector<char> data;    // received
    size_t            bytes;
};

// Calls that run together on a stream: one, or those between ncclGroupStart and ncclGroupEnd.
struct transfer {
    std::vector<part>                                     parts;
    std::vector<std::function<void(std::vector<part> &)>> finish;
    message_kind                                          kind;
    uint64_t                                              turn;
};
}    // namespace

struct ncclComm {
    mailboxes boxes;
    uint64_t  calls = 0, done = 0;    // made by the host, and ended by streams
    bool      is_lost = false;
};

namespace
{
struct pending_call {
    ncclComm_t   comm;
    cudaStream_t stream;
    transfer     call;
};
thread_local std::vector<pending_call> the_group;
thread_local int                       the_depth;
thread_local std::string               the_error = "no error";
thread_local int                       the_transfers;

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

bool progress(ncclComm_t comm, transfer &call)
{
    if (comm->done != call.turn) {
        return false;
    }
    bool is_done = true;
    for (part &one : call.parts) {
        mailbox &box =
            one.sends ? comm->boxes.at(comm->boxes.rank, one.peer) : comm->boxes.at(one.peer, comm->boxes.rank);
        if (!one.is_done && one.sends) {
            one.is_started = one.is_started || box.post(one.from, one.bytes, call.kind);
            one.is_done    = one.is_started && box.is_taken();
        } else if (!one.is_done) {
            one.is_done = box.take(one.data, one.bytes, call.kind);
        }
        is_done = is_done && one.is_done;
    }
    return is_done;
}

// The host waits until the other side of every way that is used for the first time has come to it as well.
void connect(ncclComm_t comm, const transfer &call)
{
    for (const part &one : call.parts) {
        comm->boxes.arrive(one.sends, one.peer);
    }
    for (const part &one : call.parts) {
        comm->boxes.await(one.sends, one.peer, emulator::progress);
    }
}

void enqueue(ncclComm_t comm, cudaStream_t stream, transfer call)
{
    connect(comm, call);
    emulator::enqueue_made(stream, [=]() {
        comm->is_lost = comm->is_lost || (the_faults().lost_after >= 0 && the_transfers++ >= the_faults().lost_after);
        auto running  = std::make_shared<transfer>(call);
        running->turn = comm->calls++;
        emulator::pending work;
        work.is_ready = [=]() { return !comm->is_lost && progress(comm, *running); };
        work.run      = [=]() {
            for (auto &finish : running->finish) {
                finish(running->parts);
            }
            comm->done++;
        };
        return work;
    });
}

ncclResult_t add(ncclComm_t comm, cudaStream_t stream, transfer call)
{
    if (the_depth == 0) {
        enqueue(comm, stream, std::move(call));
        return ncclSuccess;
    }
    for (pending_call &earlier : the_group) {
        if (earlier.comm == comm && earlier.stream == stream) {
            size_t base = earlier.call.parts.size();
            earlier.call.parts.insert(earlier.call.parts.end(), call.parts.begin(), call.parts.end());
            for (auto &finish : call.finish) {
                earlier.call.finish.push_back([=](std::vector<part> &parts) {
                    std::vector<part> own(parts.begin() + (long)base, parts.begin() + (long)(base + call.parts.size()));
                    finish(own);
                });
            }
            return ncclSuccess;
        }
    }
    the_group.push_back({comm, stream, std::move(call)});
    return ncclSuccess;
}

void add_send(transfer &call, int peer, const void *from, size_t bytes)
{
    call.parts.push_back({peer, true, false, false, from, {}, bytes});
}

void add_receive(transfer &call, int peer, size_t bytes)
{
    call.parts.push_back({peer, false, false, false, NULL, {}, bytes});
}

// Sums or maxima of what all members sent, in the order of a ring that ends at the member that keeps the part.
void reduce(const std::vector<const std::vector<char> *> &given, ncclDataType_t type, ncclRedOp_t how, size_t first,
            size_t count, int keeper, char *out)
{
    int size = (int)given.size();
    for (size_t i = 0; i < count; i++) {
        std::vector<char> rounded(4);
        float             sum = number_at(*given[(size_t)((keeper + 1) % size)], type, first + i);
        for (int hop = 2; hop <= size; hop++) {
            float other = number_at(*given[(size_t)((keeper + hop) % size)], type, first + i);
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
    if (config->size != sizeof(*config) || config->blocking == 0 || rank < 0 || rank >= size) {
        the_error = "an argument is wrong";
        return ncclInvalidArgument;
    }
    while (the_faults().is_absent) {
        fake_sleep();
    }
    *made = new ncclComm;
    (*made)->boxes.open(id.internal, size, rank);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm->done != comm->calls) {
        fake_fail("a communicator is destroyed while %d of its calls run", (int)(comm->calls - comm->done));
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
    the_depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (--the_depth == 0) {
        for (pending_call &one : the_group) {
            enqueue(one.comm, one.stream, std::move(one.call));
        }
        the_group.clear();
    }
    return ncclSuccess;
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    transfer call;
    call.kind = {'S', (int)type, count};
    add_send(call, peer, from, count * bytes_of(type));
    return add(comm, stream, std::move(call));
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    transfer call;
    call.kind = {'S', (int)type, count};
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
    call.kind     = {how == ncclMax ? 'M' : 'A', (int)type, count};
    for (int peer = 0; peer < size; peer++) {
        add_send(call, peer, from, count * bytes_of(type));
        add_receive(call, peer, count * bytes_of(type));
    }
    call.finish.push_back([=](std::vector<part> &parts) {
        for (int keeper = 0; keeper < size; keeper++) {
            size_t first = count * (size_t)keeper / (size_t)size, end = count * (size_t)(keeper + 1) / (size_t)size;
            reduce(received(parts), type, how, first, end - first, keeper, (char *)to + first * bytes_of(type));
        }
    });
    return add(comm, stream, std::move(call));
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t how,
                               ncclComm_t comm, cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    transfer call;
    int      rank  = comm->boxes.rank;
    size_t   share = count * bytes_of(type);
    call.kind      = {'R', (int)type, count};
    for (int peer = 0; peer < comm->boxes.size; peer++) {
        add_send(call, peer, (const char *)from + (size_t)peer * share, share);
        add_receive(call, peer, share);
    }
    call.finish.push_back(
        [=](std::vector<part> &parts) { reduce(received(parts), type, how, 0, count, rank, (char *)to); });
    return add(comm, stream, std::move(call));
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    transfer call;
    size_t   share = count * bytes_of(type);
    call.kind      = {'G', (int)type, count};
    for (int peer = 0; peer < comm->boxes.size; peer++) {
        add_send(call, peer, from, share);
        add_receive(call, peer, share);
    }
    call.finish.push_back([=](std::vector<part> &parts) {
        char *place = (char *)to;
        for (const std::vector<char> *data : received(parts)) {
            memcpy(place, data->data(), share);
            place += share;
        }
    });
    return add(comm, stream, std::move(call));
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    REFUSE_ON_COMMAND;
    transfer call;
    call.kind = {'B', (int)type, count};
    for (int peer = 0; peer < comm->boxes.size && comm->boxes.rank == root; peer++) {
        add_send(call, peer, from, count * bytes_of(type));
    }
    add_receive(call, root, count * bytes_of(type));
    call.finish.push_back([=](std::vector<part> &parts) {
        const std::vector<char> *data = received(parts)[0];
        memcpy(to, data->data(), data->size());
    });
    return add(comm, stream, std::move(call));
}
}
