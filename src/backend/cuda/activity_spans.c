// SPDX-License-Identifier: MIT
// Maps activity records to ops: correlation records link an API call to an op; kernel, copy and memset records link
// device work to an API call.
#include <stdlib.h>
#include <string.h>

#include "activity.h"
#include "gswbench/arena.h"

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

// 0: other records
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
    if (record->begin == 0 || record->end == 0) {    // CUPTI ran out of space for its timestamps
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

status activity_find_spans(const struct activity_notes *notes, struct backend_span *spans, int32_t ops, int64_t *lost)
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
