// SPDX-License-Identifier: MIT
// Bounds of all layouts first; then prices them in the order of their bounds, until no bound is below the slowest of
// the best. Threads share the layouts; what comes out does not depend on their number.
#include "gswbench/sweep.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/text.h"

enum { BATCH = 16 };    // layouts that are priced between two looks at the best ones

struct candidate {
    int64_t            layout;
    bool               is_priced;
    status             support;
    struct sweep_bound bound;
    struct prediction  prediction;
};

struct candidate_loop {
    struct sweep     *sweep;
    struct candidate *candidates;
    int64_t           count;
    void (*do_one)(const struct sweep *sweep, struct candidate *candidate);
    int64_t            *counter;    // of the sweep
    atomic_int_fast64_t next, done;
};

static bool serve_one(struct candidate_loop *loop)
{
    int64_t i = atomic_fetch_add(&loop->next, 1);
    if (i >= loop->count) {
        return false;
    }
    loop->do_one(loop->sweep, &loop->candidates[i]);
    atomic_fetch_add(&loop->done, 1);
    return true;
}

static void *serve(void *argument)
{
    while (serve_one(argument)) {
    }
    return NULL;
}

// Whoever is to stop the sweep takes all candidates that are left from the threads.
static void serve_and_ask(struct candidate_loop *loop)
{
    struct sweep *sweep  = loop->sweep;
    int64_t       before = *loop->counter;
    while (serve_one(loop)) {
        *loop->counter = before + loop->done;
        if (sweep->goes_on != NULL && !sweep->goes_on(sweep->state, sweep)) {
            sweep->is_stopped = true;
            atomic_fetch_add(&loop->next, loop->count);
        }
    }
}

static void for_each(struct candidate_loop *loop)
{
    int64_t    before  = *loop->counter;
    int64_t    helpers = (loop->sweep->threads < loop->count ? loop->sweep->threads : loop->count) - 1;
    pthread_t *threads = memory_allocate((size_t)(helpers > 0 ? helpers : 1) * sizeof(*threads));
    for (int64_t i = 0; i < helpers; i++) {
        if (pthread_create(&threads[i], NULL, serve, loop) != 0) {
            FATAL(EXIT_INTERNAL, "no thread for a sweep");
        }
    }
    serve_and_ask(loop);
    for (int64_t i = 0; i < helpers; i++) {
        pthread_join(threads[i], NULL);
    }
    *loop->counter = before + loop->done;
    free(threads);
}

static void find_bound(const struct sweep *sweep, struct candidate *candidate)
{
    const struct plan_request *layout = &sweep->layouts[candidate->layout];
    candidate->support                = predict_supports(layout, sweep->machine->hardware);
    if (!failed(&candidate->support)) {
        candidate->support = sweep_find_bound(&candidate->bound, layout, sweep->machine);
    }
}

static void price(const struct sweep *sweep, struct candidate *candidate)
{
    candidate->support   = predict(&candidate->prediction, &sweep->layouts[candidate->layout], sweep->machine);
    candidate->is_priced = true;
}

static void refuse(struct sweep *sweep, const char *reason)
{
    int known = 0;
    while (known < sweep->refusal_count &&
           strncmp(sweep->refusals[known].text, reason, sizeof(sweep->refusals[known].text) - 1) != 0) {
        known++;
    }
    if (known == sweep->refusal_count && known < SWEEP_REFUSALS) {
        text_copy(sweep->refusals[known].text, sizeof(sweep->refusals[known].text), reason);
        sweep->refusal_count++;
    }
    if (known < SWEEP_REFUSALS) {
        sweep->refusals[known].layouts++;
    }
    sweep->refused++;
}

// Moves the layouts that fit to the front; returns their number.
static int64_t sort_out(struct sweep *sweep, struct candidate *candidates)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < sweep->layout_count; i++) {
        if (failed(&candidates[i].support)) {
            refuse(sweep, candidates[i].support.text);
        } else if (!sweep_fits(sweep->machine->hardware, candidates[i].bound.bytes)) {
            sweep->too_large++;
        } else {
            candidates[kept++] = candidates[i];
        }
    }
    return kept;
}

static int by_bound(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->bound.seconds != b->bound.seconds) {
        return a->bound.seconds < b->bound.seconds ? -1 : 1;
    }
    return a->layout < b->layout ? -1 : 1;
}

static bool is_faster(const struct candidate *candidate, const struct sweep_choice *choice)
{
    double own = candidate->prediction.step_seconds, other = choice->prediction.step_seconds;
    return own != other ? own < other : candidate->layout < choice->layout;
}

static void add(struct sweep *sweep, const struct candidate *candidate)
{
    int place = sweep->best_count;
    while (place > 0 && is_faster(candidate, &sweep->best[place - 1])) {
        place--;
    }
    if (place == SWEEP_BEST) {
        return;
    }
    sweep->best_count += sweep->best_count < SWEEP_BEST;
    for (int i = sweep->best_count - 1; i > place; i--) {
        sweep->best[i] = sweep->best[i - 1];
    }
    sweep->best[place] = (struct sweep_choice){.layout = candidate->layout, .prediction = candidate->prediction};
}

// What is slower than that at least is none of the best.
static double limit(const struct sweep *sweep)
{
    return sweep->best_count < SWEEP_BEST ? INFINITY : sweep->best[SWEEP_BEST - 1].prediction.step_seconds;
}

// Of those that were priced, also in a batch that was not finished.
static status add_priced(struct sweep *sweep, const struct candidate *candidates, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (!candidates[i].is_priced) {
            continue;
        }
        TRY(candidates[i].support);
        if (sweep_fits(sweep->machine->hardware, candidates[i].prediction.largest_bytes)) {
            add(sweep, &candidates[i]);
        } else {
            sweep->fit--;
            sweep->too_large++;
        }
    }
    return OK;
}

static status price_all(struct sweep *sweep, struct candidate *candidates)
{
    int64_t end = sweep->fit;
    for (int64_t first = 0; first < end && candidates[first].bound.seconds <= limit(sweep) && !sweep->is_stopped;
         first += BATCH) {
        struct candidate_loop loop = {.sweep      = sweep,
                                      .candidates = candidates + first,
                                      .count      = end - first < BATCH ? end - first : BATCH,
                                      .do_one     = price,
                                      .counter    = &sweep->priced};
        for_each(&loop);
        TRY(add_priced(sweep, candidates + first, loop.count));
    }
    return OK;
}

status sweep_run(struct sweep *sweep)
{
    struct candidate *candidates = memory_allocate((size_t)sweep->layout_count * sizeof(*candidates));
    status            result     = OK;
    for (int64_t i = 0; i < sweep->layout_count; i++) {
        candidates[i].layout    = i;
        candidates[i].is_priced = false;
    }
    struct candidate_loop bounds = {.sweep      = sweep,
                                    .candidates = candidates,
                                    .count      = sweep->layout_count,
                                    .do_one     = find_bound,
                                    .counter    = &sweep->bounded};
    for_each(&bounds);
    if (!sweep->is_stopped) {
        sweep->fit = sort_out(sweep, candidates);
        qsort(candidates, (size_t)sweep->fit, sizeof(*candidates), by_bound);
        result = price_all(sweep, candidates);
    }
    free(candidates);
    return result;
}
