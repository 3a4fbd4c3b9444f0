// SPDX-License-Identifier: MIT
// Searches layouts best-first, by a lower bound of the step time. The first bound of a layout is rough: the cost of one
// layer, which layouts with equal sharding of layers share. Then it gets a bound from its own plans, and last its exact
// prediction. The search ends when no bound is below the slowest of the SWEEP_BEST fastest predictions.
//
// Threads share the work; the result does not depend on their number.
#include "internal.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"

enum { BATCH = 16 };    // layouts that threads examine between two updates of the best layouts

struct candidate {
    int64_t                   layout;
    const struct sweep_layer *layer;       // cost of one layer of the layout
    int                       looks;       // number of times that threads have examined it
    bool                      is_exact;    // the layout has its exact prediction
    status                    support;
    struct sweep_bound        bound;
    struct prediction         prediction;
};

// The cost of a layer, for all layouts that shard a layer in the same way. request: the first of these layouts.
struct shared_layer {
    const struct plan_request *request;
    struct sweep_layer         layer;
};

// Candidates that still need a tighter bound or a prediction, as a binary min-heap ordered by their bound.
struct queue {
    struct candidate **items;
    int64_t            count;
};

struct work {
    struct sweep *sweep;
    void        **items;
    int64_t       count;
    void (*do_one)(const struct sweep *sweep, void *item);
    atomic_int_fast64_t next;
};

static bool serve_one(struct work *work)
{
    int64_t i = atomic_fetch_add(&work->next, 1);
    if (i >= work->count) {
        return false;
    }
    work->do_one(work->sweep, work->items[i]);
    return true;
}

static void *serve(void *argument)
{
    while (serve_one(argument)) {
    }
    return NULL;
}

// Runs in the caller's thread: takes items as the other threads do, and calls goes_on after each. If goes_on returns
// false, no thread gets another item.
static void serve_and_ask(struct work *work)
{
    struct sweep *sweep = work->sweep;
    while (serve_one(work)) {
        if (sweep->goes_on != NULL && !sweep->goes_on(sweep->state, sweep)) {
            sweep->is_stopped = true;
            atomic_fetch_add(&work->next, work->count);
        }
    }
}

