// SPDX-License-Identifier: MIT
// What executes compute ops: a struct of function pointers and its state. The list of all backends is in backend.c.
#ifndef GSWBENCH_BACKEND_H
#define GSWBENCH_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gswbench/dtype.h"
#include "gswbench/op.h"
#include "gswbench/status.h"

// Memory of the backend's device that holds one tensor.
struct buffer {
    void      *data;    // NULL: absent operand
    int64_t    elements;
    enum dtype dtype;
};

struct backend;

// What computes attention on a device; auto: cuDNN where it is there and takes the shape.
enum attention_choice { ATTENTION_AUTO, ATTENTION_CUDNN, ATTENTION_OWN };

// What a rank asks of its backend, beside the backend's name.
struct backend_setup {
    int         local_rank;           // its place among the ranks of its host
    int         threads;              // of the processor
    bool        is_deterministic;     // no choice by measured time
    bool        is_fp32;              // activations are
    int64_t     attention;            // enum attention_choice
    int         spared_processors;    // of the device, left to transfers by matrix products
    const char *cache;                // folder of what is kept from run to run; NULL or "": the user's
};

// What only a backend has whose run() enqueues on a stream and returns; each lane is a stream. Events order streams;
// work that is captured is not executed but kept, as a graph.
struct backend_streams {
    void (*attach)(struct backend *backend);               // first, on every thread that calls any other function
    void *(*handle)(struct backend *backend, int lane);    // the stream as the device's own libraries know it
    void *(*event_open)(struct backend *backend, bool is_timed);
    void (*event_close)(void *event);
    void (*record)(struct backend *backend, int lane, void *event);    // what the lane holds so far
    void (*wait)(struct backend *backend, int lane, void *event);      // holds the lane back until it is done
    void (*synchronize)(struct backend *backend, int lane);            // blocks the caller until the lane is done
    double (*seconds_between)(void *begin, void *end);                 // of two recorded and finished events

    // Host memory that a lane reads and writes by itself, and a copy between any two memories.
    void *(*allocate_host)(struct backend *backend, int64_t bytes);
    void (*release_host)(struct backend *backend, void *data);
    void (*copy)(struct backend *backend, int lane, void *to, const void *from, int64_t bytes);

    // Everything enqueued between begin and end, on the lane and on lanes ordered after it by events and before the
    // end, is captured. One graph a backend.
    void (*capture_begin)(struct backend *backend, int lane);
    void (*capture_end)(struct backend *backend, int lane);
    void (*capture_launch)(struct backend *backend, int lane);
    void (*capture_release)(struct backend *backend);    // before what was captured in it is closed
};

// Executes one op, or enqueues it on the stream of its lane; buffers are in the order of the op's operand slots.
// Failure is fatal.
typedef void op_run(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS]);

struct backend_ops {
    const char *name;          // as written in [run] backend =
    bool        is_device;     // numbers are set against a device peak
    bool        lacks_fp32;    // has attention in bf16 only
    status (*detect)(void);    // why there is no device to open, in a few words; NULL: there always is one
    status (*open)(struct backend *backend, const struct backend_setup *setup);
    void (*close)(struct backend *backend);
    op_run *const *run;    // [OP_COUNT]; NULL: not supported. Transfers are the communicator's and stay NULL
    const struct backend_streams *streams;    // NULL: run() has computed when it returns

    // Device memory, zeroed. Failure is fatal: the plan's bytes are compared with available_bytes before.
    void *(*allocate)(struct backend *backend, int64_t bytes);
    void (*release)(struct backend *backend, void *data);
    int64_t (*available_bytes)(struct backend *backend);    // INT64_MAX: no limit known
    void (*upload)(struct backend *backend, void *to, const void *from, int64_t bytes);
    void (*download)(struct backend *backend, void *to, const void *from, int64_t bytes);

    // Bytes of scratch that run() needs for this op; the largest of all ops is reserved once, before the first step.
    int64_t (*scratch_bytes)(struct backend *backend, const struct op *op);
    void (*reserve_scratch)(struct backend *backend, int64_t bytes);

    // Decides, once for each op and before memory is allocated, all that a step must not decide: algorithms, kernels.
    // buffers are aligned as the real ones will be, but their data is not to be followed. NULL: nothing to decide.
    status (*prepare)(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS]);

    // Tells devices of one host apart. NULL: the backend's device is the host.
    void (*device_name)(struct backend *backend, char *text, size_t bytes);

    // One line for the result: "Intel(R) Xeon(R) Processor, 2 threads, OpenBLAS 0.3.21".
    void (*describe)(struct backend *backend, char *text, size_t bytes);
};

struct backend {
    const struct backend_ops *ops;
    void                     *state;
    char                      choice[160];        // why "auto" took it: what the better ones lack; "": nothing
    int64_t                   allocations;        // calls of allocate and reserve_scratch so far: constant during steps
    int64_t                   allocated_bytes;    // held now
    int64_t                   scratch_bytes;      // reserved; backend_reserve_scratch only ever grows it
};

// Opens the backend of that name; "auto" takes the first of the list that has a device. A failed one needs no close.
status backend_open(struct backend *backend, const char *name, const struct backend_setup *setup);
void   backend_close(struct backend *backend);

// allocate, release and reserve_scratch of the backend, counted.
void *backend_allocate(struct backend *backend, int64_t bytes);
void  backend_release(struct backend *backend, void *data, int64_t bytes);
void  backend_reserve_scratch(struct backend *backend, int64_t bytes);

// The list, for help and tests; ends with NULL.
extern const struct backend_ops *const backend_list[];
extern const struct backend_ops        backend_cuda, backend_host, backend_null;

// Device memory of backends without a device: the process's own.
void   *backend_memory_allocate(struct backend *backend, int64_t bytes);
void    backend_memory_release(struct backend *backend, void *data);
int64_t backend_memory_available(struct backend *backend);
void    backend_memory_copy(struct backend *backend, void *to, const void *from, int64_t bytes);

#endif
