// SPDX-License-Identifier: MIT
// Backend interface: a table of functions that execute compute ops on one device, and the state of an open backend.
// backend.c lists all backends.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gswbench/digest.h"
#include "gswbench/format.h"
#include "gswbench/gemm.h"
#include "gswbench/op.h"
#include "gswbench/status.h"

struct buffer {
    void       *data;    // NULL: optional operand that is absent
    int64_t     elements;
    enum format format;
};

struct backend;

// Executes one op, or enqueues it on its stream (op->stream). buffers follow the operand slots of the op's kind. The
// caller may reuse op and buffers after the return. Failure is fatal.
typedef void op_run(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS]);

// Result of `prepare` for one op, such as a cuBLASLt algorithm. The caller keeps it, and executes the op with its run
// function instead of backend_ops.run[kind].
struct prepared;
typedef void prepared_run(struct backend *backend, const struct prepared *prepared, const struct op *op,
                          const struct buffer buffers[OP_OPERANDS]);
struct prepared {
    prepared_run *run;
    bool          varies;    // results may differ in their last bits between runs, because atomics add in arrival order
};

// The attention implementation. auto: cuDNN if it is installed, supports the shape and its graph executes.
enum attention_choice { ATTENTION_AUTO, ATTENTION_CUDNN, ATTENTION_OWN };

// Attention implementation that prepare selected, as text for the result; "" if unknown.
struct backend_attention {
    char provider[24];    // "cudnn", "own", "cudnn and own"; "": no attention op prepared yet
    char library[32];     // "cuDNN 9.19.0" once it is loaded
    char engines[64];     // cuDNN engine numbers: "forward 2, backward 6"
    char refusal[256];    // why the built-in kernels replace cuDNN
};

// Setup of a backend that backend_open opens by name.
struct backend_setup {
    int         local_rank;          // index of the rank on its host
    int         threads;             // CPU threads
    bool        is_deterministic;    // algorithms are not selected by timing, which may choose others in the next run
    bool        is_fp32;             // activations are fp32
    int64_t     attention;           // enum attention_choice
    int         sm_margin;           // SM margin: SMs that GEMMs leave to communication
    int         processors;          // number of SMs the built-in kernels assume, for tests; 0: all of the device
    const char *cache;               // cache folder that outlives a run; NULL or "": the user's cache folder
};

// Functions of a backend whose run() enqueues an op and returns before it has executed. stream: index of the stream.
// Events order the streams. During a capture, work is recorded as a graph and not executed.
struct backend_streams {
    void (*attach)(struct backend *backend);                 // call first on every thread that uses the backend
    void *(*handle)(struct backend *backend, int stream);    // native stream handle (cudaStream_t)
    void *(*event_open)(struct backend *backend, bool is_timed);
    void (*event_close)(void *event);
    void (*record)(struct backend *backend, int stream, void *event);    // after all work enqueued so far
    // Records a timed event like record. If it is captured, it is recorded in each launch of the graph.
    void (*mark)(struct backend *backend, int stream, void *event);
    void (*wait)(struct backend *backend, int stream, void *event);    // stream waits for the event
    void (*synchronize)(struct backend *backend, int stream);          // blocks the caller until the stream is idle
    double (*seconds_between)(void *begin, void *end);                 // between two completed events

    // Pinned host memory, and an asynchronous copy between any two memories.
    void *(*allocate_host)(struct backend *backend, int64_t bytes);
    void (*release_host)(struct backend *backend, void *data);
    void (*copy)(struct backend *backend, int stream, void *to, const void *from, int64_t bytes);

    // Captures work that this stream, and streams ordered after it by events, enqueue between begin and end. A backend
    // holds one graph. If begin or end fails there is no graph, and nothing has executed. Call end after each
    // successful begin.
    status (*capture_begin)(struct backend *backend, int stream);
    status (*capture_end)(struct backend *backend, int stream);
    void (*capture_launch)(struct backend *backend, int stream);
    // Call it before the events and communicators that the graph uses are closed.
    void (*capture_release)(struct backend *backend);
};

