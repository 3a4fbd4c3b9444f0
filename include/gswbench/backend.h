// SPDX-License-Identifier: MIT
// A backend executes compute ops on one device. This header has its interface, a table of functions, and its state.
// src/backend/backend.c lists all backends.
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

// Executes an op, or enqueues it on its stream (op->stream). buffers: the op's operands, in the order of op_operands.h.
// The caller may reuse op and buffers after the return. Failure ends the job.
typedef void op_run(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS]);

// Result of backend_prepare for one op, such as a cuBLASLt algorithm. backend_run then calls its run function instead
// of backend_ops.run[kind].
struct prepared;
typedef void prepared_run(struct backend *backend, const struct prepared *prepared, const struct op *op,
                          const struct buffer buffers[OP_OPERANDS]);
struct prepared {
    prepared_run *run;
    bool          varies;    // results may differ in their last bits between runs, because atomics add in arrival order
};

// The attention implementation to use. auto: cuDNN if it is installed and can run the op. Otherwise, and in
// deterministic runs, the built-in kernels (own).
enum attention_choice { ATTENTION_AUTO, ATTENTION_CUDNN, ATTENTION_OWN };

// The attention implementation that backend_prepare selected, as text for the run's result; "" if unknown.
struct backend_attention {
    char provider[24];    // "cudnn", "own", "cudnn and own"; "": no attention op prepared yet
    char library[32];     // "cuDNN 9.19.0" once it is loaded
    char engines[64];     // cuDNN engine numbers: "forward 2, backward 6"
    char refusal[256];    // why the built-in kernels replace cuDNN; "": they do not
};

// Parameters of backend_open.
struct backend_setup {
    int         local_rank;          // index of the rank on its host
    int         threads;             // CPU threads
    bool        is_deterministic;    // never select an algorithm by timing: the next run may select another one
    bool        is_fp32;             // activations are fp32
    int64_t     attention;           // enum attention_choice
    int         sm_margin;           // number of SMs that GEMMs leave to communication
    int         processors;          // number of SMs the built-in kernels assume, for tests; 0: all of the device
    const char *cache;               // cache folder that outlives a run; NULL or "": the user's cache folder
};

// Functions of a backend that enqueues ops on streams, where they execute later. stream: index of a stream. Events
// order the streams. During a capture, work is recorded in a graph and not executed.
enum { EVENT_UNTIMED, EVENT_TIMED };    // values of is_timed; only timed events have a time (seconds_between)
struct backend_streams {
    void (*attach)(struct backend *backend);                 // call first on every thread that uses the backend
    void *(*handle)(struct backend *backend, int stream);    // native stream handle (cudaStream_t)
    void *(*event_open)(struct backend *backend, bool is_timed);
    void (*event_close)(void *event);
    void (*record)(struct backend *backend, int stream, void *event);    // completes after the work enqueued so far
    // Records a timed event. In a capture, each launch of the graph records it again.
    void (*mark)(struct backend *backend, int stream, void *event);
    void (*wait)(struct backend *backend, int stream, void *event);    // stream waits for the event
    void (*synchronize)(struct backend *backend, int stream);          // blocks the caller until the stream is idle
    double (*seconds_between)(void *begin, void *end);                 // between two completed events

    // Pinned host memory, and an asynchronous copy between host and device memory, in any direction.
    void *(*allocate_host)(struct backend *backend, int64_t bytes);
    void (*release_host)(struct backend *backend, void *data);
    void (*copy)(struct backend *backend, int stream, void *to, const void *from, int64_t bytes);

    // Captures the work that is enqueued between begin and end, on this stream and on streams that events order after
    // it. A backend holds one graph. If begin or end fails, there is no graph, and no captured work was executed. Call
    // end after each successful begin.
    status (*capture_begin)(struct backend *backend, int stream);
    status (*capture_end)(struct backend *backend, int stream);
    void (*capture_launch)(struct backend *backend, int stream);
    // Frees the graph. Call it before closing events and communicators that the graph uses.
    void (*capture_release)(struct backend *backend);
};

// Time span of one op on the device: start of its first kernel and end of its last kernel. Seconds, on the clock of
// clock_seconds().
struct backend_span {
    double begin, end;
    bool   is_known;    // false: no record exists for the op
};

// Records when kernels run (CUPTI). Recording lasts from open to close, and slows down launches. Only one backend of a
// process can record at a time.
struct backend_activity {
    status (*open)(struct backend *backend);               // fails with the reason: missing library, other subscriber
    void (*start)(struct backend *backend);                // begins a step, to which later records belong
    void (*begin)(struct backend *backend, int32_t op);    // assigns this thread's launches to the op until end
    void (*end)(struct backend *backend);
    void (*stop)(struct backend *backend);    // ends the step, which the device has completed
    // Fills spans[ops] for the latest step, and sets *lost to the number of records lost since open. Fails if a CUPTI
    // call failed since open; then the spans are invalid.
    status (*read)(struct backend *backend, struct backend_span *spans, int32_t ops, int64_t *lost);
    void (*close)(struct backend *backend);
};

// For sharing autotuning results between ranks. A problem is an op with its shape and formats. One rank times the
// candidate algorithms of a problem, and the other ranks use its choice. The name of a problem contains the library
// version and the device model.
struct backend_choices {
    // Writes the name of the problem that backend_prepare times for this op; "" if it times none.
    void (*name)(struct backend *backend, const struct op *op, const struct buffer *buffers,
                 char problem[GEMM_PROBLEM_BYTES]);
    // Returns the choices so far. To use another rank's choice, call gemm_cache_take before backend_prepare.
    struct gemm_cache *(*cache)(struct backend *backend);
};

