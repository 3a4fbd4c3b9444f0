// SPDX-License-Identifier: MIT
// Reads kernel traces of other programs event by event, so memory is bounded by the number of kernels. Maps kernels (by
// name) and ops of a plan (by kind) to parts of the step such as GEMMs, and sums the seconds of each part.
#include "gswbench/kernel_trace.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/input.h"
#include "gswbench/json.h"
#include "gswbench/number.h"
#include "gswbench/text.h"
#include "gswbench/waterfall.h"

enum { EVENT_BYTES = 1 << 22, KERNELS_MAX = 1 << 22, STREAMS_MAX = 256 };

struct reader {
    struct kernel_trace *trace;
    FILE                *file;
    size_t               event_bytes;    // bytes of the current event that were read
    int64_t              events;
    int64_t              streams[STREAMS_MAX];
    bool                 has_host, has_device;
    int64_t              device;
};

// Gives the JSON parser one byte at a time, so that it does not read past the end of the event.
static size_t give_byte(void *buffer, size_t bytes, void *data)
{
    struct reader *reader = data;
    int            byte   = bytes > 0 && ++reader->event_bytes <= EVENT_BYTES ? getc(reader->file) : EOF;
    if (byte == EOF) {
        return 0;
    }
    *(char *)buffer = (char)byte;
    return 1;
}

static int skip_space(FILE *file)
{
    int byte = getc(file);
    while (byte != EOF && isspace(byte)) {
        byte = getc(file);
    }
    return byte;
}

// Returns the JSON member with the first name in `names` that the object has; NULL: it has none of them.
static json_t *member(const json_t *object, const char *const names[3])
{
    json_t *found = NULL;
    for (int i = 0; i < 3 && names[i] != NULL && found == NULL; i++) {
        found = json_object_get(object, names[i]);
    }
    return found;
}

// Returns the value of a JSON number. Also accepts a number in a string, as protobuf writes 64-bit numbers. Returns NaN
// for any other value.
static double real_of(const json_t *value)
{
    double real = NAN;
    if (json_is_string(value) && !number_parse_real(json_string_value(value), &real)) {
        return NAN;
    }
    return json_is_number(value) ? json_number_value(value) : real;
}

static void add_stream(struct reader *reader, const json_t *arguments)
{
    json_t              *stream = json_object_get(arguments, "stream");
    int64_t              number = json_integer_value(stream);
    struct kernel_trace *trace  = reader->trace;
    if (!json_is_integer(stream)) {
        return;
    }
    for (int64_t i = 0; i < trace->streams; i++) {
        if (reader->streams[i] == number) {
            return;
        }
    }
    if (trace->streams < STREAMS_MAX) {
        reader->streams[trace->streams++] = number;
    }
}

// Returns whether an event of the PyTorch profiler is a kernel, copy or memset on a device.
static bool is_profiled(const json_t *event)
{
    static const char *const kinds[]  = {"kernel", "gpu_memcpy", "gpu_memset", NULL};
    const char              *category = json_string_value(json_object_get(event, "cat"));
    return category != NULL && text_index(category, kinds) >= 0;
}

// Returns whether a node of a Chakra trace runs on a device. Its mark is_cpu_op is a JSON member or an attribute of the
// node.
static bool is_device_node(struct reader *reader, const json_t *node)
{
    json_t *mark = json_object_get(node, "is_cpu_op"), *attributes = json_object_get(node, "attr");
    for (size_t i = 0; mark == NULL && i < json_array_size(attributes); i++) {
        static const char *const values[3] = {"boolVal", "bool_val"};
        const json_t            *attribute = json_array_get(attributes, i);
        const char              *name      = json_string_value(json_object_get(attribute, "name"));
        mark = name != NULL && strcmp(name, "is_cpu_op") == 0 ? member(attribute, values) : NULL;
        if (mark == NULL && name != NULL && strcmp(name, "is_cpu_op") == 0) {
            return true;    // protobuf's JSON omits members that are false
        }
    }
    reader->has_host = reader->has_host || json_is_true(mark);
    return mark != NULL && !json_is_true(mark);
}

