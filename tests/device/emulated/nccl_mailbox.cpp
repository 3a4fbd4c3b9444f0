// SPDX-License-Identifier: MIT
// Shared memory, and who waits for whom in it.
#include "nccl_mailbox.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <string>

enum { HEAD_BYTES = 64 };    // how many members are present

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

// Memory without a name, which members find through the process that made it: nothing is left of it, whoever is killed
// when. FAKE_NCCL_FOLDER: files there instead, for hosts that do not see each other's processes.
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

// The descriptor of the process that made the memory is closed when all members have mapped it.
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
