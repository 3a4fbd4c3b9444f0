// SPDX-License-Identifier: MIT
// A communicator executes collectives, sends and receives between ranks. This header has its interface, a table of
// functions, and its state. The communicators local and mpi sum in fp32 in rank order and round once, so both give the
// same bits in every run. nccl uses the order and precision that NCCL chooses.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/format.h"
#include "gswbench/op.h"
#include "gswbench/status.h"

struct comm;
struct comm_group;    // connects the members of a group, for the ops of one stream

// Optional features of the communication library that a job uses.
struct comm_extras {
    bool    allocates;     // the library allocates the communication buffers
    int32_t windows;       // buffers registered as symmetric windows, by all members of a group
    int32_t registered;    // buffers that a member registered alone
    int32_t refused;       // buffers that the library refused to register
    int32_t copying;       // connections that may use copy engines instead of SMs
    int32_t putting;       // connections among `copying` whose ring shifts (OP_ROTATE) are one-sided puts
    bool    exchanges;     // all-to-all is one library call, not sends and receives
    int32_t scalable;      // connections opened with several NCCL unique ids
    double  bytes;         // device memory that the library reports to use; NaN: unknown
};

// How the library executes a collective, in its own words, such as "RING" and "LL128"; "": unknown. The struct has no
// padding, because ranks exchange it byte by byte.
struct comm_choice {
    char    algorithm[32], protocol[16];
    int64_t channels;    // 0: unknown
};

// A buffer that a member uses in the communication ops of a group.
struct comm_buffer {
    void    *data;
    int64_t  bytes;
    uint64_t layout;    // hash of size and operand offsets, which members compare; 0: the group does not use the buffer
};

// Functions for device memory that the library allocates. Communication from this memory is faster.
struct comm_memory {
    void *(*allocate)(struct comm *comm, int64_t bytes);
    void (*release)(struct comm *comm, void *data);
    // Registers buffers, which the group uses until it is closed. All members of the group call it.
    void (*share)(struct comm_group *group, const struct comm_buffer *buffers, int count);
};

// A rank's position in the job's topology.
struct comm_topology {
    int  rank, ranks;
    int  local_rank, local_ranks;    // among the ranks of this host
    int  node, nodes;
    char host[64];
};

struct comm_ops {
    const char *name;           // as in [run] communicator =
    bool        is_enqueued;    // run() only enqueues on the device stream
    bool        sums_vary;      // a collective in a CUDA graph may sum in another order than one outside
    void (*close)(struct comm *comm);

    // Opens a group for one stream. All ranks of the job call it in the same order, each with its own group. members:
    // ranks of the caller's group, in ascending order. Streams have separate communicators, so that they never block
    // each other. Only the two pipeline streams are paired: a send on one matches a receive on the other. processors:
    // SM limit per op, equal on all members; 0: none.
    struct comm_group *(*group_open)(struct comm *comm, const int64_t *members, int64_t size, int stream,
                                     int processors);
    void (*group_close)(struct comm_group *group);

    // Executes a communication op. Blocks until this rank's part is complete, unless the op is enqueued. The caller is
    // the stream's own thread, or the thread that enqueues the ops of every stream. in and out are the operands, in
    // device memory if the op is enqueued, otherwise in host memory. in is NULL for receives and in-place ops, out for
    // sends.
    void (*run)(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format);

    struct comm_extras (*extras)(struct comm *comm);    // features of open connections; NULL: none

    struct comm_choice (*chosen)(struct comm *comm);    // for the ops since the previous call; NULL: never known

    // The control plane exchanges data in host memory. Only the main thread uses it, outside timed regions.
    void (*barrier)(struct comm *comm);
    void (*gather_all)(struct comm *comm, const void *in, void *out, int64_t bytes);    // out: [ranks][bytes]
    void (*share)(struct comm *comm, void *data, int64_t bytes, int from);              // broadcast
};

