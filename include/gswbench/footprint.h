// SPDX-License-Identifier: MIT
// Device memory of a framework during a step: the tensors of the plan, and other memory that the framework holds. Each
// part is one mechanism of the framework, with a formula for its bytes (docs/frameworks.md, Memory).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/json.h"
#include "gswbench/plan.h"
#include "gswbench/software.h"

enum footprint_part {
    // Peak of the memory that the caching allocator has allocated.
    FOOTPRINT_WEIGHTS,
    FOOTPRINT_GRADIENTS,
    FOOTPRINT_OPTIMIZER,
    FOOTPRINT_ACTIVATIONS,        // of the plan, with inputs and results
    FOOTPRINT_GEMMS,              // GEMM outputs that the framework saves in a block instead of the plan's activations
    FOOTPRINT_LOGITS,             // copies of the logits made by the loss
    FOOTPRINT_PLACEHOLDERS,       // gradients that no op reads
    FOOTPRINT_ATTENTION,          // probabilities that unfused attention keeps, and copies of its inputs and outputs
    FOOTPRINT_DROPOUT,            // masks of the residual stream
    FOOTPRINT_WHOLE_GRADIENTS,    // unsharded gradients, until the last microbatch of a step
    FOOTPRINT_WHOLE_WEIGHTS,      // unsharded weights, kept across microbatches
    FOOTPRINT_ROOT_WEIGHTS,       // embedding weights, gathered while the head's are
    FOOTPRINT_PIPELINE,           // receive buffers of stages, and sent activations
    FOOTPRINT_WORKSPACES,         // of libraries
    // Memory that the allocator has reserved beyond that.
    FOOTPRINT_GATHER_POOL,    // separate pool of gather buffers
    FOOTPRINT_CACHED,         // free segments that are too small for the logits
    FOOTPRINT_FRAGMENTS,
    // Memory outside the allocator.
    FOOTPRINT_CONNECTIONS,
    FOOTPRINT_CONTEXT,
    FOOTPRINT_PARTS
};
extern const char *const footprint_names[FOOTPRINT_PARTS];

struct footprint {
    int64_t bytes[FOOTPRINT_PARTS];
    int64_t allocated, reserved, device;    // sums of the first group of parts, the first two, and all three
};
extern const struct json_field footprint_fields[];

// Whether the framework's memory is modelled. If it is not, its footprint is the plan of gswbench.
bool footprint_is_modelled(const struct software_config *software);

// For the rank of the plan. software NULL: gswbench itself, which holds exactly the memory of the plan.
void footprint_find(struct footprint *footprint, const struct plan *plan, const struct software_config *software,
                    int64_t ranks_per_node);
