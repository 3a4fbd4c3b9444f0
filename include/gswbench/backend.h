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

// Executes one op; buffers are in the order of the op's operand slots. Failure is fatal.
typedef void op_run(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS]);

struct backend_ops {
    const char *name;         // as written in [run] backend =
    bool        is_device;    // numbers are set against a device peak
    status (*open)(struct backend *backend, int local_rank, int threads);
    void (*close)(struct backend *backend);
    op_run *const *run;    // [OP_COUNT]; NULL: not supported. Transfers are the communicator's and stay NULL

    // Device memory, zeroed. Failure is fatal: the plan's bytes are compared with available_bytes before.
    void *(*allocate)(struct backend *backend, int64_t bytes);
    void (*release)(struct backend *backend, void *data);
    int64_t (*available_bytes)(struct backend *backend);    // INT64_MAX: no limit known
    void (*upload)(struct backend *backend, void *to, const void *from, int64_t bytes);
    void (*download)(struct backend *backend, void *to, const void *from, int64_t bytes);

    // Bytes of scratch that run() needs for this op; the largest of all ops is reserved once, before the first step.
    int64_t (*scratch_bytes)(struct backend *backend, const struct op *op);
    void (*reserve_scratch)(struct backend *backend, int64_t bytes);

    // One line for the result: "Intel(R) Xeon(R) Processor, 2 threads, OpenBLAS 0.3.21".
    void (*describe)(struct backend *backend, char *text, size_t bytes);
};

struct backend {
    const struct backend_ops *ops;
    void                     *state;
    int64_t                   allocations;        // calls of allocate and reserve_scratch so far: constant during steps
    int64_t                   allocated_bytes;    // held now
    int64_t                   scratch_bytes;      // reserved; backend_reserve_scratch only ever grows it
};

// Opens the backend of that name; "auto" takes the first of the list that opens, and the error or choice says why.
status backend_open(struct backend *backend, const char *name, int local_rank, int threads);
void   backend_close(struct backend *backend);

// allocate, release and reserve_scratch of the backend, counted.
void *backend_allocate(struct backend *backend, int64_t bytes);
void  backend_release(struct backend *backend, void *data, int64_t bytes);
void  backend_reserve_scratch(struct backend *backend, int64_t bytes);

// The list, for help and tests; ends with NULL.
extern const struct backend_ops *const backend_list[];
extern const struct backend_ops        backend_host, backend_null;

// Device memory of backends without a device: the process's own.
void   *backend_memory_allocate(struct backend *backend, int64_t bytes);
void    backend_memory_release(struct backend *backend, void *data);
int64_t backend_memory_available(struct backend *backend);
void    backend_memory_copy(struct backend *backend, void *to, const void *from, int64_t bytes);

#endif