static status add_kernel(struct reader *reader, const json_t *event, bool is_node)
{
    static const char *const names[3]     = {"name", "Name"};
    static const char *const begins[3]    = {"ts", "startTimeMicros", "start_time_micros"};
    static const char *const durations[3] = {"dur", "durationMicros", "runtime"};
    struct kernel_trace     *trace        = reader->trace;
    const char              *name         = json_string_value(member(event, names));
    double                   begin = real_of(member(event, begins)), duration = real_of(member(event, durations));
    if (is_node && isnan(duration)) {
        duration = 0.0;    // a Chakra node can omit its duration
    }
    if (name == NULL || !isfinite(duration) || duration < 0.0) {
        return fail("event %" PRId64 ", a kernel, has no name or no duration", reader->events);
    }
    if (trace->count == KERNELS_MAX) {
        return fail("more than %d kernels: trace fewer steps", KERNELS_MAX);
    }
    trace->has_begin     = trace->has_begin && isfinite(begin);
    begin                = isfinite(begin) ? begin : 0.0;
    struct kernel kernel = {.begin = begin, .end = begin + duration, .part = kernel_part_of_name(name)};
    if (kernel.part == KERNEL_OTHER && duration > trace->other_longest) {
        trace->other_longest = duration;
        text_printable(trace->other, sizeof(trace->other), name);
    }
    kernel_trace_add(trace, &kernel);
    return OK;
}

static status take_event(struct reader *reader, const json_t *event)
{
    json_t *arguments = json_object_get(event, "args"), *device = json_object_get(arguments, "device");
    if (!json_is_object(event)) {
        return fail("event %" PRId64 " is not an object", reader->events);
    }
    bool is_node = !is_profiled(event);
    if (is_node && !is_device_node(reader, event)) {
        return OK;
    }
    if (json_is_integer(device)) {
        if (reader->has_device && json_integer_value(device) != reader->device) {
            return fail("kernels of several devices: trace one rank");
        }
        reader->has_device = true;
        reader->device     = json_integer_value(device);
    }
    add_stream(reader, arguments);
    return add_kernel(reader, event, is_node);
}

