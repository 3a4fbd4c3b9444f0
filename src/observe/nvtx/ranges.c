// SPDX-License-Identifier: MIT
// Marks steps, phases, layers and ops as NVTX ranges. ranges_open prepares names, payloads and nesting, so a step only
// pushes and pops ranges. A payload has the named values that a range carries in addition to its name. Payloads
// need NVTX's extended API, which some toolkits lack; ranges then carry a single number.
#include "gswbench/observe.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>
#if __has_include(<nvtx3/nvToolsExtPayload.h>)
#include <nvtx3/nvToolsExtPayload.h>
#endif

#include "gswbench/arena.h"

struct step_payload {
    int64_t step, rank;
    double  flops;    // sum over the ops in the rank's step
};
struct op_payload {
    int64_t op, microbatch;    // -1: the op belongs to no microbatch
    int64_t bytes;
    double  flops;         // compute ops only
    int64_t group_size;    // communication ops only
};

enum payload_kind { PAYLOAD_STEP, PAYLOAD_COMPUTE, PAYLOAD_COMMUNICATION, PAYLOAD_COUNT };

// A payload and its schema. The struct has the layout of nvtxPayloadData_t.
struct payload {
    uint64_t    schema;
    size_t      bytes;
    const void *values;
};

#if __has_include(<nvtx3/nvToolsExtPayload.h>)

_Static_assert(sizeof(struct payload) == sizeof(nvtxPayloadData_t), "laid out as the API has it");
_Static_assert(offsetof(struct payload, schema) == offsetof(nvtxPayloadData_t, schemaId), "the same");
_Static_assert(offsetof(struct payload, bytes) == offsetof(nvtxPayloadData_t, size), "the same");
_Static_assert(offsetof(struct payload, values) == offsetof(nvtxPayloadData_t, payload), "the same");

