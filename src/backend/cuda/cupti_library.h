// SPDX-License-Identifier: MIT
// Declarations of the CUPTI functions and records that the program uses. cupti.h is not included, because toolkits
// install it in different places or omit it. Later CUPTI versions only append fields to these records. A test compares
// the declarations with cupti.h if it is installed.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gswbench/status.h"

enum {
    CUPTI_CODE_SUCCESS = 0,
    CUPTI_CODE_END     = 12,    // no more records in the buffer
    CUPTI_CODE_TAKEN   = 39,    // a profiler has the subscription
};
enum { CUPTI_CUSTOM = 3 };          // correlation kind of our ids
enum { CUPTI_FLUSH_FORCED = 1 };    // including incomplete records

// Kinds of activity records. Records of driver and runtime API calls carry the pushed correlation ids.
enum {
    CUPTI_KIND_MEMCPY               = 1,
    CUPTI_KIND_MEMSET               = 2,
    CUPTI_KIND_DRIVER               = 4,
    CUPTI_KIND_RUNTIME              = 5,
    CUPTI_KIND_CONCURRENT_KERNEL    = 10,
    CUPTI_KIND_MEMCPY_PEER          = 22,
    CUPTI_KIND_EXTERNAL_CORRELATION = 39,
};

// First fields of each record of a kernel, copy or memset. The constants are the byte offsets of the correlation id in
// each kind of record. Records are aligned to 8 bytes.
struct cupti_record {
    uint32_t kind, others[3];
    uint64_t begin, end;    // nanoseconds; 0: unknown
};
enum { CUPTI_CALL_OF_COPY = 44, CUPTI_CALL_OF_PEER_COPY = 60, CUPTI_CALL_OF_KERNEL = 92 };
struct cupti_correlation {
    uint32_t kind, pusher;    // pusher: CUPTI_CUSTOM for our ids
    uint64_t id;              // pushed id
    uint32_t call, other;
};

struct CUctx_st;    // CUPTI's type names, so that a test can compare the types
struct CUpti_Subscriber_st;
typedef void cupti_request(uint8_t **buffer, size_t *bytes, size_t *records_max);
typedef void cupti_complete(struct CUctx_st *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                            size_t valid_bytes);
typedef void cupti_callback(void *state, unsigned domain, uint32_t id, const void *data);

// ROW(function, parameters) declares a function. RECORD does the same for functions that take a record, which cupti.h
// declares with its own type instead of cupti_record.
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
