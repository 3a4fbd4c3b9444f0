// SPDX-License-Identifier: MIT
// Messages in shared memory. Whenever a stream is polled, its current call takes the messages that have arrived. The
// call ends when all have.
#include "nccl_transfer.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <memory>

enum { HEAD_BYTES = 64 };    // a counter of the members that have mapped the memory, with padding

void fake_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "emulated NCCL: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    _exit(70);
}

void fake_sleep(void)
{
    const struct timespec pause = {0, 50000};
    nanosleep(&pause, NULL);
}

static double fake_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool mailbox::is_taken() const
{
    return taken == posted;
}

bool mailbox::post(const void *from, size_t size, message_kind what)
{
    if (size > sizeof(data)) {
        fake_fail("a message of %zu bytes is too long", size);
    }
    if (!is_taken()) {
        return false;
    }
    memcpy(data, from, size);
    kind  = what;
    bytes = size;
    posted++;
    return true;
}

bool mailbox::take(std::vector<char> &to, size_t size, message_kind what)
{
    if (is_taken()) {
        return false;
    }
    if (kind.call != what.call || kind.type != what.type || kind.count != what.count || bytes != size) {
        fake_fail("members call %c of %zu elements of type %d (%zu bytes) and %c of %zu of type %d (%zu bytes)",
                  kind.call, kind.count, kind.type, bytes, what.call, what.count, what.type, size);
    }
    if (kind.in_window != what.in_window || kind.in_offset != what.in_offset || kind.out_window != what.out_window ||
        kind.out_offset != what.out_offset) {
        fake_fail("members call %c in other places of symmetric windows: from window %ld at %ld and %ld at %ld, to %ld "
                  "at %ld and %ld at %ld",
                  what.call, kind.in_window, kind.in_offset, what.in_window, what.in_offset, kind.out_window,
                  kind.out_offset, what.out_window, what.out_offset);
    }
    to.assign(data, data + size);
    taken++;
    return true;
}

bool mailbox::take_signal(std::vector<char> &to, message_kind &what)
{
    if (is_taken()) {
        return false;
    }
    if (kind.call != 'P') {
        fake_fail("a member waits for a signal, where another calls %c of %zu elements", kind.call, kind.count);
    }
    what = kind;
    to.assign(data, data + bytes);
    taken++;
    return true;
}

// Makes the name of a communicator's memory. It is anonymous memory, which members open through /proc of its creator,
// so nothing is left if a process is killed. If FAKE_NCCL_FOLDER is set, it is a file in that folder, because the
// processes of emulated hosts do not see each other.
void mailboxes_name(char *name, size_t bytes)
{
    static int  count;
    const char *folder = getenv("FAKE_NCCL_FOLDER");
    memset(name, 0, bytes);
    if (folder != NULL) {
        snprintf(name, bytes, "/gswbench-nccl-%d-%d-%lld", (int)getpid(), count++, (long long)(1e6 * fake_seconds()));
        return;
    }
    int file = memfd_create("gswbench-nccl", MFD_CLOEXEC);
    if (file < 0) {
        fake_fail("no shared memory");
    }
    snprintf(name, bytes, "/proc/%d/fd/%d", (int)getpid(), file);
}

// Closes the creator's descriptor of the memory after all members have mapped it.
static void forget(const char *name)
{
    int         process, file;
    const char *folder = getenv("FAKE_NCCL_FOLDER");
    if (folder == NULL && sscanf(name, "/proc/%d/fd/%d", &process, &file) == 2 && process == (int)getpid()) {
        close(file);
    }
}

static std::string path_of(const char *name)
{
    const char *folder = getenv("FAKE_NCCL_FOLDER");
    return std::string(folder != NULL ? folder : "") + name;
}

void mailboxes::open(const char *name, int members, int own)
{
    size         = members;
    rank         = own;
    total        = HEAD_BYTES + sizeof(mailbox) * (size_t)(size * size);
    bool is_file = getenv("FAKE_NCCL_FOLDER") != NULL;
    int  file    = ::open(path_of(name).c_str(), O_RDWR | (is_file ? O_CREAT : 0) | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, (off_t)total) != 0) {
        fake_fail("no shared memory");
    }
    void *memory = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) {
        fake_fail("no shared memory of %zu bytes", total);
    }
    present = (std::atomic<int> *)memory;
    boxes   = (mailbox *)((char *)memory + HEAD_BYTES);
    if (++*present == size && is_file) {
        unlink(path_of(name).c_str());
    }
    while (*present < size) {
        fake_sleep();
    }
    forget(name);
}

void mailboxes::close()
{
    munmap(present, total);
}

mailbox &mailboxes::at(int from, int to)
{
    return boxes[from * size + to];
}

void mailboxes::arrive(bool sends, int peer)
{
    (sends ? at(rank, peer).has_sender : at(peer, rank).has_receiver) = 1;
}

void mailboxes::await(bool sends, int peer, bool (*go_on)(void))
{
    double begin = fake_seconds();
    while (!(sends ? at(rank, peer).has_receiver : at(peer, rank).has_sender)) {
        if (!go_on()) {
            fake_sleep();
        }
        if (fake_seconds() - begin > (double)FAKE_SECONDS) {
            fake_fail("rank %d waits for member %d to use their way for the first time", rank, peer);
        }
    }
}

std::vector<std::vector<char>> tell_all(mailboxes &boxes, const void *own, size_t bytes)
{
    const message_kind             what = {'W'};
    std::vector<std::vector<char>> heard((size_t)boxes.size);
    for (int peer = 0; peer < boxes.size; peer++) {
        while (!boxes.at(boxes.rank, peer).post(own, bytes, what)) {
            fake_sleep();
        }
    }
    for (int peer = 0; peer < boxes.size; peer++) {
        while (!boxes.at(peer, boxes.rank).take(heard[(size_t)peer], bytes, what)) {
            fake_sleep();
        }
    }
    return heard;
}

namespace
{
struct pending_call {
    ncclComm_t    comm;
    cudaStream_t  stream;
    communication call;
};
thread_local std::vector<pending_call> the_group;
thread_local int                       the_depth;
thread_local int                       the_communications;

bool progress(ncclComm_t comm, communication &call)
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

// When a communicator is used first, blocks the host until the other end of each connection has arrived.
void connect(ncclComm_t comm, const communication &call)
{
    if (!comm->is_used) {    // as in the real NCCL, 1 MiB of device memory per channel is allocated at the first use
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

void enqueue(ncclComm_t comm, cudaStream_t stream, communication call)
{
    connect(comm, call);
    emulator::enqueue_made(stream, [=]() {
        comm->is_lost =
            comm->is_lost || (the_faults().lost_after >= 0 && the_communications++ >= the_faults().lost_after);
        auto running  = std::make_shared<communication>(call);
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

ncclResult_t add(ncclComm_t comm, cudaStream_t stream, communication call)
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

void add_send(communication &call, int peer, const void *from, size_t bytes)
{
    call.parts.push_back({peer, from, bytes, true});
}

void add_receive(communication &call, int peer, size_t bytes)
{
    call.parts.push_back({peer, NULL, bytes, false});
}

communication exchange(ncclComm_t comm, char call, ncclDataType_t type, size_t count, const void *from, size_t step,
                       const void *in, const void *out)
{
    communication made;
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

void tell(const char *function, ncclComm_t comm, const communication &call)
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
