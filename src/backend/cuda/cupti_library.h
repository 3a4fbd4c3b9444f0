// SPDX-License-Identifier: MIT
// CUPTI as far as it is used, declared here: toolkits keep its header in several places, or leave it out. Later
// versions have appended to records and moved nothing of what is read of them; a test compares this with cupti.h where
// there is one.
#ifndef GSWBENCH_CUPTI_LIBRARY_H
#define GSWBENCH_CUPTI_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include "gswbench/status.h"

enum {
    CUPTI_CODE_SUCCESS = 0,
    CUPTI_CODE_END     = 12,    // of the records of a buffer
    CUPTI_CODE_TAKEN   = 39,    // by a profiler
};
enum { CUPTI_CUSTOM = 3 };          // whose ids are pushed: ours
enum { CUPTI_FLUSH_FORCED = 1 };    // records that are not whole, too

// Kinds of records. Calls of the driver and of the runtime are what an id that is pushed is noted down with.
enum {
    CUPTI_KIND_MEMCPY               = 1,
    CUPTI_KIND_MEMSET               = 2,
    CUPTI_KIND_DRIVER               = 4,
    CUPTI_KIND_RUNTIME              = 5,
    CUPTI_KIND_CONCURRENT_KERNEL    = 10,
    CUPTI_KIND_MEMCPY_PEER          = 22,
    CUPTI_KIND_EXTERNAL_CORRELATION = 39,
};

// How a record begins, and where each kind of them has the call that it is of. All are aligned to 8 bytes.
struct cupti_record {
    uint32_t kind, others[3];
    uint64_t begin, end;    // nanoseconds; 0: not known
};
enum { CUPTI_CALL_OF_COPY = 44, CUPTI_CALL_OF_PEER_COPY = 60, CUPTI_CALL_OF_KERNEL = 92 };
struct cupti_correlation {
    uint32_t kind, pusher;    // CUPTI_CUSTOM
    uint64_t id;              // that was pushed
    uint32_t call, other;
};

struct CUctx_st;    // the library's own names: a test then compares types
struct CUpti_Subscriber_st;
typedef void cupti_request(uint8_t **buffer, size_t *bytes, size_t *records_most);
typedef void cupti_complete(struct CUctx_st *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                            size_t valid_bytes);
typedef void cupti_callback(void *state, unsigned domain, uint32_t id, const void *data);

// ROW(function, parameters). RECORD: its type is our struct.
// clang-format off
#define CUPTI_FUNCTIONS(ROW, RECORD) \
    ROW(cuptiGetResultString, (unsigned code, const char **text)) \
    ROW(cuptiSubscribe, (struct CUpti_Subscriber_st **subscriber, cupti_callback *callback, void *state)) \
    ROW(cuptiUnsubscribe, (struct CUpti_Subscriber_st *subscriber)) \
    ROW(cuptiFinalize, (void)) \
    ROW(cuptiGetTimestamp, (uint64_t *nanoseconds)) \
    ROW(cuptiActivityRegisterCallbacks, (cupti_request *request, cupti_complete *complete)) \
    ROW(cuptiActivityEnable, (unsigned kind)) \
    ROW(cuptiActivityDisable, (unsigned kind)) \
    ROW(cuptiActivityPushExternalCorrelationId, (unsigned kind, uint64_t id)) \
    ROW(cuptiActivityPopExternalCorrelationId, (unsigned kind, uint64_t *id)) \
    ROW(cuptiActivityFlushAll, (uint32_t flags)) \
    ROW(cuptiActivityGetNumDroppedRecords, (struct CUctx_st *context, uint32_t stream, size_t *records)) \
    RECORD(cuptiActivityGetNextRecord, (uint8_t *buffer, size_t valid_bytes, struct cupti_record **record))
// clang-format on

#define CUPTI_MEMBER(function, parameters) unsigned(*function) parameters;
struct cupti {
    CUPTI_FUNCTIONS(CUPTI_MEMBER, CUPTI_MEMBER)
};

// Opens the library of the runtime's major version.
status cupti_open(struct cupti *cupti);

// What a call that failed says, and what to do about it.
status cupti_failure(const struct cupti *cupti, const char *call, unsigned code);

#endif
