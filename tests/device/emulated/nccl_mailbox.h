// SPDX-License-Identifier: MIT
// How the emulator's NCCL passes messages: a file of shared memory for each communicator, with a mailbox for each pair
// of members and way. A sender posts when the message before was taken; the receiver takes.
#ifndef GSWBENCH_TESTS_NCCL_MAILBOX_H
#define GSWBENCH_TESTS_NCCL_MAILBOX_H

#include <nccl.h>
#include <stdint.h>

#include <atomic>
#include <vector>

enum { MAILBOX_BYTES = 64 << 20, FAKE_SECONDS = 60 };

[[noreturn]] void fake_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void              fake_sleep(void);

// What both ends of a message must agree about.
struct message_kind {
    char   call;
    int    type  = 0;
    size_t count = 0;
    // Where members reach into each other's memory: in which window it lies, and where there; -1: in none.
    long in_window = -1, in_offset = -1, out_window = -1, out_offset = -1;
};

struct mailbox {
    std::atomic<uint64_t> posted, taken;
    std::atomic<int>      has_sender, has_receiver;
    message_kind          kind;
    size_t                bytes;
    char                  data[MAILBOX_BYTES];

    bool is_taken() const;
    // False: the message before is still there; there is none yet.
    bool post(const void *from, size_t size, message_kind what);
    bool take(std::vector<char> &to, size_t size, message_kind what);
    // Whatever was put or signalled, and which of both.
    bool take_signal(std::vector<char> &to, message_kind &what);
};

struct mailboxes;

// What each member says to all, while no call of theirs runs.
std::vector<std::vector<char>> tell_all(mailboxes &boxes, const void *own, size_t bytes);

// The name of a new communicator.
void mailboxes_name(char *name, size_t bytes);

struct mailboxes {
    int size, rank;

    // Blocks until all members have come; the last one takes the name away.
    void     open(const char *name, int members, int own);
    void     close();
    mailbox &at(int from, int to);

    // Says that this member has come to a way, and waits until its other end has. Meanwhile go_on is called.
    void arrive(bool sends, int peer);
    void await(bool sends, int peer, bool (*go_on)(void));

  private:
    size_t            total;
    std::atomic<int> *present;
    mailbox          *boxes;
};

#endif
