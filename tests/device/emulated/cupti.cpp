// SPDX-License-Identifier: MIT
// A fake CUPTI that reports planted times. Its clock runs at twice the rate of the host's clock and has another origin.
// Correlation ids pushed after a read of the clock are numbered n = 0, 1, ... Id n has work that starts 1 ms + n x 10
// us after the read: 1 + n % 3 records of 1 us that are 2 us apart, in ascending or descending order, but no record if
// n % 7 is 3. FAKE_CUPTI selects a fault. "taken": another tool is attached. "enable" and "flush": these calls fail.
// "drop" loses five records. "untimed" leaves out the times of the first record. "pieces" returns the buffer at each
// read of the clock. "slow" takes 0.3 s to detach. FAKE_CUPTI_LOG names a file that gets a line at each detach.
#include <cupti.h>
#include <dlfcn.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <thread>

#include "emulator.h"

namespace
{
const uint64_t RATE = 2, US = 1000 * RATE;

struct fake {
    bool                              is_attached;
    int                               enabled, pushed, buffers, used_ones;
    uint32_t                          calls, ordinal;
    bool                              is_read;    // whether the clock was read after the last id
    uint64_t                          now, id, lost;
    long                              device_calls;    // items enqueued on the GPU when recording was enabled
    CUpti_BuffersCallbackRequestFunc  request;
    CUpti_BuffersCallbackCompleteFunc complete;
    uint8_t                          *buffer;
    size_t                            room, used;
} the_fake;

bool does(const char *what)
{
    return emulator::is_told("FAKE_CUPTI", what);
}

// Returns the number of items that were enqueued on the emulated GPU.
long count_calls()
{
    long (*calls)(void) = (long (*)(void))dlsym(RTLD_DEFAULT, "emulated_calls");
    return calls != NULL ? calls() : -1;
}

// Returns the buffer to the program from another thread, as the real CUPTI may do.
void deliver()
{
    if (the_fake.buffer != NULL) {
        std::thread(the_fake.complete, nullptr, 0, the_fake.buffer, the_fake.room, the_fake.used).join();
    }
    the_fake.buffer = NULL;
}

template <typename Record> void add(const Record &record)
{
    if (the_fake.buffer != NULL && the_fake.used + sizeof(record) > the_fake.room) {
        deliver();
    }
    if (the_fake.buffer == NULL) {
        size_t maximum;
        the_fake.request(&the_fake.buffer, &the_fake.room, &maximum);
        the_fake.used = 0;
        the_fake.buffers++;
        the_fake.used_ones += the_fake.buffer != NULL && the_fake.buffer[0] != 0;
    }
    if (the_fake.buffer == NULL) {
        the_fake.lost++;
        return;
    }
    memcpy(the_fake.buffer + the_fake.used, &record, sizeof(record));
    the_fake.used += sizeof(record);
}

template <typename Record> void add_work(CUpti_ActivityKind kind, uint32_t call, uint64_t begin, uint64_t end)
{
    Record record        = {};
    record.kind          = kind;
    record.start         = begin;
    record.end           = end;
    record.correlationId = call;
    add(record);
}

// For each kind of record: its size, and the function that adds a record of work on the GPU.
const struct record_kind {
    CUpti_ActivityKind kind;
    size_t             bytes;
    void (*add)(CUpti_ActivityKind kind, uint32_t call, uint64_t begin, uint64_t end);
} record_kinds[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel9), add_work<CUpti_ActivityKernel9>},
    {CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4), add_work<CUpti_ActivityMemset4>},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4), add_work<CUpti_ActivityMemcpyPtoP4>},
    {CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy5), add_work<CUpti_ActivityMemcpy5>},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation), NULL},
    {CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI), NULL},
};