// Reads events until the JSON list ends. If the events are not in a list, reads until the end of the file.
static status take_events(struct reader *reader, bool is_list)
{
    for (int byte = skip_space(reader->file); byte != (is_list ? ']' : EOF); byte = skip_space(reader->file)) {
        json_error_t error;
        if (byte != ',') {
            ungetc(byte, reader->file);
        }
        reader->event_bytes = 0;
        reader->events++;
        json_t *event = json_load_callback(give_byte, reader, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
        if (event == NULL) {
            return fail("event %" PRId64 " is not JSON or longer than 4 MiB: %.200s", reader->events, error.text);
        }
        status taken = take_event(reader, event);
        json_decref(event);
        TRY(taken);
    }
    return OK;
}

// Skips to the list of events. Returns false if the file has none.
static bool find_list(FILE *file)
{
    static const char *const keys[]     = {"\"traceEvents\"", "\"workload_graph\"", "\"nodes\""};
    size_t                   matched[3] = {0};
    for (int byte = getc(file); byte != EOF; byte = getc(file)) {
        for (size_t i = 0; i < 3; i++) {
            matched[i] = byte == keys[i][matched[i]] ? matched[i] + 1 : byte == '"';
            if (keys[i][matched[i]] == '\0') {
                matched[i]  = 0;
                bool is_key = skip_space(file) == ':';
                if (is_key && skip_space(file) == '[') {
                    return true;
                }
            }
        }
    }
    return false;
}

static status take_file(struct reader *reader)
{
    int first = skip_space(reader->file);
    if (first == 0x1f) {
        return fail("is compressed: gunzip it first");
    }
    if (first != '{' && first != '[') {
        return fail("is not JSON; write a Chakra trace in protobuf as JSON with chakra_jsonizer");
    }
    bool is_list = first == '[' || find_list(reader->file);
    if (!is_list) {
        rewind(reader->file);
    }
    TRY(take_events(reader, is_list));
    if (ferror(reader->file)) {
        return fail("cannot be read: %s", strerror(errno));
    }
    if (reader->trace->count == 0) {
        return fail(reader->has_host ? "has only ops of the host: trace the device as well"
                                     : "has no kernels: neither a trace of the PyTorch profiler nor of Chakra");
    }
    return OK;
}

status kernel_trace_read(struct kernel_trace *trace, const char *path)
{
    struct stat   about;
    struct reader reader = {.trace = trace};
    *trace               = (struct kernel_trace){.has_begin = true};
    status result        = input_open_stream(path, &reader.file, &about);
    if (!failed(&result)) {
        result = take_file(&reader);
        fclose(reader.file);
    }
    return failed(&result) ? fail("%s: %.900s", path, result.text) : OK;
}

const char *const kernel_part_names[] = {
    [KERNEL_ATTENTION]  = "attention",
    [KERNEL_GEMM]       = "gemm",
    [KERNEL_MEMORY]     = "memory",
    [KERNEL_CAST]       = "cast",
    [KERNEL_OPTIMIZER]  = "optimizer",
    [KERNEL_OTHER]      = "other",
    [KERNEL_ALL_TO_ALL] = "all-to-all",
    [KERNEL_COLLECTIVE] = "collective",
    [KERNEL_PARTS]      = NULL,
};

enum { PATTERNS_MAX = 30 };

// The first row with a pattern that occurs in the lower-case kernel name gives the part. A kernel with a fused cast
// counts as the other work of the kernel: a norm with a cast is a norm.
static const struct {
    enum kernel_part  part;
    const char *const patterns[PATTERNS_MAX];    // ends with NULL
} patterns[] = {
    // This row matches DeepEP, HybridEP, and all-to-alls of NCCL.
    {KERNEL_ALL_TO_ALL, {"::ep::", "deep_ep", "hybrid_ep", "alltoall", "all_to_all"}},
    {KERNEL_COLLECTIVE, {"nccl", "rccl", "nvshmem", "allreduce", "all_reduce", "reduce_scatter", "all_gather"}},
    {KERNEL_ATTENTION, {"flash", "fmha", "sdpa", "attention", "attn"}},
    {KERNEL_OPTIMIZER, {"adam", "multi_tensor", "multitensor", "foreach"}},
    {KERNEL_CAST, {"::transpose<"}},
    {KERNEL_GEMM, {"gemm", "nvjet", "cutlass", "matmul", "cublas", "cijk"}},
    {KERNEL_MEMORY, {"swiglu", "norm"}},
    {KERNEL_CAST, {"cast", "quantize", "to_fp8", "amax", "hadamard", "transpose"}},
    {KERNEL_MEMORY, {"elementwise", "reduce",        "memcpy",  "memset",    "copy",    "rotary", "rope",
                     "softmax",     "cross_entropy", "topk",    "scatter",   "gather",  "index",  "permute",
                     "expand",      "embedding",     "dropout", "sort",      "scan",    "fill",   "distribution",
                     "mapping",     "count",         "indices", "gammabeta", "moments", "triton"}},
};

enum kernel_part kernel_part_of_name(const char *name)
{
    char small[512];
    text_copy(small, sizeof(small), name);
    for (char *letter = small; *letter != '\0'; letter++) {
        *letter = (char)tolower((unsigned char)*letter);
    }
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        for (int j = 0; patterns[i].patterns[j] != NULL; j++) {
            if (strstr(small, patterns[i].patterns[j]) != NULL) {
                return patterns[i].part;
            }
        }
    }
    return KERNEL_OTHER;
}

