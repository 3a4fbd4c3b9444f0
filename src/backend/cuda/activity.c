// SPDX-License-Identifier: MIT
// Records with CUPTI when the kernels of each op run. The index of an op is pushed as an external correlation id around
// the calls that enqueue the op. CUPTI then records each API call with this id, and each kernel, copy and memset with
// its API call. Host and CUPTI clock are read at the start and end of a step, to convert CUPTI's times to host time.
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cupti_library.h"
#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/library.h"
#include "internal.h"

enum { ACTIVITY_BUFFERS = 64 };

// Buffers that CUPTI has filled with activity records.
struct activity_buffers {
    int count;
    struct {
        uint8_t *data;
        size_t   bytes;
    } list[ACTIVITY_BUFFERS];
};

// The same moment on the host clock and on CUPTI's clock.
struct activity_moment {
    double   seconds;
    uint64_t nanoseconds;    // CUPTI timestamp
};

struct activity_notes {
    const struct cupti     *cupti;
    struct activity_buffers buffers;
    uint32_t                step;          // current step; records of other steps are ignored
    struct activity_moment  begin, end;    // start and end of the step
};

static uint64_t activity_id(uint32_t step, int32_t op)
{
    return (uint64_t)step << 32 | (uint32_t)op;
}

// Returns the error of a failed CUPTI call, with a remedy if there is one.
static status cupti_failure(const struct cupti *cupti, const char *call, unsigned code)
{
    const char *text   = NULL;
    const char *remedy = code == CUPTI_CODE_TAKEN ? ": a profiler or debugger has it, run without one" : "";
    cupti->cuptiGetResultString(code, &text);
    return fail_as(EXIT_LAUNCH, "%s: %s (%u)%s", call, text != NULL ? text : "an error", code, remedy);
}

// An API call (CUPTI's correlation id) and the op that made it. CUPTI's correlation records provide these pairs.
struct made_for {
    uint32_t call;
    int32_t  op;
};

struct reading {
    const struct activity_notes *notes;
    struct made_for             *calls;
    size_t                       count, room;
    struct backend_span         *spans;
    int32_t                      ops;
    int64_t                      lost;
};
typedef void visit(struct reading *reading, const struct cupti_record *record);

static status visit_records(struct reading *reading, visit *see)
{
    const struct activity_buffers *buffers = &reading->notes->buffers;
    const struct cupti            *cupti   = reading->notes->cupti;
    for (int i = 0; i < buffers->count; i++) {
        struct cupti_record *record = NULL;
        unsigned             code;
        while ((code = cupti->cuptiActivityGetNextRecord(buffers->list[i].data, buffers->list[i].bytes, &record)) ==
               CUPTI_CODE_SUCCESS) {
            see(reading, record);
        }
        if (code != CUPTI_CODE_END) {
            return cupti_failure(cupti, "cuptiActivityGetNextRecord", code);
        }
    }
    return OK;
}

static void see_correlation(struct reading *reading, const struct cupti_record *record)
{
    struct cupti_correlation one;
    if (record->kind != CUPTI_KIND_EXTERNAL_CORRELATION) {
        return;
    }
    memcpy(&one, record, sizeof(one));
    int32_t op = (int32_t)(uint32_t)one.id;
    if (one.pusher != CUPTI_CUSTOM || one.id != activity_id(reading->notes->step, op) || op >= reading->ops) {
        return;
    }
    if (reading->count == reading->room) {
        reading->room  = 2 * reading->room + 1024;
        reading->calls = memory_resize(reading->calls, reading->room * sizeof(*reading->calls));
    }
    reading->calls[reading->count++] = (struct made_for){.call = one.call, .op = op};
}

static int compare_calls(const void *a, const void *b)
{
    const struct made_for *first = a, *second = b;
    return (first->call > second->call) - (first->call < second->call);
}

// Returns the offset of the correlation id in a record of a kernel, copy or memset, and 0 for other kinds of records.
static size_t find_call(uint32_t kind)
{
    switch (kind) {
    case CUPTI_KIND_CONCURRENT_KERNEL:
        return CUPTI_CALL_OF_KERNEL;
    case CUPTI_KIND_MEMCPY:
    case CUPTI_KIND_MEMSET:
        return CUPTI_CALL_OF_COPY;
    case CUPTI_KIND_MEMCPY_PEER:
        return CUPTI_CALL_OF_PEER_COPY;
    default:
        return 0;
    }
}

static double seconds_of(const struct activity_notes *notes, uint64_t nanoseconds)
{
    double passed = (double)(int64_t)(notes->end.nanoseconds - notes->begin.nanoseconds);
    double rate   = passed > 0 ? (notes->end.seconds - notes->begin.seconds) / passed : 1e-9;
    return notes->begin.seconds + rate * (double)(int64_t)(nanoseconds - notes->begin.nanoseconds);
}

