// SPDX-License-Identifier: MIT
// Simulates lanes as queues: a task takes given seconds when it runs alone, a transfer begins when all its parties have
// come to it, and tasks that run at the same time slow each other down.
#ifndef GSWBENCH_SIMULATE_H
#define GSWBENCH_SIMULATE_H

#include <stdint.h>

#include "gswbench/op.h"
#include "gswbench/status.h"

// The links that a transfer uses: a bit mask. Transfers of one actor that have a bit in common share that link.
enum {
    LINK_NODE_OUT    = 1,    // between devices of a node
    LINK_NODE_IN     = 2,
    LINK_NETWORK_OUT = 4,    // between nodes
    LINK_NETWORK_IN  = 8,
    LINK_BITS        = 4
};

struct task {
    double  seconds;           // when nothing runs beside it; of a meeting, the longest of its parties counts
    int32_t meeting;           // which the tasks of several actors have in common; -1: none, or all members do the same
    int32_t wait[OP_WAITS];    // tasks of the same actor on other lanes that end first
    uint8_t lane, wait_count;
    uint8_t links;            // 0: computes
    int16_t processors;       // of its device, that it takes from what computes beside it
    bool    is_read;          // the host of the actor launches nothing until it has ended
    double launch_seconds;    // of that host: the task begins no earlier than all are launched that came before, and it
};

// One rank that stands for all that do the same. Tasks of one lane run in the order of the list.
struct actor {
    struct task *tasks;
    int32_t      task_count;
    int32_t      node;     // 0 .. actor_count - 1: whose cores it shares
    double       ranks;    // that it stands for on the node
};

// Ranks without a device compute on cores that they share. Their transfers are carried by threads, which get a core
// late while it computes.
struct simulated_cores {
    double count;             // of a node; 0: nothing shares cores
    double threads;           // of a rank that computes
    double transfer_delay;    // seconds that a transfer takes longer while all cores compute
};

struct simulation {
    struct actor *actors;
    int32_t       actor_count;
    int32_t      *parties;    // [meeting_count]: how many actors come to it
    int32_t       meeting_count;
    double        contention;             // seconds that compute loses for each second of transfers beside it, below 1,
                                          // besides the processors that these take
    double                 processors;    // of a device; 0: transfers take none
    int32_t                spared;        // of these, which compute leaves to transfers in any case
    struct simulated_cores cores;
};

struct actor_time {
    double          end_seconds;        // when its last task has ended
    double          compute_seconds;    // that its tasks without links took, with what transfers beside them cost
    struct op_time *tasks;              // [task_count] of the caller, filled; NULL: not wanted
};

// Fills times[actor_count], whose tasks are set before. Transfers that share a link progress at equal shares of it; a
// transfer with several parties as fast as the slowest of them. Fails when actors wait for each other for ever.
status simulate(const struct simulation *simulation, struct actor_time *times);

#endif