// clang-format off
#define INTEGER(owner, field) \
    {.type = NVTX_PAYLOAD_ENTRY_TYPE_INT64, .name = #field, .offset = offsetof(struct owner, field)}
#define REAL(owner, field) \
    {.type = NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, .name = #field, .offset = offsetof(struct owner, field)}
static const nvtxPayloadSchemaEntry_t
    step_entries[]     = {INTEGER(step_payload, step), INTEGER(step_payload, rank), REAL(step_payload, flops)},
    compute_entries[]  = {INTEGER(op_payload, op), INTEGER(op_payload, microbatch), INTEGER(op_payload, bytes),
                          REAL(op_payload, flops)},
    communication_entries[] = {INTEGER(op_payload, op), INTEGER(op_payload, microbatch), INTEGER(op_payload, bytes),
                          INTEGER(op_payload, group_size)};
// clang-format on

static const struct {
    const char                     *name;
    const nvtxPayloadSchemaEntry_t *entries;
    size_t                          count, bytes;
} payload_schemas[PAYLOAD_COUNT] = {
    [PAYLOAD_STEP]          = {"step", step_entries, 3, sizeof(struct step_payload)},
    [PAYLOAD_COMPUTE]       = {"compute", compute_entries, 4, sizeof(struct op_payload)},
    [PAYLOAD_COMMUNICATION] = {"transfer", communication_entries, 4, sizeof(struct op_payload)},
};

// Registers the names of a payload's values. Returns 0 if the profiler does not support them.
static uint64_t register_payload(nvtxDomainHandle_t domain, enum payload_kind kind)
{
    nvtxPayloadSchemaAttr_t schema = {
        .fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
        .name              = payload_schemas[kind].name,
        .type              = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
        .entries           = payload_schemas[kind].entries,
        .numEntries        = payload_schemas[kind].count,
        .payloadStaticSize = payload_schemas[kind].bytes,
    };
    return nvtxPayloadSchemaRegister(domain, &schema);
}

static void attach_payload(nvtxEventAttributes_t *attributes, const struct payload *payload)
{
    attributes->payloadType      = NVTX_PAYLOAD_TYPE_EXT;
    attributes->payload.ullValue = (uintptr_t)payload;
    attributes->reserved0        = 1;    // number of payloads
}

#else

static uint64_t register_payload(nvtxDomainHandle_t domain, enum payload_kind kind)
{
    (void)domain, (void)kind;
    return 0;
}

static void attach_payload(nvtxEventAttributes_t *attributes, const struct payload *payload)
{
    (void)attributes, (void)payload;
}

#endif

enum { OPENS_STEP = 1, OPENS_PHASE = 2, OPENS_LAYER = 4 };

struct op_range {
    nvtxEventAttributes_t attributes;
    struct payload        payload;
    struct op_payload     values;
    uint8_t               opens;     // OPENS_...: ranges to push before the op's own range
    uint8_t               closes;    // number of ranges to pop after the op's own range
};

struct ranges {
    const struct plan     *plan;
    nvtxEventAttributes_t  outer[RANGE_COUNT];
    struct payload         payload;
    struct step_payload    values;    // values in `payload`; they change only while no op is being issued
    nvtxEventAttributes_t  phases[PHASE_COUNT];
    nvtxEventAttributes_t *layers;    // [number of layers]
    struct op_range       *ops;       // [op_count]
};

static const char *const range_names[RANGE_COUNT] = {
    [RANGE_STEP] = "step", [RANGE_CAPTURE] = "capture", [RANGE_PROFILE] = "profile"};

// The NVTX domain. A process has one domain, even if its ranks are threads. NULL: no profiler is attached.
static nvtxDomainHandle_t domain;

static void create_domain(void)
{
    domain = nvtxDomainCreateA("gswbench");
    for (int stream = 0; stream < STREAM_COUNT && domain != NULL; stream++) {
        nvtxDomainNameCategoryA(domain, (uint32_t)stream + 1, op_stream_name((enum stream)stream));
    }
}

static nvtxEventAttributes_t name_range(const char *name)
{
    return (nvtxEventAttributes_t){.version     = NVTX_VERSION,
                                   .size        = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
                                   .message     = {.registered = nvtxDomainRegisterStringA(domain, name)}};
}

// Returns the name of an op's range. Ops of the same kind and role share a registered name, since few names are
// distinct.
static nvtxEventAttributes_t name_op(const struct ranges *ranges, int32_t index)
{
    const struct op *op = &ranges->plan->ops[index];
    for (int32_t i = index - 1; i >= 0; i--) {
        const struct op *other = &ranges->plan->ops[i];
        if (other->kind == op->kind && strcmp(other->tag.role, op->tag.role) == 0) {
            return ranges->ops[i].attributes;
        }
    }
    char name[128];
    snprintf(name, sizeof(name), "%s %s", op_name((enum op_kind)op->kind), op->tag.role);
    return name_range(name);
}

// Attaches the named values to a range, or only one number if the profiler or the toolkit does not support named
// values.
static void give_payload(nvtxEventAttributes_t *attributes, const struct payload *payload, int64_t integer, double real)
{
    if (payload->schema != 0) {
        attach_payload(attributes, payload);
    } else if (real > 0.0) {
        attributes->payloadType    = NVTX_PAYLOAD_TYPE_DOUBLE;
        attributes->payload.dValue = real;
    } else {
        attributes->payloadType     = NVTX_PAYLOAD_TYPE_INT64;
        attributes->payload.llValue = integer;
    }
}

static void describe_op(struct ranges *ranges, int32_t index, const uint64_t schemas[PAYLOAD_COUNT])
{
    const struct plan *plan             = ranges->plan;
    const struct op   *op               = &plan->ops[index];
    struct op_range   *range            = &ranges->ops[index];
    bool               is_communication = op_is_communication((enum op_kind)op->kind);
    range->values =
        (struct op_payload){.op         = index,
                            .microbatch = op->tag.microbatch,
                            .bytes      = (int64_t)plan_op_bytes(plan, op),
                            .flops      = op_flops(op),
                            .group_size = is_communication ? plan->groups[op->shape.communication.group].size : 0};
    range->payload    = (struct payload){.schema = schemas[is_communication ? PAYLOAD_COMMUNICATION : PAYLOAD_COMPUTE],
                                         .bytes  = sizeof(range->values),
                                         .values = &range->values};
    range->attributes = name_op(ranges, index);
    range->attributes.category = (uint32_t)op->stream + 1;
    give_payload(&range->attributes, &range->payload, range->values.bytes, range->values.flops);
}

// Returns the ranges to open between an op and the previous one on its thread. before NULL: the op is the first.
static uint8_t find_opens(const struct op *before, const struct op *op, bool is_one_thread)
{
    uint8_t layer = op->tag.layer >= 0 ? OPENS_LAYER : 0;
    if (before == NULL) {
        bool is_callers = is_one_thread || op->stream == STREAM_COMPUTE;    // on this thread the step range is open
        return (uint8_t)(layer | OPENS_PHASE | (is_callers ? 0 : OPENS_STEP));
    }
    if (before->tag.phase != op->tag.phase) {
        return layer | OPENS_PHASE;
    }
    return before->tag.layer != op->tag.layer ? layer : 0;
}

// Returns the number of ranges to close between an op and the next one on its thread. after NULL: the op is the last.
static uint8_t count_closes(const struct op *op, const struct op *after, bool is_one_thread)
{
    int layers = op->tag.layer >= 0 ? 1 : 0;
    if (after == NULL) {
        return (uint8_t)(layers + 1 + (is_one_thread || op->stream == STREAM_COMPUTE ? 0 : 1));
    }
    if (after->tag.phase != op->tag.phase) {
        return (uint8_t)(layers + 1);
    }
    return (uint8_t)(after->tag.layer != op->tag.layer ? layers : 0);
}

static void nest(struct ranges *ranges, bool is_one_thread)
{
    const struct op *ops                = ranges->plan->ops;
    const struct op *last[STREAM_COUNT] = {NULL};    // last op of each thread
    for (int32_t i = 0; i < ranges->plan->op_count; i++) {
        const struct op **before = &last[is_one_thread ? 0 : ops[i].stream];
        ranges->ops[i].opens     = find_opens(*before, &ops[i], is_one_thread);
        if (*before != NULL) {
            ranges->ops[*before - ops].closes = count_closes(*before, &ops[i], is_one_thread);
        }
        *before = &ops[i];
    }
    for (int thread = 0; thread < STREAM_COUNT; thread++) {
        if (last[thread] != NULL) {
            ranges->ops[last[thread] - ops].closes = count_closes(last[thread], NULL, is_one_thread);
        }
    }
}

static void name_layers(struct ranges *ranges)
{
    int32_t count = 0;
    for (int32_t i = 0; i < ranges->plan->op_count; i++) {
        int32_t layer = ranges->plan->ops[i].tag.layer;
        count         = layer >= count ? layer + 1 : count;
    }
    ranges->layers = memory_allocate(((size_t)count + 1) * sizeof(*ranges->layers));
    for (int32_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "layer %d", i);
        ranges->layers[i] = name_range(name);
    }
}

struct ranges *ranges_open(const struct plan *plan, bool is_one_thread)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_domain);
    if (domain == NULL) {
        return NULL;
    }
    struct ranges *ranges = memory_allocate(sizeof(*ranges));
    uint64_t       schemas[PAYLOAD_COUNT];
    for (int kind = 0; kind < PAYLOAD_COUNT; kind++) {
        schemas[kind] = register_payload(domain, (enum payload_kind)kind);
    }
    *ranges                = (struct ranges){.plan    = plan,
                                             .payload = {.schema = schemas[PAYLOAD_STEP], .bytes = sizeof(ranges->values)},
                                             .values  = {.rank = plan->rank},
                                             .ops     = memory_allocate((size_t)plan->op_count * sizeof(*ranges->ops))};
    ranges->payload.values = &ranges->values;
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        ranges->phases[phase] = name_range(op_phase_name((enum phase)phase));
    }
    for (int range = 0; range < RANGE_COUNT; range++) {
        ranges->outer[range] = name_range(range_names[range]);
    }
    name_layers(ranges);
    for (int32_t i = 0; i < plan->op_count; i++) {
        describe_op(ranges, i, schemas);
        ranges->values.flops += ranges->ops[i].values.flops;
    }
    nest(ranges, is_one_thread);
    return ranges;
}