// Adds the record of an API call. Also adds its correlation with the pushed id, unless the kind is INVALID.
uint32_t add_call(CUpti_ExternalCorrelationKind pusher)
{
    CUpti_ActivityAPI                 api         = {};
    CUpti_ActivityExternalCorrelation correlation = {};
    correlation.kind                              = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    correlation.externalKind                      = pusher;
    correlation.externalId                        = the_fake.id;
    correlation.correlationId = api.correlationId = ++the_fake.calls;
    api.kind                                      = CUPTI_ACTIVITY_KIND_RUNTIME;
    if (pusher != CUPTI_EXTERNAL_CORRELATION_KIND_INVALID) {
        add(correlation);
    }
    add(api);
    return the_fake.calls;
}

void add_planted(uint32_t n)
{
    uint64_t begin = the_fake.now + (1000 + 10 * n) * US;
    uint32_t count = n % 3 + 1;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t i          = n % 2 == 0 ? k : count - 1 - k;
        bool     is_untimed = n == 0 && does("untimed");
        uint64_t from = is_untimed ? 0 : begin + 2 * i * US, to = is_untimed ? 0 : from + US;
        record_kinds[i].add(record_kinds[i].kind, add_call(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0), from, to);
    }
    // This work has no id, or an id that another tool pushed, so the program must ignore it.
    for (auto pusher : {CUPTI_EXTERNAL_CORRELATION_KIND_INVALID, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1}) {
        add_work<CUpti_ActivityMemcpy5>(CUPTI_ACTIVITY_KIND_MEMCPY, add_call(pusher), begin, begin + 999 * US);
    }
}

size_t size_of(const CUpti_Activity *record)
{
    const record_kind *found = record_kinds;
    while (found->kind != record->kind) {
        found++;
    }
    return found->bytes;
}
}    // namespace

extern "C" {

CUptiResult cuptiGetResultString(CUptiResult code, const char **text)
{
    *text = code == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                                                                   : "refused on command";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *)
{
    if (the_fake.is_attached || does("taken")) {
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    the_fake             = {};
    the_fake.is_attached = true;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle)
{
    return the_fake.is_attached ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult cuptiFinalize(void)
{
    const char *path = getenv("FAKE_CUPTI_LOG");
    FILE       *file = path != NULL ? fopen(path, "a") : NULL;
    if (does("slow")) {
        usleep(300000);
    }
    if (file != NULL) {
        fprintf(file, "attached %d, %d kinds left, %d pushed", the_fake.is_attached, the_fake.enabled, the_fake.pushed);
        if (does("slow")) {
            fprintf(file, ", %ld of %ld calls since", count_calls() - the_fake.device_calls, count_calls());
        }
        if (does("pieces")) {
            fprintf(file, ", %d of %d buffers used before", the_fake.used_ones, the_fake.buffers);
        }
        fputc('\n', file);
        fclose(file);
    }
    the_fake.is_attached = false;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t *nanoseconds)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    *nanoseconds = the_fake.now =
        UINT64_C(3000000000000000000) + RATE * ((uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec);
    the_fake.is_read = true;
    if (does("pieces")) {
        deliver();
    }
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc  request,
                                           CUpti_BuffersCallbackCompleteFunc complete)
{
    the_fake.request  = request;
    the_fake.complete = complete;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && does("enable")) {
        return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    }
    the_fake.enabled++;
    the_fake.device_calls = count_calls();
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind)
{
    the_fake.enabled--;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t id)
{
    the_fake.ordinal = the_fake.is_read ? 0 : the_fake.ordinal + 1;
    the_fake.is_read = false;
    the_fake.id      = id;
    the_fake.pushed++;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t *id)
{
    *id = the_fake.id;
    add_call(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
    if (the_fake.ordinal % 7 != 3) {
        add_planted(the_fake.ordinal);
    }
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t)
{
    deliver();
    return does("flush") ? CUPTI_ERROR_UNKNOWN : CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t *records)
{
    *records      = the_fake.lost + (does("drop") ? 5 : 0);
    the_fake.lost = 0;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    uint8_t *next = *record == NULL ? buffer : (uint8_t *)*record + size_of(*record);
    *record       = (CUpti_Activity *)next;
    return next < buffer + valid ? CUPTI_SUCCESS : CUPTI_ERROR_MAX_LIMIT_REACHED;
}
}
