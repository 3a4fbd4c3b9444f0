// SPDX-License-Identifier: MIT
// What a range says beside its name, as profilers take it.
#ifndef GSWBENCH_TRACE_PAYLOAD_H
#define GSWBENCH_TRACE_PAYLOAD_H

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

// Names each value of a kind to the profiler. Returns 0 where the profiler or the toolkit does not take them.
uint64_t payload_register(nvtxDomainHandle_t domain, enum payload_kind kind);
// Gives a range its payload. The payload has to live until the range ends.
void payload_attach(nvtxEventAttributes_t *attributes, const struct payload *payload);

#endif