// Device time span of one op: first kernel start to last kernel end, in seconds of clock_seconds.
struct backend_span {
    double begin, end;
    bool   is_known;    // false: there is no record for the op
};

// Functions that record when kernels run (CUPTI). Recording lasts from open to close and slows down launches. Only one
// backend of a process can record at a time.
struct backend_activity {
    status (*open)(struct backend *backend);               // fails with the reason: missing library, other subscriber
    void (*start)(struct backend *backend);                // later records belong to the next step
    void (*begin)(struct backend *backend, int32_t op);    // assigns this thread's launches to the op until end
    void (*end)(struct backend *backend);
    void (*stop)(struct backend *backend);    // the device has completed the step
    // Fills spans[ops] of the latest step and sets *lost to the number of records lost since open. Fails if a CUPTI
    // call failed since open; the spans are then invalid.
    status (*read)(struct backend *backend, struct backend_span *spans, int32_t ops, int64_t *lost);
    void (*close)(struct backend *backend);
};

// Exchange of autotuning results between ranks: one rank times the candidates of a problem, and all others use its
// choice. The problem name contains the library version and the device model.
struct backend_choices {
    // Writes the name of the problem that prepare would time or has timed for this op; "" if none.
    void (*name)(struct backend *backend, const struct op *op, const struct buffer *buffers,
                 char problem[GEMM_PROBLEM_BYTES]);
    const struct gemm_choice *(*find)(struct backend *backend, const char *problem);    // NULL: not selected yet
    // call before the op is prepared
    void (*take)(struct backend *backend, const struct gemm_choice *choice);
    // writes the cache file for later runs
    void (*keep)(struct backend *backend);
};

// Name and version of a library or driver that a backend computes with. A result notes if ranks differ in them.
enum { BACKEND_LIBRARIES = 4 };
struct backend_library {
    char name[24], version[128];
};

struct backend_ops {
    const char *name;          // name in [run] backend =
    bool        is_device;     // runs on a GPU, not on the host CPU
    bool        computes;      // false for null, whose ops do nothing
    status (*detect)(void);    // fails with the reason if no device is usable; NULL: always usable
    // Writes the PCI id of the device that open would select, without opening it; "" if unknown. NULL: the device is
    // the host CPU.
    void (*locate)(const struct backend_setup *setup, char *text, size_t bytes);
    status (*open)(struct backend *backend, const struct backend_setup *setup);
    void (*close)(struct backend *backend);
    op_run *const                *run;        // [OP_COUNT]; NULL: unsupported. Entries of communication ops stay NULL
    const struct backend_streams *streams;    // NULL: run() is synchronous

    // Returns zeroed device memory. Failure is fatal: callers first check the plan's bytes against available_bytes.
    void *(*allocate)(struct backend *backend, int64_t bytes);
    void (*release)(struct backend *backend, void *data);
    void (*clear)(struct backend *backend, void *data, int64_t bytes);    // zeroes; NULL: host memory
    int64_t (*available_bytes)(struct backend *backend);                  // INT64_MAX: unknown
    void (*upload)(struct backend *backend, void *to, const void *from, int64_t bytes);
    void (*download)(struct backend *backend, void *to, const void *from, int64_t bytes);
    void (*digest)(struct backend *backend, const struct buffer *buffer, struct digest *digest);

    // Scratch bytes that run() needs for this op. The maximum over all ops is reserved once, before the first step.
    int64_t (*scratch_bytes)(struct backend *backend, const struct op *op);
    void (*reserve_scratch)(struct backend *backend, int64_t bytes);