void ranges_close(struct ranges *ranges)
{
    if (ranges != NULL) {
        free(ranges->layers);
        free(ranges->ops);
        free(ranges);
    }
}

void ranges_begin(struct ranges *ranges, enum range_kind range, int64_t step)
{
    if (ranges != NULL) {
        ranges->values.step = step;
        give_payload(&ranges->outer[range], &ranges->payload, step, 0.0);
        nvtxDomainRangePushEx(domain, &ranges->outer[range]);
    }
}

void ranges_end(struct ranges *ranges)
{
    if (ranges != NULL) {
        nvtxDomainRangePop(domain);
    }
}

void ranges_begin_op(const void *state, const struct op *op)
{
    const struct ranges   *ranges = state;
    const struct op_range *range  = &ranges->ops[op - ranges->plan->ops];
    if ((range->opens & OPENS_STEP) != 0) {
        nvtxDomainRangePushEx(domain, &ranges->outer[RANGE_STEP]);
    }
    if ((range->opens & OPENS_PHASE) != 0) {
        nvtxDomainRangePushEx(domain, &ranges->phases[op->tag.phase]);
    }
    if ((range->opens & OPENS_LAYER) != 0) {
        nvtxDomainRangePushEx(domain, &ranges->layers[op->tag.layer]);
    }
    nvtxDomainRangePushEx(domain, &range->attributes);
}

void ranges_end_op(const void *state, const struct op *op)
{
    const struct ranges   *ranges = state;
    const struct op_range *range  = &ranges->ops[op - ranges->plan->ops];
    for (int i = 0; i <= range->closes; i++) {
        nvtxDomainRangePop(domain);
    }
}
