// SPDX-License-Identifier: MIT
// How the emulator's NCCL passes messages: a file of shared memory for each communicator, with a mailbox for each pair
// of members and way. A sender posts when the message before was taken; the receiver takes.
#ifndef GSWBENCH_TESTS_NCCL_MAILBOX_H
#define GSWBENCH_TESTS_NCCL_MAILBOX_H

#include <nccl.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <vector>

enum { MAILBOX_BYTES = 16 << 20, FAKE_SECONDS = 60 };

[[noreturn]] static inline void fake_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "emulated NCCL: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    _exit(70);
}

static inline void fake_sleep(void)
{
    const struct timespec pause = {0, 50000};
    nanosleep(&pause, NULL);
}

static inline double fake_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// What both ends of a message must agree about.
struct message_kind {
    char   call;
    int    type;
    size_t count;

    bool operator!=(const message_kind &other) const
    {
        return call != other.call || type != other.type || count != other.count;
    }
};

struct mailbox {
    std::atomic<uint64_t> posted, taken;
    std::atomic<int>      has_sender, has_receiver;
    message_kind          kind;
    size_t                bytes;
    char                  data[MAILBOX_BYTES];

    bool is_taken() const
    {
        return taken == posted;
    }
    bool post(const void *from, size_t size, message_kind what)
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
    bool take(std::vector<char> &to, size_t size, message_kind what)
    {
        if (is_taken()) {
            return false;
        }
        if (kind != what || bytes != size) {
            fake_fail("members call %c of %zu elements of type %d (%zu bytes) and %c of %zu of type %d (%zu bytes)",
                      kind.call, kind.count, kind.type, bytes, what.call, what.count, what.type, size);
        }
        to.assign(data, data + size);
        taken++;
        return true;
    }
};

// The name of a new communicator.
static inline void mailboxes_name(char *name, size_t bytes)
{
    static int count;
    memset(name, 0, bytes);
    snprintf(name, bytes, "/gswbench-nccl-%d-%d-%lld", (int)getpid(), count++, (long long)(1e6 * fake_seconds()));
}

struct mailboxes {
    int size, rank;

    mailbox &at(int from, int to)
    {
        return boxes[from * size + to];
    }

    // Blocks until all members have come; the last one takes the name away.
    void open(const char *name, int members, int own)
    {
        size     = members;
        rank     = own;
        total    = sizeof(std::atomic<int>) * 16 + sizeof(mailbox) * (size_t)(size * size);
        int file = shm_open(name, O_RDWR | O_CREAT, 0600);
        if (file < 0 || ftruncate(file, (off_t)total) != 0) {
            fake_fail("no shared memory");
        }
        void *memory = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
        ::close(file);
        if (memory == MAP_FAILED) {
            fake_fail("no shared memory of %zu bytes", total);
        }
        present = (std::atomic<int> *)memory;
        boxes   = (mailbox *)((char *)memory + sizeof(std::atomic<int>) * 16);
        if (++*present == size) {
            shm_unlink(name);
        }
        while (*present < size) {
            fake_sleep();
        }
    }
    void close()
    {
        munmap(present, total);
    }

    void arrive(bool sends, int peer)
    {
        (sends ? at(rank, peer).has_sender : at(peer, rank).has_receiver) = 1;
    }
    // Until the other end has come. Streams go on meanwhile.
    void await(bool sends, int peer, bool (*go_on)(void))
    {
        double begin = fake_seconds();
        while (!(sends ? at(rank, peer).has_receiver : at(peer, rank).has_sender)) {
            if (!go_on()) {
                fake_sleep();
            }
            if (fake_seconds() - begin > FAKE_SECONDS) {
                fake_fail("rank %d waits for member %d to use their way for the first time", rank, peer);
            }
        }
    }

  private:
    size_t            total;
    std::atomic<int> *present;
    mailbox          *boxes;
};

#endif