// Returns the part of the step that an op of gswbench's plan belongs to. Recompute counts as forward pass, because a
// trace does not show which forward kernels are repeated.
enum kernel_part kernel_part_of_op(const struct plan *plan, const struct op *op)
{
    static const enum kernel_part parts[WATERFALL_PARTS] = {
        [WATERFALL_GEMM] = KERNEL_GEMM, [WATERFALL_ATTENTION] = KERNEL_ATTENTION, [WATERFALL_MEMORY] = KERNEL_MEMORY,
        [WATERFALL_CAST] = KERNEL_CAST, [WATERFALL_OPTIMIZER] = KERNEL_OPTIMIZER,
    };
    struct op once = *op;
    if (op->tag.phase == PHASE_RECOMPUTE) {
        once.tag.phase = PHASE_FORWARD;
    }
    enum waterfall_part part = waterfall_part_of(plan, &once);
    if (op_is_communication((enum op_kind)op->kind)) {
        return op->stream == STREAM_EXPERT ? KERNEL_ALL_TO_ALL : KERNEL_COLLECTIVE;
    }
    return part == WATERFALL_UNEXPLAINED ? KERNEL_OTHER : parts[part];
}

void kernel_trace_add(struct kernel_trace *trace, const struct kernel *kernel)
{
    *LIST_ADD_DOUBLING(trace->kernels, trace->count) = *kernel;
}

void kernel_trace_free(struct kernel_trace *trace)
{
    free(trace->kernels);
}

// The start or the end of a kernel: the number of running kernels of its part changes by 1 or -1.
struct change {
    double  time;
    int32_t part, by;
};

static int by_time(const void *a, const void *b)
{
    double first = ((const struct change *)a)->time, second = ((const struct change *)b)->time;
    return (first > second) - (first < second);
}

// Divides `seconds`, during which running[part] kernels of each part run, among the parts of the step. Each compute
// kernel gets an equal share; if no compute runs, each communication kernel does; if nothing runs, the time is idle.
static void share(struct kernel_sums *sums, const int64_t running[KERNEL_PARTS], double seconds)
{
    int64_t compute = 0, communication = 0;
    for (int part = 0; part < KERNEL_PARTS; part++) {
        *(part < KERNEL_ALL_TO_ALL ? &compute : &communication) += running[part];
    }
    int     first = compute > 0 ? 0 : KERNEL_ALL_TO_ALL, end = compute > 0 ? KERNEL_ALL_TO_ALL : KERNEL_PARTS;
    int64_t all = compute > 0 ? compute : communication;
    for (int part = first; part < end && all > 0; part++) {
        sums->shown[part] += seconds * (double)running[part] / (double)all;
    }
    sums->idle += all == 0 ? seconds : 0.0;
}

static void sum_line(struct kernel_sums *sums, const struct kernel_trace *trace)
{
    int64_t        count = 2 * trace->count, running[KERNEL_PARTS] = {0};
    struct change *changes = memory_allocate((size_t)count * sizeof(*changes));
    for (int64_t i = 0; i < trace->count; i++) {
        const struct kernel *kernel = &trace->kernels[i];
        changes[2 * i]              = (struct change){kernel->begin, (int32_t)kernel->part, 1};
        changes[2 * i + 1]          = (struct change){kernel->end, (int32_t)kernel->part, -1};
    }
    qsort(changes, (size_t)count, sizeof(*changes), by_time);
    for (int64_t i = 0; i < count; i++) {
        if (i > 0) {
            share(sums, running, (changes[i].time - changes[i - 1].time) / 1e6);
        }
        running[changes[i].part] += changes[i].by;
    }
    sums->span = count > 0 ? (changes[count - 1].time - changes[0].time) / 1e6 : 0.0;
    free(changes);
}

void kernel_trace_sum(struct kernel_sums *sums, const struct kernel_trace *trace)
{
    *sums = (struct kernel_sums){.idle = 0.0};
    for (int64_t i = 0; i < trace->count; i++) {
        const struct kernel *kernel = &trace->kernels[i];
        sums->count[kernel->part]++;
        sums->busy[kernel->part] += (kernel->end - kernel->begin) / 1e6;
    }
    if (trace->has_begin) {
        sum_line(sums, trace);
        return;
    }
    sums->idle = sums->span = NAN;
    for (int part = 0; part < KERNEL_PARTS; part++) {
        sums->shown[part] = NAN;
    }
}
