// SPDX-License-Identifier: MIT
// Finds the layouts of a job with the shortest predicted step time among those that fit the device.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/job.h"
#include "gswbench/predict.h"

// A reason why layouts cannot be predicted, and the number of these layouts.
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

    // Outputs: numbers of layouts. layout_count = refused + too_large + fit. too_large: the layout needs more memory
    // than the device has, in gswbench or in the modelled framework. predicted: the layout has a full prediction. The
    // other layouts have a lower bound of their step time that excludes them from best.
    int64_t refused, too_large, fit, predicted;
    // goes_on stopped the sweep: best is chosen only from the layouts predicted before
    bool                 is_stopped;
    struct sweep_refusal refusals[SWEEP_REFUSALS];    // the first SWEEP_REFUSALS reasons
    int                  refusal_count;
    struct sweep_choice  best[SWEEP_BEST];    // fastest first
    int                  best_count;
};

// Predicts every layout that can be among the best by its lower bound. So best is the same as if every layout were
// predicted.
status sweep_run(struct sweep *sweep);

// Lower bounds of a layout's step time and memory, from plans of a few microbatches (sweep_bound.c).
struct sweep_action;
struct sweep_bound {
    double  seconds;
    int64_t bytes;    // as predict_device_bytes: maximum over the stages examined so far
    // Progress: number of stages examined, times of the passes through each chunk, and seconds of each stage after its
    // last pass.
    int64_t              stages;
    struct sweep_action *actions;
    double              *rest;
};
void   sweep_free_bound(struct sweep_bound *bound);
status sweep_find_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine);
// Examines one more pipeline stage, and raises the bound if that stage shows a higher one.
status sweep_refine_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine);

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
