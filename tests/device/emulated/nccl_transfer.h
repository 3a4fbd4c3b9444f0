// SPDX-License-Identifier: MIT
// How the emulator's NCCL passes messages: a file of shared memory for each communicator, with a mailbox for each pair
// of members and way. A sender posts when the message before was taken; the receiver takes. A call is messages between
// members, grouped, in the order of their communicator.
#pragma once

#include <nccl.h>
#include <stdint.h>
#include <stdio.h>

#include <atomic>
#include <string>
#include <vector>

#include "emulator.h"

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

#ifndef FAKE_NCCL_VERSION
#define FAKE_NCCL_VERSION NCCL_VERSION_CODE
#endif

// What FAKE_NCCL asks for, words after each other: "version=RANK:21800"; "refuse=RANK:ncclSend"; "lose=RANK:CALLS",
// after so many collectives that rank's connections are lost; "absent=RANK", which comes to no communicator;
// "unknown=RANK": nothing is registered, as without cuMem.
struct faults {
    int         version = FAKE_NCCL_VERSION, lost_after = -1;
    std::string refused;
    bool        is_absent = false, knows_nothing = false;

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
            } else if (sscanf(text, "unknown=%d", &number) == 1) {
                knows_nothing = number == rank || knows_nothing;
            } else {
                fake_fail("FAKE_NCCL has no '%s'", text);
            }
        }
    }
};
const faults &the_faults();

// One message of a call, to or from a member.
struct part {
    int               peer;
    const void       *from;    // NULL: it is received
    size_t            bytes;
    bool              sends, is_one_sided = false;    // one-sided: its end does not wait for the other's
    bool              is_started = false, is_done = false;
    std::vector<char> data = {};    // received
    message_kind      kind = {};    // of its own call, in a group of several
};

// Calls that run together on a stream: one, or those between ncclGroupStart and ncclGroupEnd.
struct communication {
    std::vector<part>                                     parts;
    std::vector<std::function<void(std::vector<part> &)>> finish;
    message_kind                                          kind;
    uint64_t                                              turn;    // among the calls of its communicator
};

// Memory that a communicator knows: alike on all members, or this one's own.
struct registration {
    const char *data;
    size_t      bytes;
    bool        is_window, is_open;
};

struct ncclComm {
    mailboxes                 boxes;
    std::vector<registration> known;
    uint64_t                  calls = 0, done = 0;    // made by the host, and ended by streams
    int64_t                   channels = 0;           // as many as its configuration lets it have
    bool                      copies   = false;       // where it may, without multiprocessors
    std::vector<int>          invitations;            // signals of each member that no put has answered
    bool                      is_used = false;
    bool                      is_lost = false;
};

// NCCL's log; NULL: nobody asks for it. tell: how a collective is made, as the real one says it, on rank 0 alone.
FILE *the_log();
void  tell(const char *function, ncclComm_t comm, const communication &call);

// The communicator of that name. Blocks until all members have come.
ncclResult_t make(ncclComm_t *made, const char *name, int size, int rank, const ncclConfig_t *config);

inline size_t bytes_of(ncclDataType_t type)
{
    return type == ncclFloat32 || type == ncclInt32 ? 4 : type == ncclBfloat16 ? 2 : 1;
}

// Members that the call sends to, and receives from.
void add_send(communication &call, int peer, const void *from, size_t bytes);
void add_receive(communication &call, int peer, size_t bytes);

// A call in which this member sends each member `bytes` bytes, `step` after those of the member before, and receives as
// many from each. Memory in windows is named, where members reach into it (in, out; NULL: they do not).
communication exchange(ncclComm_t comm, char call, ncclDataType_t type, size_t count, const void *from, size_t step,
                       const void *in, const void *out);
// What has been received, by sender; copied to one place, one after another.
std::vector<const std::vector<char> *> received(const std::vector<part> &parts);
void                                   gather(const std::vector<part> &parts, void *to);

// Enqueues the call, or keeps it until its group ends.
ncclResult_t add(ncclComm_t comm, cudaStream_t stream, communication call);
void         begin_group(void);
void         end_group(void);
