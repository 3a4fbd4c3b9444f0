// SPDX-License-Identifier: MIT
// Compiles only if gswbench's declarations of CUPTI functions, constants and records match CUPTI's header.
#include <cupti.h>

#include <criterion/criterion.h>
#include <stddef.h>

#include "backend/cuda/cupti_library.h"

#define SAME_FUNCTION(function, parameters)                                                                            \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&function), __typeof__(((struct cupti *)0)->function)),     \
                   #function);
#define SAME_SIZE(function, parameters) _Static_assert(sizeof(&function) == sizeof(void *), #function);
CUPTI_FUNCTIONS(SAME_FUNCTION, SAME_SIZE)

#define SAME_NUMBER(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME_NUMBER(CUPTI_CODE_SUCCESS, CUPTI_SUCCESS);
SAME_NUMBER(CUPTI_CODE_END, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME_NUMBER(CUPTI_CODE_TAKEN, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME_NUMBER(CUPTI_CUSTOM, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
SAME_NUMBER(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME_NUMBER(CUPTI_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME_NUMBER(CUPTI_KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME_NUMBER(CUPTI_KIND_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME_NUMBER(CUPTI_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME_NUMBER(CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME_NUMBER(CUPTI_KIND_MEMCPY_PEER, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME_NUMBER(CUPTI_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);

#define SAME_WORK(record, place)                                                                                       \
    _Static_assert(offsetof(record, kind) == offsetof(struct cupti_record, kind) &&                                    \
                       offsetof(record, start) == offsetof(struct cupti_record, begin) &&                              \
                       offsetof(record, end) == offsetof(struct cupti_record, end) &&                                  \
                       offsetof(record, correlationId) == (place),                                                     \
                   #record)
// Checks two versions of each record: the first one with this layout, and the newest one that all supported toolkits
// have.
SAME_WORK(CUpti_ActivityKernel4, CUPTI_CALL_OF_KERNEL);
SAME_WORK(CUpti_ActivityKernel9, CUPTI_CALL_OF_KERNEL);
SAME_WORK(CUpti_ActivityMemcpy3, CUPTI_CALL_OF_COPY);
SAME_WORK(CUpti_ActivityMemcpy5, CUPTI_CALL_OF_COPY);
SAME_WORK(CUpti_ActivityMemset2, CUPTI_CALL_OF_COPY);
SAME_WORK(CUpti_ActivityMemset4, CUPTI_CALL_OF_COPY);
SAME_WORK(CUpti_ActivityMemcpyPtoP2, CUPTI_CALL_OF_PEER_COPY);
SAME_WORK(CUpti_ActivityMemcpyPtoP4, CUPTI_CALL_OF_PEER_COPY);
#if CUPTI_API_VERSION >= 130000
SAME_WORK(CUpti_ActivityKernel10, CUPTI_CALL_OF_KERNEL);
SAME_WORK(CUpti_ActivityMemcpy6, CUPTI_CALL_OF_COPY);
#endif

#define SAME_PLACE(ours, theirs)                                                                                       \
    _Static_assert(offsetof(struct cupti_correlation, ours) == offsetof(CUpti_ActivityExternalCorrelation, theirs) &&  \
                       sizeof(((struct cupti_correlation *)0)->ours) ==                                                \
                           sizeof(((CUpti_ActivityExternalCorrelation *)0)->theirs),                                   \
                   #theirs)
SAME_PLACE(kind, kind);
SAME_PLACE(pusher, externalKind);
SAME_PLACE(id, externalId);
SAME_PLACE(call, correlationId);
_Static_assert(sizeof(struct cupti_correlation) == sizeof(CUpti_ActivityExternalCorrelation), "its size");

Test(cupti_header, has_what_we_declare)
{
    cr_expect_eq(sizeof(struct cupti_record), offsetof(CUpti_ActivityMemset4, end) + sizeof(uint64_t));
}