static void see_work(struct reading *reading, const struct cupti_record *record)
{
    struct made_for key   = {.op = 0};
    size_t          place = find_call(record->kind);
    if (place == 0 || reading->count == 0) {
        return;
    }
    memcpy(&key.call, (const char *)record + place, sizeof(key.call));
    const struct made_for *made = bsearch(&key, reading->calls, reading->count, sizeof(key), compare_calls);
    if (made == NULL) {
        return;
    }
    if (record->begin == 0 || record->end == 0) {    // CUPTI could not record the timestamps
        reading->lost++;
        return;
    }
    struct backend_span *span  = &reading->spans[made->op];
    double               begin = seconds_of(reading->notes, record->begin);
    double               end   = seconds_of(reading->notes, record->end);
    *span = (struct backend_span){.begin    = span->is_known && span->begin < begin ? span->begin : begin,
                                  .end      = span->is_known && span->end > end ? span->end : end,
                                  .is_known = true};
}

// Computes the time span of each op from the records. *lost: number of records without timestamps.
static status find_spans(const struct activity_notes *notes, struct backend_span *spans, int32_t ops, int64_t *lost)
{
    struct reading reading = {.notes = notes, .spans = spans, .ops = ops};
    memset(spans, 0, (size_t)ops * sizeof(*spans));
    status result = visit_records(&reading, see_correlation);
    if (!failed(&result) && reading.count > 0) {
        qsort(reading.calls, reading.count, sizeof(*reading.calls), compare_calls);
        result = visit_records(&reading, see_work);
    }
    free(reading.calls);
    *lost = reading.lost;
    return result;
}

enum { BUFFER_BYTES = 8 << 20 };

// The kinds of records to enable. Correlation records map pushed ids to API calls; the other records refer to API
// calls.
static const unsigned kinds[] = {CUPTI_KIND_EXTERNAL_CORRELATION,
                                 CUPTI_KIND_DRIVER,
                                 CUPTI_KIND_RUNTIME,
                                 CUPTI_KIND_CONCURRENT_KERNEL,
                                 CUPTI_KIND_MEMCPY,
                                 CUPTI_KIND_MEMCPY_PEER,
                                 CUPTI_KIND_MEMSET};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

// State of the recording. It is static, because CUPTI is global to the process and its callbacks get no context. The
// mutex protects it, because CUPTI's own thread and the threads of several streams use it.
static struct {
    pthread_mutex_t             mutex;
    bool                        is_open;
    struct cupti                cupti;
    struct CUpti_Subscriber_st *subscriber;
    status                      failure;    // first failure
    int                         buffers;    // number of allocated buffers: filled, spare, or held by CUPTI
    struct activity_notes       notes;
    struct activity_buffers     spare;    // buffers of earlier steps, reused so that a step allocates nothing
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER};

#define CALL(function, ...) check(all.cupti.function(__VA_ARGS__), #function)

static bool check(unsigned code, const char *call)
{
    if (code != CUPTI_CODE_SUCCESS) {
        pthread_mutex_lock(&all.mutex);
        all.failure = failed(&all.failure) ? all.failure : cupti_failure(&all.cupti, call, code);
        pthread_mutex_unlock(&all.mutex);
    }
    return code == CUPTI_CODE_SUCCESS;
}

// CUPTI calls this to request a buffer. If it gets none, it drops the records and counts them.
static void lend(uint8_t **buffer, size_t *bytes, size_t *records_max)
{
    pthread_mutex_lock(&all.mutex);
    *buffer = NULL;
    if (all.spare.count > 0) {
        *buffer = all.spare.list[--all.spare.count].data;
    } else if (all.buffers < ACTIVITY_BUFFERS) {
        *buffer = memory_allocate(BUFFER_BYTES);
        all.buffers++;
    }
    *bytes       = *buffer != NULL ? BUFFER_BYTES : 0;
    *records_max = 0;    // no limit
    pthread_mutex_unlock(&all.mutex);
}

static void keep(struct CUctx_st *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid_bytes)
{
    (void)context, (void)stream, (void)bytes;
    pthread_mutex_lock(&all.mutex);
    struct activity_buffers *buffers      = &all.notes.buffers;
    buffers->list[buffers->count].data    = buffer;
    buffers->list[buffers->count++].bytes = valid_bytes;
    pthread_mutex_unlock(&all.mutex);
}

static struct activity_notes take_notes(void)
{
    pthread_mutex_lock(&all.mutex);
    struct activity_notes notes = all.notes;
    all.notes.buffers.count     = 0;
    pthread_mutex_unlock(&all.mutex);
    return notes;
}

static void spare(const struct activity_notes *notes)
{
    pthread_mutex_lock(&all.mutex);
    for (int i = 0; i < notes->buffers.count; i++) {
        all.spare.list[all.spare.count++] = notes->buffers.list[i];
    }
    pthread_mutex_unlock(&all.mutex);
}