struct comm {
    const struct comm_ops    *ops;
    void                     *state;
    struct comm_topology      topology;
    const struct comm_memory *memory;         // NULL: uses the backend's memory
    bool                      is_threaded;    // several threads may run ops concurrently
    int                       processors;     // SM limit per op for every connection; 0: none
    char                      library[32];    // "NCCL 2.28.9", "Open MPI v4.1.4"; "": none
    char                      choice[160];    // why "auto" chose this communicator and not nccl; "": no reason
};

// For ranks that are threads of this process. The caller opens one hub, and then a communicator per thread.
struct local_hub;
struct local_hub *local_hub_open(int ranks);
void              local_hub_close(struct local_hub *hub);
void              comm_open_local(struct comm *comm, struct local_hub *hub, int rank);

// Opens a communicator for one rank of a larger job, without the other ranks. Collectives repeat this rank's data;
// receives return random numbers.
void comm_open_alone(struct comm *comm);

// Initialises MPI once; without a launcher, the job has one rank. Fails with EXIT_LAUNCH in a build without MPI.
// comm_has_opened_mpi: whether this process has ever initialised MPI.
status comm_open_mpi(struct comm *comm);
bool   comm_has_opened_mpi(void);

// Opens NCCL for a backend with device streams. `control`, an MPI communicator, remains the control plane for setup and
// results; NCCL executes the communication ops. Close comm before control and backend. All ranks call it, and all
// return the same error. comm_detect_nccl returns why NCCL is unavailable.
struct backend;
struct comm_nccl_setup {
    int  connect_seconds;             // timeout of a connection; the job then ends
    bool registers, must_register;    // register communication buffers with NCCL; must_register: fail if it cannot
    int  ranks_per_id;                // ranks per unique id, for groups of at least twice this size; 0: one id
    bool tells;                       // read the algorithm of each collective from NCCL's log (comm_ops.chosen)
    bool copies;                      // use the devices' copy engines where possible
};
status comm_detect_nccl(void);
status comm_open_nccl(struct comm *comm, struct comm *control, struct backend *backend,
                      const struct comm_nccl_setup *setup);

// Returns the number of ranks from the launcher (OMPI_COMM_WORLD_SIZE, PMI_SIZE, SLURM_STEP_NUM_TASKS); 0: no launcher.
int comm_launched_ranks(void);

// Returns the rank from the launcher; -1: no launcher.
int comm_launched_rank(void);

// comm_check_launch fails if srun started several processes without PMIx or PMI-2: they could not connect, and each
// would run a job by itself. With PMI-2 it fails if this MPI needs PMIx, as most builds of Open MPI do
// (comm_mpi_asks_for_pmix), unless the user chose the communicator (is_named), for example with --comm mpi.
// comm_launcher describes the launcher.
status      comm_check_launch(bool is_named);
const char *comm_launcher(void);
bool        comm_mpi_asks_for_pmix(void);

// Starts a thread that waits until this rank's launcher ends, or the launcher's daemon on this host. Then the thread
// prints a message (comm_has_lost_launcher is true), and ends the process two seconds later, so that no rank keeps
// running alone.
void comm_watch_launcher(void);
bool comm_has_lost_launcher(void);

// Return the maximum and the minimum over all ranks. Collective, over the control plane.
double comm_largest(struct comm *comm, double own);
double comm_smallest(struct comm *comm, double own);

// Gathers a value of every rank. Returns [ranks][bytes], which the caller frees. Collective, over the control plane.
void *comm_gather(struct comm *comm, const void *own, size_t bytes);

// Return, on every rank, the error of the lowest rank that failed, or OK. *first: that rank, or -1. comm_agree
// and comm_agree_first prefix the text with "rank 3: ", or on several hosts "rank 3 on h2: ". An error of rank 0 has no
// prefix if all ranks have failed, or if the job has one host. Collective, over the control plane.
status comm_find_failed(struct comm *comm, status own, int *first);
status comm_agree_first(struct comm *comm, status own, int *first);
status comm_agree(struct comm *comm, status own);

void comm_close(struct comm *comm);
