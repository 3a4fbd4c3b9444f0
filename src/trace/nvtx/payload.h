// SPDX-License-Identifier: MIT
// NVTX payloads: values that a range carries in addition to its name.
#ifndef GSWBENCH_TRACE_PAYLOAD_H
#define GSWBENCH_TRACE_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nvtx3/nvToolsExt.h>

struct step_payload {
    int64_t step, rank;
    double  flops;    // sum over the ops in the rank's step
};
struct op_payload {
    int64_t op, microbatch;    // microbatch -1: none
    int64_t bytes;
    double  flops;         // compute ops only
    int64_t group_size;    // communication ops only
};

enum payload_kind { PAYLOAD_STEP, PAYLOAD_COMPUTE, PAYLOAD_TRANSFER, PAYLOAD_COUNT };

// A payload and its schema, with the layout of nvtxPayloadData_t.
struct payload {
    uint64_t    schema;
    size_t      bytes;
    const void *values;
};

// Registers the names of a kind's values. Returns 0 if the profiler or the toolkit does not support them.
uint64_t payload_register(nvtxDomainHandle_t domain, enum payload_kind kind);
// Attaches a payload to a range. The payload must stay valid until the range ends.
void payload_attach(nvtxEventAttributes_t *attributes, const struct payload *payload);

#endif