static void release(void)
{
    struct activity_notes rest = take_notes();
    spare(&rest);
    while (all.spare.count > 0) {
        free(all.spare.list[--all.spare.count].data);
        all.buffers--;
    }
}

static void ignore(void *state, unsigned domain, uint32_t id, const void *data)
{
    (void)state, (void)domain, (void)id, (void)data;
}

// Sets all.is_open under the mutex, and returns its previous value.
static bool set_open(bool is_open)
{
    pthread_mutex_lock(&all.mutex);
    bool was_open = all.is_open;
    all.is_open   = is_open;
    pthread_mutex_unlock(&all.mutex);
    return was_open;
}

// Stops the recording and detaches CUPTI, so that later steps run at full speed.
static void activity_close(struct backend *backend)
{
    (void)backend;
    for (int i = 0; i < KINDS; i++) {
        CALL(cuptiActivityDisable, kinds[i]);
    }
    CALL(cuptiActivityFlushAll, CUPTI_FLUSH_FORCED);
    CALL(cuptiUnsubscribe, all.subscriber);
    check(all.cupti.cuptiFinalize(), "cuptiFinalize");
    release();
    set_open(false);
}

static bool enable(void)
{
    bool is_right = CALL(cuptiActivityRegisterCallbacks, lend, keep);
    for (int i = 0; i < KINDS && is_right; i++) {
        is_right = CALL(cuptiActivityEnable, kinds[i]);
    }
    return is_right;
}

// Loads CUPTI, with the major version of the CUDA runtime, and subscribes to it. If a profiler already holds the only
// subscription, this fails and leaves the profiler's subscription open.
static status attach(void)
{
    char name[32];
    snprintf(name, sizeof(name), "libcupti.so.%d", CUDART_VERSION / 1000);
#define CUPTI_SYMBOL(function, parameters) {#function, &all.cupti.function, false},
    const struct library_symbol symbols[] = {CUPTI_FUNCTIONS(CUPTI_SYMBOL, CUPTI_SYMBOL)};
#undef CUPTI_SYMBOL
    TRY(library_open(name, symbols, sizeof(symbols) / sizeof(symbols[0])));
    all.failure     = OK;
    all.notes.cupti = &all.cupti;
    return CALL(cuptiSubscribe, &all.subscriber, ignore, NULL) ? OK : all.failure;
}

static status activity_open(struct backend *backend)
{
    if (set_open(true)) {
        return fail_as(EXIT_LAUNCH, "another rank of this process uses CUPTI: launch one process per rank");
    }
    status attached = attach();
    if (failed(&attached)) {
        set_open(false);
        return attached;
    }
    if (!enable()) {
        attached = all.failure;
        activity_close(backend);
    }
    return attached;
}

// Reads both clocks several times and keeps the reading that took the shortest time.
static struct activity_moment read_clocks(void)
{
    enum { READINGS = 5 };
    struct activity_moment best    = {.seconds = 0.0};
    double                 minimum = 0.0;
    for (int i = 0; i < READINGS; i++) {
        uint64_t nanoseconds = 0;
        double   before      = clock_seconds();
        CALL(cuptiGetTimestamp, &nanoseconds);
        double passed = clock_seconds() - before;
        if (i == 0 || passed < minimum) {
            best    = (struct activity_moment){.seconds = before + passed / 2, .nanoseconds = nanoseconds};
            minimum = passed;
        }
    }
    return best;
}

static void activity_start(struct backend *backend)
{
    (void)backend;
    struct activity_notes before = take_notes();
    spare(&before);
    all.notes.step++;
    all.notes.begin = read_clocks();
}

static void activity_stop(struct backend *backend)
{
    (void)backend;
    all.notes.end = read_clocks();
}

static void activity_begin(struct backend *backend, int32_t op)
{
    (void)backend;
    CALL(cuptiActivityPushExternalCorrelationId, CUPTI_CUSTOM, activity_id(all.notes.step, op));
}

static void activity_end(struct backend *backend)
{
    (void)backend;
    uint64_t id;
    CALL(cuptiActivityPopExternalCorrelationId, CUPTI_CUSTOM, &id);
}

static status activity_read(struct backend *backend, struct backend_span *spans, int32_t ops, int64_t *lost)
{
    (void)backend;
    size_t  dropped    = 0;
    int64_t incomplete = 0;
    CALL(cuptiActivityFlushAll, CUPTI_FLUSH_FORCED);
    CALL(cuptiActivityGetNumDroppedRecords, NULL, 0, &dropped);
    struct activity_notes notes = take_notes();
    status                found = all.failure;
    if (!failed(&found)) {
        found = find_spans(&notes, spans, ops, &incomplete);
    }
    spare(&notes);
    *lost = (int64_t)dropped + incomplete;
    return found;
}

const struct backend_activity cuda_activity = {
    .open  = activity_open,
    .start = activity_start,
    .begin = activity_begin,
    .end   = activity_end,
    .stop  = activity_stop,
    .read  = activity_read,
    .close = activity_close,
};
