// SPDX-License-Identifier: MIT
// Simulates streams of tasks. A task has a duration when it runs alone. A collective starts when all participants have
// reached it, and tasks that run at the same time slow each other down.
#pragma once

#include <stdint.h>

#include "gswbench/op.h"
#include "gswbench/status.h"

// Bit mask of the links that a communication task uses. Tasks of one actor with a common bit share that link.
enum {
    LINK_NODE_OUT    = 1,    // between devices of a node
    LINK_NODE_IN     = 2,
    LINK_NETWORK_OUT = 4,    // between nodes
    LINK_NETWORK_IN  = 8,
    LINK_BITS        = 4
};

struct task {
    double  seconds;           // duration alone; of a rendezvous, the longest of its participants
    int32_t rendezvous;        // rendezvous with tasks of other actors; -1: none
    int32_t wait[OP_WAITS];    // tasks of the same actor that end first
    uint8_t stream, wait_count;
    uint8_t links;             // 0: compute
    int16_t processors;        // SMs that it takes from compute
    bool    is_read;           // the host launches nothing until it has ended
    double  launch_seconds;    // host time; a task starts after the host has launched it and all before it
};

// A rank that represents all ranks with the same work. Tasks of one stream run in list order.
struct actor {
    struct task *tasks;
    int32_t      task_count;
    int32_t      node;     // 0 .. actor_count - 1: actors of one node share cores
    double       ranks;    // ranks that it represents on the node
};

// CPU ranks share the cores of their node. Threads communicate, and get a core late while it computes.
struct simulated_cores {
    double count;                  // per node; 0: ranks have devices
    double threads;                // per computing rank
    double communication_delay;    // extra seconds of a communication task while all cores compute
};

struct simulation {
    struct actor *actors;
    int32_t       actor_count;
    int32_t      *participants;    // [rendezvous_count]: participants
    int32_t       rendezvous_count;
    // Seconds that compute loses per second of overlapping communication, below 1, in addition to the SMs that
    // communication takes.
    double                 contention;
    double                 processors;    // SMs per device; 0: communication takes none
    int32_t                sm_margin;     // SM margin that compute leaves free at all times
    struct simulated_cores cores;
};

struct actor_time {
    double          end_seconds;        // end of its last task
    double          compute_seconds;    // duration of its compute tasks, with slowdown
    struct op_time *tasks;              // [task_count], allocated by the caller; NULL: not wanted
};

// Fills times[actor_count]; the caller sets their tasks. Communication tasks on one link get equal shares of it, and a
// collective runs at the rate of its slowest participant. Returns an error if actors deadlock.
status simulate(const struct simulation *simulation, struct actor_time *times);
