// SPDX-License-Identifier: MIT
// How long a step will take: every op of the plan has a price on the machine of [hardware], and the lanes of all stages
// are simulated with these prices. This takes neither ranks nor a device.
#ifndef GSWBENCH_PREDICT_H
#define GSWBENCH_PREDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/footprint.h"
#include "gswbench/hardware.h"
#include "gswbench/job.h"
#include "gswbench/measured.h"
#include "gswbench/plan.h"
#include "gswbench/plan_build.h"
#include "gswbench/simulate.h"
#include "gswbench/software.h"
#include "gswbench/status.h"
#include "gswbench/timeline.h"
#include "gswbench/waterfall.h"

// What GEMMs take on a machine that does not change meanwhile, as far as it was found; zeroed, it knows none. A plan
// has few shapes, each many times, and their prices take longest to find. Of one thread.
enum { GEMM_MEMO = 64 };
struct known_gemm {
    int64_t                  m, n, k;
    const struct format_row *format;
    double                   seconds;
    bool                     accumulates;
};
struct gemm_memo {
    struct known_gemm known[GEMM_MEMO];
};

// What prices are made from.
struct machine {
    const struct hardware_config *hardware;
    const struct software_config *software;             // NULL: this program
    const struct measured_ops    *measured;             // these take the place of prices; NULL: none
    int64_t                       spared_processors;    // as run.spared_processors
    bool                          zero_cta;             // as run.zero_cta
    struct gemm_memo             *gemms;                // NULL: each is priced anew
};

struct prediction {
    double           step_seconds;
    double           straggler_seconds;    // of them: what the slowest replica adds
    int64_t          stages, busiest_stage;
    double           imbalance_percent;              // by which the busiest stage computes longer than the mean
    double           measured_percent;               // of its compute, priced by what was measured
    int64_t          largest_rank, largest_bytes;    // of the first rank of each stage, by all storages
    struct footprint footprint;    // of the program, on the rank of a stage that has most; by predict_explain only
};

// Why the job cannot be priced on this machine, or success.
status predict_supports(const struct plan_request *request, const struct hardware_config *hardware);

// That of a job's configuration; both outlive it.
struct machine predict_machine(const struct config *config, const struct measured_ops *measured);

status predict(struct prediction *prediction, const struct plan_request *request, const struct machine *machine);

// The same, and where the time goes on the stage that computes longest.
struct predict_view {    // of the first rank of a stage
    const struct plan    *plan;
    const struct op_time *times;    // [op_count]
    struct timeline_ranks ranks;    // that are seen
    bool                  is_first, is_busiest;
};
struct predict_explanation {
    double ideal_seconds, attention_share;                            // given, as struct waterfall_step has them
    void (*visit)(void *context, const struct predict_view *view);    // given: sees each stage; NULL: none
    void            *context;
    struct waterfall waterfall;
};
status predict_explain(struct predict_explanation *explanation, struct prediction *prediction,
                       const struct plan_request *request, const struct machine *machine);

// The same of a job, whose FLOPs and peak give the ideal. The explanation's visit is the caller's.
status predict_explain_job(struct predict_explanation *explanation, struct prediction *prediction,
                           const struct job *job, const struct machine *machine);

// range.c: by how many percent the step changes when each value of the machine moves by its spread, and the root of the
// sum of their squares.
struct predict_effect {
    const char *section, *key;
    double      percent;
};
enum { PREDICT_EFFECTS_MAX = 64 };
struct predict_range {
    double                percent;
    struct predict_effect effects[PREDICT_EFFECTS_MAX];
    int                   effect_count;
};
status predict_range(struct predict_range *range, const struct plan_request *request, const struct machine *machine);

struct price {
    double  seconds;
    double  stall_seconds;    // for which compute stops for a transfer, wherever that runs
    uint8_t links;            // of a transfer, as a task has them; 0: the op computes
    int16_t processors;       // of its device, that a transfer takes
    bool    is_measured;
    bool    is_alone;          // a transfer that compute waits for
    double  launch_seconds;    // of the host, until it has launched the op; 0: no matter
    double  launch_alone;      // of these, while the device waits in any case
    bool    is_in_graph;       // a pass of a layer launches these once
    bool    is_read;           // the host launches nothing until the op has ended
};
// price.c, price_transfer.c: the price of one op; docs/method.md has the formulas.
struct price predict_price_op(const struct machine *machine, const struct plan *plan, const struct op *op);
struct price predict_price_transfer(const struct machine *machine, const struct plan *plan, const struct op *op);

// pipeline.c: the stages of a job as the actors of a simulation. The first rank of a stage stands for all of its ranks,
// so that a collective within the stage waits for nobody else.
struct pricing {
    struct price (*price)(const void *state, const struct plan *plan, const struct op *op);
    const void *state;
};
struct predict_stage {
    struct plan plan;    // of its first rank
    int64_t     rank, bytes;
    double      compute_seconds, measured_seconds;    // prices of what computes, and of that what was measured
    double      stall_seconds;
};
struct predict_pipeline {
    struct simulation     simulation;
    struct predict_stage *stages;    // [actor_count]
};
// A pipeline is built once. Pricing gives its tasks their seconds, and can be repeated with other prices.
status predict_pipeline_init(struct predict_pipeline *pipeline, const struct plan_request *request);
void   predict_pipeline_price(struct predict_pipeline *pipeline, const struct pricing *pricing);
void   predict_pipeline_free(struct predict_pipeline *pipeline);

// The step of a pipeline that was built for the request.
status predict_time_pipeline(struct prediction *prediction, struct predict_pipeline *pipeline,
                             const struct plan_request *request, const struct machine *machine);

#endif
