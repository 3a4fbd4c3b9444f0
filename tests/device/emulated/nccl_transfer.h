// SPDX-License-Identifier: MIT
// Messages of the emulator's NCCL. Each communicator has shared memory with a mailbox for every sender and receiver. A
// sender posts after its previous message was taken. A call is a group of messages, ordered within its communicator.
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

// Properties that must match on both ends of a message.
struct message_kind {
    char   call;
    int    type  = 0;
    size_t count = 0;
    // Position in symmetric memory: window and offset; -1: in none.
    long in_window = -1, in_offset = -1, out_window = -1, out_offset = -1;
};

struct mailbox {
    std::atomic<uint64_t> posted, taken;
    std::atomic<int>      has_sender, has_receiver;
    message_kind          kind;
    size_t                bytes;
    char                  data[MAILBOX_BYTES];

    bool is_taken() const;
    // False: the previous message was not taken; there is no message.
    bool post(const void *from, size_t size, message_kind what);
    bool take(std::vector<char> &to, size_t size, message_kind what);
    // Takes a put or a signal; what tells them apart.
    bool take_signal(std::vector<char> &to, message_kind &what);
};

struct mailboxes;

// Exchanges a message with all members while no call runs; returns their messages.
std::vector<std::vector<char>> tell_all(mailboxes &boxes, const void *own, size_t bytes);

// The name of a new communicator.
void mailboxes_name(char *name, size_t bytes);

struct mailboxes {
    int size, rank;

    // Blocks until all members have arrived; the last one removes the name.
    void     open(const char *name, int members, int own);
    void     close();
    mailbox &at(int from, int to);

    // Marks this end of a connection as ready; waits for the other end, and calls go_on meanwhile.
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

// Faults in FAKE_NCCL, separated by spaces: "version=RANK:21800"; "refuse=RANK:ncclSend"; "lose=RANK:CALLS" loses the
// rank's connections after that many collectives; "absent=RANK" joins no communicator; "unknown=RANK" registers no
// memory, as without cuMem.
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
    const void       *from;    // data to send; NULL: a receive
    size_t            bytes;
    bool              sends, is_one_sided = false;    // one-sided: does not wait for the other end
    bool              is_started = false, is_done = false;
    std::vector<char> data = {};    // received
    message_kind      kind = {};    // kind of the message's own call, in a group
};

// Calls that run together on a stream: one, or those between ncclGroupStart and ncclGroupEnd.
struct communication {
    std::vector<part>                                     parts;
    std::vector<std::function<void(std::vector<part> &)>> finish;
    message_kind                                          kind;
    uint64_t                                              turn;    // position among the calls of its communicator
};

// Registered memory: a symmetric window, or memory of one member.
struct registration {
    const char *data;
    size_t      bytes;
    bool        is_window, is_open;
};

struct ncclComm {
    mailboxes                 boxes;
    std::vector<registration> known;
    uint64_t                  calls = 0, done = 0;    // enqueued and completed
    int64_t                   channels = 0;           // maximum of its configuration
    bool                      copies   = false;       // uses copy engines where possible
    std::vector<int>          invitations;            // unanswered signals of each member
    bool                      is_used = false;
    bool                      is_lost = false;
};

// NCCL's log; NULL: disabled. tell: logs the algorithm of a collective in NCCL's format, on rank 0.
FILE *the_log();
void  tell(const char *function, ncclComm_t comm, const communication &call);

// Opens the communicator with this name. Blocks until all members have arrived.
ncclResult_t make(ncclComm_t *made, const char *name, int size, int rank, const ncclConfig_t *config);

inline size_t bytes_of(ncclDataType_t type)
{
    return type == ncclFloat32 || type == ncclInt32 ? 4 : type == ncclBfloat16 ? 2 : 1;
}

// Add a message to the call.
void add_send(communication &call, int peer, const void *from, size_t bytes);
void add_receive(communication &call, int peer, size_t bytes);

// Call in which each member sends count elements to every member: the data of successive receivers is `step` bytes
// apart. in, out: addresses that must be at the same place of a window on all members, or NULL.
communication exchange(ncclComm_t comm, char call, ncclDataType_t type, size_t count, const void *from, size_t step,
                       const void *in, const void *out);
// Received messages by sender; gather concatenates them.
std::vector<const std::vector<char> *> received(const std::vector<part> &parts);
void                                   gather(const std::vector<part> &parts, void *to);

// Enqueues the call, or stores it until its group ends.
ncclResult_t add(ncclComm_t comm, cudaStream_t stream, communication call);
void         begin_group(void);
void         end_group(void);
