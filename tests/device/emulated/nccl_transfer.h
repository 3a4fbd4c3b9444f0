// SPDX-License-Identifier: MIT
// Messages of the emulated NCCL. Each communicator has shared memory with a mailbox for every pair of sender and
// receiver. A sender can post a message after its previous one was taken. A call is a group of messages, and the calls
// of a communicator are ordered.
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

// Properties that must be equal at both ends of a message.
struct message_kind {
    char   call;
    int    type  = 0;
    size_t count = 0;
    // window and offset of the data in symmetric memory; -1: not in a window
    long in_window = -1, in_offset = -1, out_window = -1, out_offset = -1;
};

struct mailbox {
    std::atomic<uint64_t> posted, taken;
    std::atomic<int>      has_sender, has_receiver;
    message_kind          kind;
    size_t                bytes;
    char                  data[MAILBOX_BYTES];

    bool is_taken() const;
    // post returns false if the receiver has not taken the previous message; take returns false if there is no message.
    bool post(const void *from, size_t size, message_kind what);
    bool take(std::vector<char> &to, size_t size, message_kind what);
    // Takes a put or a signal, and stores in `what` which of the two it took.
    bool take_signal(std::vector<char> &to, message_kind &what);
};

struct mailboxes;

// Sends a message to all members and returns their messages. No call may be running.
std::vector<std::vector<char>> tell_all(mailboxes &boxes, const void *own, size_t bytes);

// Makes the name of a new communicator.
void mailboxes_name(char *name, size_t bytes);

struct mailboxes {
    int size, rank;

    // Blocks until all members have arrived. The last member removes the name.
    void     open(const char *name, int members, int own);
    void     close();
    mailbox &at(int from, int to);

    // arrive marks this end of a connection as ready. await waits for the other end, and calls go_on meanwhile.
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

// The faults in FAKE_NCCL, separated by spaces. "version=RANK:21800" is another version. "refuse=RANK:ncclSend" fails
// in this function. "lose=RANK:CALLS" loses the rank's connections after this number of collectives. "absent=RANK"
// joins no communicator. "unknown=RANK" registers no memory, as a system without cuMem.
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

// One message of a call.
struct part {
    int               peer;
    const void       *from;    // data to send; NULL: the message is received
    size_t            bytes;
    bool              sends, is_one_sided = false;    // one-sided: does not wait for the other end
    bool              is_started = false, is_done = false;
    std::vector<char> data = {};    // data that was received
    message_kind      kind = {};    // in a group, the kind of the call that this message belongs to
};

// Calls that run together on a stream: a single one, or the calls between ncclGroupStart and ncclGroupEnd.
struct communication {
    std::vector<part>                                     parts;
    std::vector<std::function<void(std::vector<part> &)>> finish;
    message_kind                                          kind;
    uint64_t                                              turn;    // position among the calls of the communicator
};

// Registered memory: a symmetric window, or memory of one member only.
struct registration {
    const char *data;
    size_t      bytes;
    bool        is_window, is_open;
};

struct ncclComm {
    mailboxes                 boxes;
    std::vector<registration> known;
    uint64_t                  calls = 0, done = 0;    // number of calls that were enqueued, and completed
    int64_t                   channels = 0;           // maximum number of channels by its configuration
    bool                      copies   = false;       // uses copy engines where possible
    std::vector<int>          invitations;            // signals of each member that no put has answered
    bool                      is_used = false;
    bool                      is_lost = false;
};

// the_log returns NCCL's log, or NULL if it is disabled. On rank 0, tell writes the algorithm of a collective to it in
// NCCL's format.
FILE *the_log();
void  tell(const char *function, ncclComm_t comm, const communication &call);

// Opens the communicator with this name. Blocks until all members have arrived.
ncclResult_t make(ncclComm_t *made, const char *name, int size, int rank, const ncclConfig_t *config);

inline size_t bytes_of(ncclDataType_t type)
{
    return type == ncclFloat32 || type == ncclInt32 ? 4 : type == ncclBfloat16 ? 2 : 1;
}

// These functions add a message to the call.
void add_send(communication &call, int peer, const void *from, size_t bytes);
void add_receive(communication &call, int peer, size_t bytes);

// Makes a call in which each member sends `count` elements to every member. The data for successive receivers is `step`
// bytes apart. `in` and `out` must be at the same offset of the same window on all members, or are NULL.
communication exchange(ncclComm_t comm, char call, ncclDataType_t type, size_t count, const void *from, size_t step,
                       const void *in, const void *out);
// received returns the received messages by sender, and gather concatenates them.
std::vector<const std::vector<char> *> received(const std::vector<part> &parts);
void                                   gather(const std::vector<part> &parts, void *to);

// Enqueues the call. Within a group, stores it until the group ends.
ncclResult_t add(ncclComm_t comm, cudaStream_t stream, communication call);
void         begin_group(void);
void         end_group(void);