static void do_all(struct work *work)
{
    int64_t    helpers = (work->sweep->threads < work->count ? work->sweep->threads : work->count) - 1;
    pthread_t *threads = memory_allocate((size_t)(helpers > 0 ? helpers : 1) * sizeof(*threads));
    for (int64_t i = 0; i < helpers; i++) {
        if (pthread_create(&threads[i], NULL, serve, work) != 0) {
            FATAL(EXIT_INTERNAL, "no thread for a sweep");
        }
    }
    serve_and_ask(work);
    for (int64_t i = 0; i < helpers; i++) {
        pthread_join(threads[i], NULL);
    }
    free(threads);
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

static bool is_before(const struct candidate *a, const struct candidate *b)
{
    return a->bound.seconds != b->bound.seconds ? a->bound.seconds < b->bound.seconds : a->layout < b->layout;
}

static void queue_add(struct queue *queue, struct candidate *candidate)
{
    int64_t place = queue->count++;
    while (place > 0 && is_before(candidate, queue->items[(place - 1) / 2])) {
        queue->items[place] = queue->items[(place - 1) / 2];
        place               = (place - 1) / 2;
    }
    queue->items[place] = candidate;
}

static struct candidate *queue_take(struct queue *queue)
{
    struct candidate *first = queue->items[0], *moved = queue->items[--queue->count];
    int64_t           place = 0;
    for (int64_t child = 1; child < queue->count; child = 2 * place + 1) {
        child += child + 1 < queue->count && is_before(queue->items[child + 1], queue->items[child]);
        if (!is_before(queue->items[child], moved)) {
            break;
        }
        queue->items[place] = queue->items[child];
        place               = child;
    }
    queue->items[place] = moved;
    return first;
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

static void look_at_layer(const struct sweep *sweep, void *item)
{
    struct shared_layer *shared_layer = item;
    sweep_look_at_layer(&shared_layer->layer, shared_layer->request, sweep->machine);
}

// Computes the next tighter bound of the candidate, or its exact prediction if all pipeline stages have been examined.
static void look(const struct sweep *sweep, void *item)
{
    struct candidate          *candidate = item;
    const struct plan_request *layout    = &sweep->layouts[candidate->layout];
    candidate->looks++;
    if (candidate->bound.actions == NULL) {
        sweep_find_actions(&candidate->bound, candidate->layer, layout, sweep->machine);
    } else if (candidate->bound.stages < layout->mesh.size[AXIS_PP]) {
        candidate->support = sweep_refine_bound(&candidate->bound, layout, sweep->machine);
    } else {
        candidate->support  = predict(&candidate->prediction, layout, sweep->machine);
        candidate->is_exact = true;
    }
}

// Returns the index in all[] of the layer that the request shares with earlier layouts. If no earlier layout shards a
// layer in the same way, adds an entry for the request.
static int64_t find_shared_layer(struct shared_layer *all, int64_t *count, const struct plan_request *request)
{
    int64_t place = 0;
    while (place < *count && !sweep_is_cut_alike(all[place].request, request)) {
        place++;
    }
    if (place == *count) {
        all[(*count)++].request = request;
    }
    return place;
}

// Queues the predictable layouts with their rough bounds. The caller allocates `shared` with one entry per layout.
static void fill(struct queue *queue, struct sweep *sweep, struct candidate *candidates, struct shared_layer *shared)
{
    int64_t                      *layer_of     = memory_allocate((size_t)sweep->layout_count * sizeof(*layer_of));
    void                        **items        = memory_allocate((size_t)sweep->layout_count * sizeof(*items));
    int64_t                       shared_count = 0;
    const struct hardware_config *hardware     = sweep->machine->hardware;
    for (int64_t i = 0; i < sweep->layout_count; i++) {
        candidates[i] =
            (struct candidate){.layout = i, .support = predict_supports(&sweep->layouts[i], sweep->machine->hardware)};
        if (failed(&candidates[i].support)) {
            refuse(sweep, candidates[i].support.text);
        } else {
            layer_of[i] = find_shared_layer(shared, &shared_count, &sweep->layouts[i]);
        }
    }
    for (int64_t i = 0; i < shared_count; i++) {
        items[i] = &shared[i];
    }
    do_all(&(struct work){.sweep = sweep, .items = items, .count = shared_count, .do_one = look_at_layer});
    for (int64_t i = 0; i < sweep->layout_count && !sweep->is_stopped; i++) {
        if (failed(&candidates[i].support)) {
            continue;
        }
        struct sweep_bound rough    = sweep_find_rough_bound(&shared[layer_of[i]].layer, &sweep->layouts[i]);
        candidates[i].layer         = &shared[layer_of[i]].layer;
        candidates[i].bound.seconds = rough.seconds;
        candidates[i].bound.bytes   = sweep_state_bytes(&sweep->layouts[i]);
        if (hardware_holds(hardware, rough.bytes + hardware_context_bytes(hardware))) {
            queue_add(queue, &candidates[i]);
        } else {
            sweep->too_large++;
        }
    }
    free(layer_of);
    free(items);
}

// Decides about an examined candidate: rejects it, queues it again, or adds it to the best layouts. Drops a candidate
// that was not examined because goes_on stopped the sweep.
static status place(struct sweep *sweep, struct queue *queue, struct candidate *candidate, int looks)
{
    const struct hardware_config *hardware = sweep->machine->hardware;
    if (candidate->looks == looks) {
        return OK;
    }
    int64_t bytes = candidate->is_exact ? predict_device_bytes(&candidate->prediction, sweep->machine->software)
                                        : candidate->bound.bytes;
    sweep->predicted += candidate->is_exact;
    TRY(candidate->support);
    if (!hardware_holds(hardware, bytes)) {
        sweep->too_large++;
    } else if (candidate->is_exact) {
        add(sweep, candidate);
    } else {
        queue_add(queue, candidate);
    }
    return OK;
}

// Whether a queued layout can still be among the best.
static bool has_next(const struct sweep *sweep, const struct queue *queue)
{
    double slowest = sweep->best_count < SWEEP_BEST ? INFINITY : sweep->best[SWEEP_BEST - 1].prediction.step_seconds;
    return queue->count > 0 && queue->items[0]->bound.seconds <= slowest;
}

static status look_at_next(struct sweep *sweep, struct queue *queue)
{
    void       *items[BATCH];
    int         looks[BATCH];
    struct work work = {.sweep = sweep, .items = items, .do_one = look};
    while (work.count < BATCH && has_next(sweep, queue)) {
        struct candidate *candidate = queue_take(queue);
        looks[work.count]           = candidate->looks;
        items[work.count++]         = candidate;
    }
    do_all(&work);
    for (int64_t i = 0; i < work.count; i++) {
        TRY(place(sweep, queue, items[i], looks[i]));
    }
    return OK;
}

status sweep_run(struct sweep *sweep)
{
    size_t               count      = (size_t)sweep->layout_count;
    struct candidate    *candidates = memory_allocate(count * sizeof(*candidates));
    struct shared_layer *shared     = memory_allocate(count * sizeof(*shared));
    struct queue         queue      = {.items = memory_allocate(count * sizeof(*queue.items))};
    status               result     = OK;
    fill(&queue, sweep, candidates, shared);
    while (!sweep->is_stopped && !failed(&result) && has_next(sweep, &queue)) {
        result = look_at_next(sweep, &queue);
    }
    sweep->fit = sweep->layout_count - sweep->refused - sweep->too_large;
    for (int64_t i = 0; i < sweep->layout_count; i++) {
        sweep_free_bound(&candidates[i].bound);
    }
    free(queue.items);
    free(shared);
    free(candidates);
    return result;
}
