// SPDX-License-Identifier: MIT
// What carries data between ranks: a struct of function pointers and its state. The list is in comm.c.
// Reductions of local and mpi add contributions in rank order with fp32 accumulation and round once: runs repeat bit
// for bit, and both give the same bits. nccl adds in the order and precision that its library chooses.
#ifndef GSWBENCH_COMM_H
#define GSWBENCH_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/format.h"
#include "gswbench/op.h"
#include "gswbench/status.h"

struct comm;
struct comm_group;    // one communicator: the members of a group on one lane

// What of a library's younger functions a job uses.
struct comm_extras {
    bool    allocates;              // memory that transfers use is the library's
    int32_t windows, registered;    // memory that connections know: alike on all members; each member's own
    int32_t refused;                // memory that the library would not register
    int32_t copying;                // connections that may leave multiprocessors alone
    int32_t putting;                // ... and whose members write into each other's memory, step by step round a ring
    bool    exchanges;              // an all-to-all is one call
    int32_t scalable;               // connections whose members found each other by several ids
    double  bytes;                  // of the device, by the library's own count; NaN: it does not tell
};

// By what a library makes a transfer, in its own words; "": it does not say. 8 bytes' alignment, no padding.
struct comm_choice {
    char    algorithm[32], protocol[16];
    int64_t channels;    // 0: it does not say
};

// Memory that members of a group have for their transfers.
struct comm_buffer {
    void    *data;
    int64_t  bytes;
    uint64_t layout;    // 0: the group does not use it; equal where its size, and what is where, are
};

// Device memory of a library that moves what is in it faster than what is in others.
struct comm_memory {
    void *(*allocate)(struct comm *comm, int64_t bytes);
    void (*release)(struct comm *comm, void *data);
    // Tells the library of memory that a group uses until it is closed. Collective in the group.
    void (*share)(struct comm_group *group, const struct comm_buffer *buffers, int count);
};

// Where this process or thread stands in the job.
struct comm_place {
    int  rank, ranks;
    int  local_rank, local_ranks;    // among the ranks of this host
    int  node, nodes;
    char host[64];
};

struct comm_ops {
    const char *name;           // as written in [run] communicator =
    bool        is_enqueued;    // run() enqueues on the lane's stream of a backend that has streams, and returns
    bool        sums_vary;      // a captured transfer may add in another order than one that is issued
    void (*close)(struct comm *comm);

    // Collective over all ranks of the job, in the same order on each: members lists the caller's group in rank order.
    // Each (group, lane) is its own communicator, so that lanes never block each other; only the pipeline-send lane's
    // sends meet the other rank's receives on the pipeline-receive lane. processors: multiprocessors of a device that a
    // transfer may take, the same for all members; 0: as many as it likes.
    struct comm_group *(*group_open)(struct comm *comm, const int64_t *members, int64_t size, int lane, int processors);
    void (*group_close)(struct comm_group *group);

    // Executes a transfer op; blocks until this rank's part is complete, if it is not enqueued. Called from the lane's
    // own thread, or from the one that enqueues all lanes in list order. in and out are the operand buffers (in may be
    // NULL for in-place kinds): device memory when it is enqueued, else the host's.
    void (*run)(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format);

    struct comm_extras (*extras)(struct comm *comm);    // of connections that are open; NULL: it has none

    struct comm_choice (*chosen)(struct comm *comm);    // of what has run since the call before; NULL: nothing is known

    // Control plane, host memory, outside timed regions, called from the main thread only.
    void (*barrier)(struct comm *comm);
    void (*gather_all)(struct comm *comm, const void *in, void *out, int64_t bytes);    // out: [ranks][bytes]
    void (*share)(struct comm *comm, void *data, int64_t bytes, int from);              // a rank's with all
};

struct comm {
    const struct comm_ops    *ops;
    void                     *state;
    struct comm_place         place;
    const struct comm_memory *memory;         // NULL: the backend's will do
    bool                      is_threaded;    // several threads may move operands at a time
    int                       processors;     // of a device that a transfer takes at most, whatever opens; 0: no bound
    char                      library[32];    // "NCCL 2.28.9", "Open MPI v4.1.4"; "": none
    char                      choice[160];    // why "auto" took no better one; "": nothing
};

// Ranks as threads of this process. One hub for all, opened by the caller, then one comm a thread.
struct local_hub;
struct local_hub *local_hub_open(int ranks);
void              local_hub_close(struct local_hub *hub);
void              comm_open_local(struct comm *comm, struct local_hub *hub, int rank);

// One rank of a larger job without the others: a transfer makes their data from this rank's own.
void comm_open_alone(struct comm *comm);

// Initialises MPI once; without a launcher it is a job of one rank. Fails (EXIT_LAUNCH) in a build without MPI.
// comm_has_opened_mpi: whether this process has done so, be it closed again.
status comm_open_mpi(struct comm *comm);
bool   comm_has_opened_mpi(void);

// NCCL, for a backend with streams: over a communicator of processes, which stays the control plane. Close both after
// it. Collective; fails alike on all ranks. comm_detect_nccl says why this process cannot have it.
struct backend;
struct comm_nccl_setup {
    int  connect_seconds;             // longer than that, and the job ends
    bool registers, must_register;    // memory that transfers use is made known to NCCL; or the job ends
    int  ranks_per_id;                // that find each other by one id, where there are twice as many; 0: all
    bool tells;                       // how each collective is made is looked up in NCCL's log
    bool copies;                      // where the devices' copy engines can do it, they do
};
status comm_detect_nccl(void);
status comm_open_nccl(struct comm *comm, struct comm *control, struct backend *backend,
                      const struct comm_nccl_setup *setup);

// Ranks that the launcher says it started (OMPI_COMM_WORLD_SIZE, PMI_SIZE, SLURM_STEP_NUM_TASKS); 0: no
// launcher. A Slurm batch script alone starts none.
int comm_launched_ranks(void);

// The number that the launcher gave this process; -1: no launcher.
int comm_launched_rank(void);

// An error where srun started several processes without a way to find each other, which would each be a job of its
// own, or with one that this MPI hardly understands: the user has named a communicator who wants it tried.
// comm_launcher: who started this process, in words. comm_mpi_asks_for_pmix: whether this MPI finds its ranks by PMIx.
status      comm_check_launch(bool is_named);
const char *comm_launcher(void);
bool        comm_mpi_asks_for_pmix(void);

// The most and the least of what ranks say. Collective, over the control plane.
double comm_largest(struct comm *comm, double own);
double comm_smallest(struct comm *comm, double own);

// The error of the first rank that has one, and which rank that is, or -1. Collective, over the control plane.
status comm_find_failed(struct comm *comm, status own, int *first);

void comm_close(struct comm *comm);

#endif
