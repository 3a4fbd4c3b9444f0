// SPDX-License-Identifier: MIT
// What a program holds of a device's memory in a step: the plan's tensors, and what its framework keeps besides. Each
// part is a mechanism of the program, in bytes by formula (docs/method.md, Memory).
#ifndef GSWBENCH_FOOTPRINT_H
#define GSWBENCH_FOOTPRINT_H

#include <stdint.h>

#include "gswbench/json.h"
#include "gswbench/plan.h"
#include "gswbench/software.h"

enum footprint_part {
    // What its allocator has given out at the worst moment.
    FOOTPRINT_WEIGHTS,
    FOOTPRINT_GRADIENTS,
    FOOTPRINT_OPTIMIZER,
    FOOTPRINT_ACTIVATIONS,        // of the plan, with its inputs and results
    FOOTPRINT_PRODUCTS,           // kept of a block in place of what the plan keeps
    FOOTPRINT_LOGITS,             // the loss's copies of the logits
    FOOTPRINT_PLACEHOLDERS,       // gradients that nobody reads
    FOOTPRINT_WHOLE_GRADIENTS,    // of sharded weights, until a step's last microbatch
    FOOTPRINT_WHOLE_WEIGHTS,      // ... as they were gathered, with several microbatches
    FOOTPRINT_ROOT_WEIGHTS,       // the embedding's, gathered as long as the head's
    FOOTPRINT_PIPELINE,           // what stages receive into, and have sent on
    FOOTPRINT_WORKSPACES,         // of libraries
    // What it has taken from the device besides.
    FOOTPRINT_GATHER_POOL,    // gathers' buffers, which nothing else may use
    FOOTPRINT_CACHED,         // free segments that are too small for the logits
    FOOTPRINT_FRAGMENTS,
    // What is no allocator's.
    FOOTPRINT_CONNECTIONS,
    FOOTPRINT_CONTEXT,
    FOOTPRINT_PARTS
};
extern const char *const footprint_names[FOOTPRINT_PARTS];

struct footprint {
    int64_t bytes[FOOTPRINT_PARTS];
    int64_t allocated, reserved, device;    // the sums of the first group of parts; of two; of all
};
extern const struct json_field footprint_fields[];

// Of the plan's rank; software NULL: this program, which holds what is planned.
void footprint_find(struct footprint *footprint, const struct plan *plan, const struct software_config *software,
                    int64_t ranks_per_node);

#endif
