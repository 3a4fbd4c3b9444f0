// SPDX-License-Identifier: MIT
// From a request to the plan of one rank: the layers of the model, the schedule and the optimizer, appended op by op.
#ifndef GSWBENCH_PLAN_BUILD_H
#define GSWBENCH_PLAN_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/plan.h"

// What a job is asked for by: sections of a configuration, and the number of ranks.
struct plan_sections {
    const struct model_config     *model;
    const struct parallel_config  *parallel;
    const struct train_config     *train;
    const struct precision_config *precision;
    int64_t                        world;    // 0: the smallest that the axes allow
};

// The same, resolved once: no axis is auto, and all batch sizes are known. And the rank whose plan is to be built.
struct plan_request {
    struct model_config    model;
    struct parallel_config parallel;
    struct train_config    train;
    struct precision       precision;
    struct mesh            mesh;
    int64_t                rank;
    bool                   is_unplaced;    // activations get no places: how many bytes are live at once is enough
};

// Resolves for rank 0. A failure has a line for each error; where the axes and the number of ranks form no mesh, the
// mesh of the request has world 0.
status plan_resolve(struct plan_request *request, const struct plan_sections *sections);

// Checks what does not depend on the number of ranks.
status plan_check(const struct plan_sections *sections);

// Why this version cannot run the request, or success. Cheap; says what is missing and which option asks for it.
status plan_supports(const struct plan_request *request);

// How the layers are dealt to pipeline chunks.
struct schedule_deal plan_deal(const struct plan_request *request);

// Upper bounds of what plans have, in microseconds; no plan is built.
struct plan_size {
    double rank_ops;      // of the rank that has most
    double stage_ops;     // of one rank of each pipeline stage, together
    double rank_bytes;    // of all tensors of a rank, as if none took the place of another
};
struct plan_size plan_size(const struct plan_request *request);

// The request is resolved without an error. Refuses what layers, tokens and axes are at odds about; what is too large
// to be planned.
status plan_check_layout(const struct plan_request *request);
status plan_check_size(const struct plan_request *request);

// Builds the rank's plan: blocks, schedule, optimizer, waits, placement. plan_free follows a failure, too.
status plan_build(struct plan *plan, const struct plan_request *request);

// Builds the plan of a pipeline stage's first rank, whichever the request names.
status plan_build_stage(struct plan *plan, const struct plan_request *request, int64_t stage);

// The weights and units of another rank of the same job, without ops; plan_free frees it.
void plan_declare(struct plan *declared, const struct plan *plan, int64_t rank);

#endif
