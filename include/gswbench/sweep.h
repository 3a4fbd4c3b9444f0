// SPDX-License-Identifier: MIT
// Finds the layouts of a job with the shortest predicted step time among those that fit the device.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/job.h"
#include "gswbench/predict.h"

// Layouts that cannot be predicted, grouped by reason.
struct sweep_refusal {
    char    text[256];
    int64_t layouts;
};

struct sweep_choice {
    int64_t           layout;
    struct prediction prediction;
};

enum { SWEEP_BEST = 10, SWEEP_REFUSALS = 8 };

struct sweep {
    // Inputs.
    const struct machine      *machine;
    const struct plan_request *layouts;    // same model, precision, sequence length and global batch
    int64_t                    layout_count;
    int                        threads;
    // Called on the caller's thread after each piece of work; false stops the sweep. May be NULL.
    bool (*goes_on)(void *state, const struct sweep *sweep);
    void *state;

    // Outputs. layout_count = refused + too_large + fit. fit counts the layouts that no bound shows to be too large.
    // predicted counts full predictions; bounds exclude the others from best.
    int64_t              refused, too_large, fit, predicted;
    bool                 is_stopped;                  // by goes_on: best covers the layouts predicted before
    struct sweep_refusal refusals[SWEEP_REFUSALS];    // the first SWEEP_REFUSALS reasons
    int                  refusal_count;
    struct sweep_choice  best[SWEEP_BEST];    // fastest first
    int                  best_count;
};

// Predicts every layout that no lower bound excludes. best holds the times of predict and does not depend on the
// bounds.
status sweep_run(struct sweep *sweep);

// Lower bounds of a layout's step time and memory, from plans of a few microbatches (sweep_bound.c).
struct sweep_action;
struct sweep_bound {
    double  seconds;
    int64_t bytes;    // largest of the stages examined
    // Progress: stages examined; costs of each chunk's passes; time of each stage after its last pass.
    int64_t              stages;
    struct sweep_action *actions;
    double              *rest;
};
void   sweep_free_bound(struct sweep_bound *bound);
status sweep_find_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine);
// Examines one more stage of an open bound.
status sweep_refine_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine);

// Returns whether a rank with this much memory fits the device; true if [hardware] gives no memory size.
bool sweep_fits(const struct hardware_config *hardware, int64_t bytes);

// The layouts that a sweep considers.

struct sweep_list {
    struct plan_request *layouts;    // freed by the caller
    int64_t              count;
};

// Lists the legal layouts of the job for the ranks of its mesh, in a fixed order. The list contains the job's own
// layout if it has one.
void sweep_list(struct sweep_list *list, const struct job *job);

// Advises in one line if no layout fits: the layout with the least memory, and whether more ranks or another machine
// help.
void sweep_advise(char *text, size_t bytes, const struct job *job, const struct machine *machine);