    // Selects algorithms and kernels for one op before memory is allocated, so that steps select nothing. buffers have
    // their final alignment, but their data must not be read. Leaves *prepared unchanged if no selection is needed;
    // otherwise *prepared is valid until the backend closes. NULL: no op needs preparation.
    status (*prepare)(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS],
                      const struct prepared **prepared);
    const struct backend_choices *choices;                   // NULL: nothing is selected by timing
    void (*profile)(struct backend *backend, bool is_on);    // cudaProfilerStart or Stop; NULL: no device
    const struct backend_activity *activity;                 // NULL: only events can time the device

    int (*processors)(struct backend *backend);    // number of SMs of the device; NULL: the host CPU
    // device_id is unique among the devices of one host. device_name is the driver's name of the model: "NVIDIA H200".
    // NULL: the device is the host CPU.
    void (*device_id)(struct backend *backend, char *text, size_t bytes);
    void (*device_name)(struct backend *backend, char *text, size_t bytes);

    // Lists the libraries in use, and returns their number. NULL: none.
    int (*libraries)(struct backend *backend, struct backend_library list[BACKEND_LIBRARIES]);
    // Reports the attention implementation in use, after all ops are prepared. NULL: there is only one.
    void (*attention)(struct backend *backend, struct backend_attention *attention);

    // Writes one line for the result: "Intel(R) Xeon(R) Processor, 2 threads, OpenBLAS 0.3.21".
    void (*describe)(struct backend *backend, char *text, size_t bytes);
};

struct backend {
    const struct backend_ops *ops;
    void                     *state;
    char                      choice[160];        // why "auto" skipped earlier backends; "" if it skipped none
    int                       sm_margin;          // SM margin for GEMMs that are prepared next
    int64_t                   allocations;        // calls of allocate and reserve_scratch so far; constant during steps
    int64_t                   allocated_bytes;    // currently held
    int64_t                   scratch_bytes;      // reserved scratch; it only grows
};

// Fails with EXIT_LAUNCH if this processor lacks instructions that the program was compiled for. Call it first.
status backend_check_processor(void);

// Opens the backend with this name; "auto": the first usable one of backend_list. It needs no close if this fails.
status backend_open(struct backend *backend, const char *name, const struct backend_setup *setup);
void   backend_close(struct backend *backend);

// Writes the PCI id of the device that backend_open would select; "" for the host CPU, or if no device can be opened.
void backend_locate(const char *name, const struct backend_setup *setup, char *text, size_t bytes);

// allocate, release and reserve_scratch of the backend with byte counters.
void *backend_allocate(struct backend *backend, int64_t bytes);
void  backend_release(struct backend *backend, void *data, int64_t bytes);
// Zeroes device memory that a library allocated, and counts it as the backend's until backend_disown.
void backend_adopt(struct backend *backend, void *data, int64_t bytes);
void backend_disown(struct backend *backend, int64_t bytes);
void backend_reserve_scratch(struct backend *backend, int64_t bytes);

// Calls the backend's prepare if it has one. Prepare an op once, and pass *prepared (may be NULL) to each backend_run.
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

struct backend_widths {
    int64_t head;                       // maximum head dimension of attention; INT64_MAX: unlimited
    int64_t norm;                       // maximum row width of a norm; INT64_MAX: unlimited
    int64_t mamba_head, mamba_state;    // maximum head dimension and state of Mamba-2
    bool    pairs_alike;                // key and value head dimensions must both be multiples of 8, or neither
};

// Limits of the backend with this name. "auto" and backends without limits return INT64_MAX.
struct backend_widths backend_widths(const char *name);

// Return whether a backend lacks fp32 activations, and why it cannot run an op. Neither needs a device or a build with
// the backend. backend_check_op reads the formats of the buffers, never their data.
bool   backend_lacks_fp32(const char *name);
status backend_check_op(const char *name, const struct op *op, const struct buffer buffers[OP_OPERANDS]);

// Memory functions of backends without a device: they use host memory.
void   *backend_memory_allocate(struct backend *backend, int64_t bytes);
void    backend_memory_release(struct backend *backend, void *data);
int64_t backend_memory_available(struct backend *backend);
void    backend_memory_copy(struct backend *backend, void *to, const void *from, int64_t bytes);
void    backend_memory_digest(struct backend *backend, const struct buffer *buffer, struct digest *digest);

// The backends in the order of "auto". null is last; "auto" never selects it.
extern const struct backend_ops backend_cuda, backend_host, backend_null;

extern const struct backend_ops *const backend_list[];     // backends of this build, NULL-terminated
extern const char *const               backend_names[];    // "auto" and all backend names, NULL-terminated