// Name and version of a library or driver that a backend uses. A run's result has a note if ranks differ in them.
enum { BACKEND_LIBRARIES = 4 };
struct backend_library {
    char name[24], version[128];
};

struct backend_ops {
    const char *name;          // name in [run] backend =
    bool        is_device;     // runs on a GPU, not on the host CPU
    bool        computes;      // false for null, whose ops do nothing
    status (*detect)(void);    // fails with the reason if no device is usable; NULL: always usable
    // Writes the PCI id of the device that open would select, without opening it; "" if unknown. NULL: the backend uses
    // no GPU.
    void (*locate)(const struct backend_setup *setup, char *text, size_t bytes);
    status (*open)(struct backend *backend, const struct backend_setup *setup);
    void (*close)(struct backend *backend);
    op_run *const                *run;        // [OP_COUNT]; an entry is NULL if unsupported or a communication op
    const struct backend_streams *streams;    // NULL: run returns after the op has executed

    // Returns zeroed device memory. Failure ends the job, so callers first compare the plan's bytes with
    // available_bytes.
    void *(*allocate)(struct backend *backend, int64_t bytes);
    void (*release)(struct backend *backend, void *data);
    void (*clear)(struct backend *backend, void *data, int64_t bytes);    // zeroes; NULL: host memory, use memset
    int64_t (*available_bytes)(struct backend *backend);                  // INT64_MAX: unknown
    void (*upload)(struct backend *backend, void *to, const void *from, int64_t bytes);
    void (*download)(struct backend *backend, void *to, const void *from, int64_t bytes);
    void (*digest)(struct backend *backend, const struct buffer *buffer, struct digest *digest);

    // Returns the scratch bytes that run needs for this op. Before the first step, reserve_scratch reserves the maximum
    // over all ops.
    int64_t (*scratch_bytes)(struct backend *backend, const struct op *op);
    void (*reserve_scratch)(struct backend *backend, int64_t bytes);

    // Selects algorithms and kernels for one op, before memory is allocated, so that a step selects nothing. buffers
    // have their final alignment, but their data must not be read. Sets *prepared if the op needs a selection; it is
    // then valid until the backend closes. If the function is NULL, no op needs preparation.
    status (*prepare)(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS],
                      const struct prepared **prepared);
    const struct backend_choices *choices;                   // NULL: nothing is selected by timing
    void (*profile)(struct backend *backend, bool is_on);    // cudaProfilerStart or Stop; NULL: no device
    const struct backend_activity *activity;                 // NULL: only events can time ops

    int (*processors)(struct backend *backend);    // number of SMs of the device; NULL: the host CPU
    // device_id is unique among the devices of a host. device_name is the driver's name of the model, such as "NVIDIA
    // H200". NULL: the backend computes on the host CPU.
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
    char                      choice[200];        // why "auto" skipped the backends before this one; "": none
    int                       sm_margin;          // SM margin for GEMMs that are prepared next
    int64_t                   allocations;        // calls of allocate and reserve_scratch so far; constant during steps
    int64_t                   allocated_bytes;    // currently held
    int64_t                   scratch_bytes;      // reserved scratch; it only grows
};

// Fails with EXIT_LAUNCH if this processor lacks instructions that the program was compiled for. Call it before all
// other functions.
status backend_check_processor(void);

// Opens the backend with this name; "auto": the first usable one of backend_list. After a failure there is nothing to
// close.
status backend_open(struct backend *backend, const char *name, const struct backend_setup *setup);
void   backend_close(struct backend *backend);

// Writes the PCI id of the device that backend_open would select. Writes "" for the host CPU, or if no device can be
// opened.
void backend_locate(const char *name, const struct backend_setup *setup, char *text, size_t bytes);

// The following functions call the backend's functions of the same name, and count the allocated bytes.
void *backend_allocate(struct backend *backend, int64_t bytes);
void  backend_release(struct backend *backend, void *data, int64_t bytes);
// backend_adopt zeroes device memory that a library allocated, and counts its bytes as the backend's until
// backend_disown.
void backend_adopt(struct backend *backend, void *data, int64_t bytes);
void backend_disown(struct backend *backend, int64_t bytes);
void backend_reserve_scratch(struct backend *backend, int64_t bytes);

// Calls the backend's prepare function, if it has one. Prepare an op once, and pass *prepared (may be NULL) to each
// backend_run.
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
    int64_t mamba_head, mamba_state;    // maximum head dimension and state size of Mamba-2
    bool    needs_equal_alignment;      // key and value head dimensions must both be multiples of 8, or neither
};

// Returns the limits of the backend with this name. They are INT64_MAX for "auto" and for backends without limits.
struct backend_widths backend_widths(const char *name);

// backend_lacks_fp32 returns whether a backend cannot run attention on fp32 activations. backend_check_op fails with
// the reason if the backend cannot run an op. It reads the formats of the buffers, never their data. Both work without
// a device, and in a build without the backend.
bool   backend_lacks_fp32(const char *name);
status backend_check_op(const char *name, const struct op *op, const struct buffer buffers[OP_OPERANDS]);

// Memory functions for backends without a device. They use host memory.
void   *backend_memory_allocate(struct backend *backend, int64_t bytes);
void    backend_memory_release(struct backend *backend, void *data);
int64_t backend_memory_available(struct backend *backend);
void    backend_memory_copy(struct backend *backend, void *to, const void *from, int64_t bytes);
void    backend_memory_digest(struct backend *backend, const struct buffer *buffer, struct digest *digest);

// The backends, in the order in which "auto" tries them. "auto" never selects null, which is last.
extern const struct backend_ops backend_cuda, backend_host, backend_null;

extern const struct backend_ops *const backend_list[];     // backends of this build, NULL-terminated
extern const char *const               backend_names[];    // "auto" and all backend names, NULL-terminated
