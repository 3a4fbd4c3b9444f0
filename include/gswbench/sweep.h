// SPDX-License-Identifier: MIT
// The fastest of many layouts of a job that fit a device, by their predicted step time.
#ifndef GSWBENCH_SWEEP_H
#define GSWBENCH_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/predict.h"

// Layouts that cannot be priced, by the first one's reason.
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
    // Set by the caller.
    const struct machine      *machine;
    const struct plan_request *layouts;    // of one model, precision, sequence and global batch
    int64_t                    layout_count;
    int                        threads;
    // Asked after each layout, by the thread that called, whether to go on; NULL: it does.
    bool (*goes_on)(void *state, const struct sweep *sweep);
    void *state;

    // Filled. Layouts = refused + too large + those that may fit; of these, the priced ones could be among the
    // best, and of the others it may not be known whether they fit.
    int64_t              refused, too_large, fit, priced;
    bool                 is_stopped;                  // before its end: best is the best of those that are priced
    struct sweep_refusal refusals[SWEEP_REFUSALS];    // the first so many reasons
    int                  refusal_count;
    struct sweep_choice  best[SWEEP_BEST];    // fastest first
    int                  best_count;
};

// Prices, exactly as predict does, every layout that no bound excludes: what is in best does not depend on the bounds.
status sweep_run(struct sweep *sweep);

// sweep_bound.c: the least time and memory of a layout, from plans of a few microbatches.
struct sweep_turn;
struct sweep_bound {
    double  seconds;
    int64_t bytes;    // of the stage that needs most; of a layout that does not fit, of a stage that shows it
    // How far it is known: stages that were looked at; the turns of all chunks, and what stages do behind them.
    int64_t            stages;
    struct sweep_turn *turns;
    double            *rest;
};
void   sweep_free_bound(struct sweep_bound *bound);
status sweep_find_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine);
// Looks at one more stage of a bound that was opened.
status sweep_refine_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine);

// Whether a rank with so many bytes fits the device; true where [hardware] does not know the device's memory.
bool sweep_fits(const struct hardware_config *hardware, int64_t bytes);

#endif
