// SPDX-License-Identifier: MIT
// What a range says beside its name, as profilers take it.
#ifndef GSWBENCH_TRACE_INTERNAL_H
#define GSWBENCH_TRACE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nvtx3/nvToolsExt.h>

struct step_payload {
    int64_t step, rank;
    double  flops;    // of all ops of the rank's step
};
struct op_payload {
    int64_t op, microbatch;    // microbatch -1: none
    int64_t bytes;
    double  flops;         // of what computes
    int64_t group_size;    // of a transfer
};

enum payload_kind { PAYLOAD_STEP, PAYLOAD_COMPUTE, PAYLOAD_TRANSFER, PAYLOAD_COUNT };

// A payload with its schema, laid out as the extended API has it.
struct payload {
    uint64_t    schema;
    size_t      bytes;
    const void *values;
};

// payload.c, of toolkits that have the extended API: names each value of a kind to the profiler. 0: it does not take
// them.
uint64_t payload_register(nvtxDomainHandle_t domain, enum payload_kind kind);
// Gives a range such a payload, which lives as long.
void payload_attach(nvtxEventAttributes_t *attributes, const struct payload *payload);

#endif
