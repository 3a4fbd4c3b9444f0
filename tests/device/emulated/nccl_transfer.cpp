// SPDX-License-Identifier: MIT
// A call makes way each time that its stream is looked at, until all its messages have passed.
#include "nccl_transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <memory>

namespace
{
struct pending_call {
    ncclComm_t   comm;
    cudaStream_t stream;
    transfer     call;
};
thread_local std::vector<pending_call> the_group;
thread_local int                       the_depth;
thread_local int                       the_transfers;

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
            one.is_started = one.is_started || box.post(one.from, one.bytes, one.kind);
            one.is_done    = one.is_started && (one.is_one_sided || box.is_taken());
        } else if (!one.is_done && one.is_one_sided) {
            one.is_done = box.take_signal(one.data, one.kind);
        } else if (!one.is_done) {
            one.is_done = box.take(one.data, one.bytes, one.kind);
        }
        is_done = is_done && one.is_done;
    }
    return is_done;
}

// The host waits until the other side of every way that is used for the first time has come to it as well.
void connect(ncclComm_t comm, const transfer &call)
{
    if (!comm->is_used) {    // a MiB of the device for each channel, as late as the real one takes it
        emulator::taken_bytes += comm->channels << 20;
        comm->is_used = true;
    }
    for (const part &one : call.parts) {
        comm->boxes.arrive(one.sends, one.peer);
    }
    for (const part &one : call.parts) {
        if (!one.is_one_sided) {
            comm->boxes.await(one.sends, one.peer, emulator::progress);
        }
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
}    // namespace

const faults &the_faults()
{
    static const faults read;
    return read;
}

ncclResult_t add(ncclComm_t comm, cudaStream_t stream, transfer call)
{
    for (part &one : call.parts) {
        one.kind = call.kind;
    }
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

static void find_window(ncclComm_t comm, const void *data, long *window, long *offset)
{
    *window = *offset = -1;
    for (size_t i = 0; i < comm->known.size() && data != NULL; i++) {
        const registration &one = comm->known[i];
        if (one.is_open && one.is_window && one.data <= (const char *)data &&
            (const char *)data < one.data + one.bytes) {
            *window = (long)i;
            *offset = (const char *)data - one.data;
        }
    }
}

void add_send(transfer &call, int peer, const void *from, size_t bytes)
{
    call.parts.push_back({peer, from, bytes, true});
}

void add_receive(transfer &call, int peer, size_t bytes)
{
    call.parts.push_back({peer, NULL, bytes, false});
}

transfer exchange(ncclComm_t comm, char call, ncclDataType_t type, size_t count, const void *from, size_t step,
                  const void *in, const void *out)
{
    transfer made;
    made.kind = {call, (int)type, count};
    find_window(comm, in, &made.kind.in_window, &made.kind.in_offset);
    find_window(comm, out, &made.kind.out_window, &made.kind.out_offset);
    for (int peer = 0; peer < comm->boxes.size; peer++) {
        add_send(made, peer, (const char *)from + (size_t)peer * step, count * bytes_of(type));
        add_receive(made, peer, count * bytes_of(type));
    }
    return made;
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

void gather(const std::vector<part> &parts, void *to)
{
    char *next = (char *)to;
    for (const std::vector<char> *data : received(parts)) {
        next = std::copy(data->begin(), data->end(), next);
    }
}

void begin_group(void)
{
    the_depth++;
}

void end_group(void)
{
    if (--the_depth == 0) {
        for (pending_call &one : the_group) {
            enqueue(one.comm, one.stream, std::move(one.call));
        }
        the_group.clear();
    }
}

FILE *the_log()
{
    static FILE *const file = []() -> FILE * {
        const char *name = getenv("NCCL_DEBUG_FILE");
        return getenv("NCCL_DEBUG") == NULL ? NULL : name != NULL ? fopen(name, "w") : stdout;
    }();
    if (file != NULL) {
        setlinebuf(file);
    }
    return file;
}

void tell(const char *function, ncclComm_t comm, const transfer &call)
{
    const char *asked  = getenv("NCCL_DEBUG_SUBSYS");
    size_t      bytes  = call.kind.count * bytes_of((ncclDataType_t)call.kind.type);
    bool        is_met = call.kind.in_window >= 0 || call.kind.out_window >= 0;
    char        what   = call.kind.call;
    if (the_log() == NULL || asked == NULL || strstr(asked, "TUNING") == NULL || comm->boxes.rank != 0) {
        return;
    }
    fprintf(the_log(), "vm:%d:%d [0] NCCL INFO ", (int)getpid(), (int)getpid());
    if (the_faults().version < 22400) {
        fprintf(the_log(), "%zu Bytes -> Algo 1 proto 2 time 12.300000\n", bytes);
    } else if (is_met && comm->copies && (what == 'G' || what == 'X')) {
        fprintf(the_log(), "%s [Copy Engine]: %zu Bytes -> cudaMemcpy\n", function, bytes);
    } else if (is_met) {
        fprintf(the_log(), "%s [Symmetric]: %zu Bytes -> Kernel %s_LD nchannels %d nthreads 512 nWorks 1\n", function,
                bytes, function, (int)comm->channels);
    } else {
        fprintf(the_log(), "%s: %zu Bytes -> Algo RING proto LL channel{Lo..Hi}={0..%d}\n", function, bytes,
                (int)comm->channels - 1);
    }
}
