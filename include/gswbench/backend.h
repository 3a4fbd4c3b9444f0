// SPDX-License-Identifier: MIT
// What executes compute ops: a struct of function pointers and its state. The list of all backends is in backend.c.
#ifndef GSWBENCH_BACKEND_H
#define GSWBENCH_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gswbench/backend_activity.h"
#include "gswbench/backend_attention.h"
#include "gswbench/backend_choices.h"
#include "gswbench/backend_library.h"
#include "gswbench/backend_setup.h"
#include "gswbench/backend_streams.h"
#include "gswbench/digest.h"
#include "gswbench/format.h"
#include "gswbench/op.h"
#include "gswbench/status.h"

// Memory of the backend's device that holds one tensor.
struct buffer {
    void       *data;    // NULL: absent operand
    int64_t     elements;
    enum format format;
};

struct backend;

// Executes one op, or enqueues it on the stream of its lane; buffers are in the order of the op's operand slots. Op and
// buffers are the caller's again when it returns. Failure is fatal.
typedef void op_run(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS]);

// What prepare has decided for an op. Whoever runs the op keeps it, and calls its function in place of the kind's.
struct prepared;
typedef void prepared_run(struct backend *backend, const struct prepared *prepared, const struct op *op,
                          const struct buffer buffers[OP_OPERANDS]);
struct prepared {
    prepared_run *run;
    bool          varies;    // the same operands may give other bits each time: it adds in the order of arrival
};

struct backend_ops {
    const char *name;          // as written in [run] backend =
    bool        is_device;     // numbers are set against a device peak
    bool        computes;      // false: its ops compute nothing
    status (*detect)(void);    // why there is no device to open, in a few words; NULL: there always is one
    // The PCI id of the device that open would take, without taking it; "": not known. NULL: the device is the host.
    void (*locate)(const struct backend_setup *setup, char *text, size_t bytes);
    status (*open)(struct backend *backend, const struct backend_setup *setup);
    void (*close)(struct backend *backend);
    op_run *const *run;    // [OP_COUNT]; NULL: not supported. Transfers are the communicator's and stay NULL
    const struct backend_streams *streams;    // NULL: run() has computed when it returns

    // Device memory, zeroed. Failure is fatal: the plan's bytes are compared with available_bytes before.
    void *(*allocate)(struct backend *backend, int64_t bytes);
    void (*release)(struct backend *backend, void *data);
    void (*clear)(struct backend *backend, void *data, int64_t bytes);    // zeroes it; NULL: it is no device's
    int64_t (*available_bytes)(struct backend *backend);                  // INT64_MAX: no limit known
    void (*upload)(struct backend *backend, void *to, const void *from, int64_t bytes);
    void (*download)(struct backend *backend, void *to, const void *from, int64_t bytes);
    void (*digest)(struct backend *backend, const struct buffer *buffer, struct digest *digest);

    // Bytes of scratch that run() needs for this op; the largest of all ops is reserved once, before the first step.
    int64_t (*scratch_bytes)(struct backend *backend, const struct op *op);
    void (*reserve_scratch)(struct backend *backend, int64_t bytes);

    // Decides, once for each op and before memory is allocated, all that a step must not decide: algorithms, kernels.
    // buffers are aligned as the real ones will be, but their data must not be read. prepared stays as it is where
    // there was nothing to decide; else it lives as long as the backend. NULL: no op needs it.
    status (*prepare)(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS],
                      const struct prepared **prepared);
    const struct backend_choices *choices;                   // NULL: nothing is chosen by timing
    void (*profile)(struct backend *backend, bool is_on);    // has profilers collect what follows; NULL: no device
    const struct backend_activity *activity;                 // NULL: nothing tells of the device's work but events

    int (*processors)(struct backend *backend);    // multiprocessors of the device; NULL: it is the host
    // device_id differs between devices of one host; device_name is their kind, as the driver names it: "NVIDIA H200".
    // NULL: the backend's device is the host.
    void (*device_id)(struct backend *backend, char *text, size_t bytes);
    void (*device_name)(struct backend *backend, char *text, size_t bytes);

    int (*libraries)(struct backend *backend, struct backend_library list[BACKEND_LIBRARIES]);    // how many; NULL: 0
    // Who computes attention, once ops are prepared. NULL: the backend has but one way.
    void (*attention)(struct backend *backend, struct backend_attention *attention);

    // One line for the result: "Intel(R) Xeon(R) Processor, 2 threads, OpenBLAS 0.3.21".
    void (*describe)(struct backend *backend, char *text, size_t bytes);
};

struct backend {
    const struct backend_ops *ops;
    void                     *state;
    char                      choice[160];          // why "auto" took it: what the better ones lack; "": nothing
    int                       spared_processors;    // of its device, that GEMMs leave to transfers; of what is prepared
    int64_t                   allocations;        // calls of allocate and reserve_scratch so far: constant during steps
    int64_t                   allocated_bytes;    // held now
    int64_t                   scratch_bytes;      // reserved; backend_reserve_scratch only ever grows it
};

// "auto" takes the first of the list that has a device. A failed one needs no close.
status backend_open(struct backend *backend, const char *name, const struct backend_setup *setup);
void   backend_close(struct backend *backend);

// allocate, release and reserve_scratch of the backend, counted.
void *backend_allocate(struct backend *backend, int64_t bytes);
void  backend_release(struct backend *backend, void *data, int64_t bytes);
// Memory of a device that a library has allocated: zeroed and counted like the backend's own, until the
// library takes it back.
void backend_adopt(struct backend *backend, void *data, int64_t bytes);
void backend_disown(struct backend *backend, int64_t bytes);
void backend_reserve_scratch(struct backend *backend, int64_t bytes);

// Prepares an op, where there is something to decide, and runs it: whoever runs an op more than once keeps prepared.
status backend_prepare(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS],
                       const struct prepared **prepared);
static inline void backend_run(struct backend *backend, const struct prepared *prepared, const struct op *op,
                               const struct buffer buffers[OP_OPERANDS])
{
    if (prepared != NULL) {
        prepared->run(backend, prepared, op, buffers);
    } else {
        backend->ops->run[op->kind](backend, op, buffers);
    }
}

// What a backend of that name refuses, known in every build and without a device: fp32 activations; an op, where only
// the types of its buffers count.
bool   backend_lacks_fp32(const char *name);
status backend_check_op(const char *name, const struct op *op, const struct buffer buffers[OP_OPERANDS]);

// The backends, in the order in which "auto" tries them. null is last and is never chosen for the user.
extern const struct backend_ops backend_cuda, backend_host, backend_null;

extern const struct backend_ops *const backend_list[];     // of this build; ends with NULL
extern const char *const               backend_names[];    // "auto" and all of them; ends with NULL

#endif
