// SPDX-License-Identifier: MIT
// Range payloads with several named values. Toolkits without the extended API lack the header, and show none.
#include "payload.h"

#if __has_include(<nvtx3/nvToolsExtPayload.h>)

#include <nvtx3/nvToolsExtPayload.h>

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
    transfer_entries[] = {INTEGER(op_payload, op), INTEGER(op_payload, microbatch), INTEGER(op_payload, bytes),
                          INTEGER(op_payload, group_size)};
// clang-format on

static const struct {
    const char                     *name;
    const nvtxPayloadSchemaEntry_t *entries;
    size_t                          count, bytes;
} schemas[PAYLOAD_COUNT] = {
    [PAYLOAD_STEP]     = {"step", step_entries, 3, sizeof(struct step_payload)},
    [PAYLOAD_COMPUTE]  = {"compute", compute_entries, 4, sizeof(struct op_payload)},
    [PAYLOAD_TRANSFER] = {"transfer", transfer_entries, 4, sizeof(struct op_payload)},
};

uint64_t payload_register(nvtxDomainHandle_t domain, enum payload_kind kind)
{
    nvtxPayloadSchemaAttr_t schema = {
        .fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
        .name              = schemas[kind].name,
        .type              = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
        .entries           = schemas[kind].entries,
        .numEntries        = schemas[kind].count,
        .payloadStaticSize = schemas[kind].bytes,
    };
    return nvtxPayloadSchemaRegister(domain, &schema);
}

void payload_attach(nvtxEventAttributes_t *attributes, const struct payload *payload)
{
    attributes->payloadType      = NVTX_PAYLOAD_TYPE_EXT;
    attributes->payload.ullValue = (uintptr_t)payload;
    attributes->reserved0        = 1;    // number of payloads
}

#else

uint64_t payload_register(nvtxDomainHandle_t domain, enum payload_kind kind)
{
    (void)domain, (void)kind;
    return 0;
}

void payload_attach(nvtxEventAttributes_t *attributes, const struct payload *payload)
{
    (void)attributes, (void)payload;
}

#endif
