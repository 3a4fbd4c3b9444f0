// SPDX-License-Identifier: MIT
// Selects the steps to run twice: all (full), or the first (cold device), the last (hot) and two random ones (quick).
#include <stdio.h>

#include "gswbench/clock.h"
#include "gswbench/data.h"
#include "gswbench/random.h"
#include "internal.h"

static const uint64_t repeated_steps_stream = UINT64_MAX - 2;

static enum run_verify level_of(const struct steps *steps)
{
    return (enum run_verify)steps->benchmark->job.config.run.verify;
}

// Draws one step from each half between the first and the last.
static bool is_drawn(const struct steps *steps, int64_t index)
{
    const struct run_config *run   = &steps->benchmark->job.config.run;
    uint64_t                 key   = random_key((uint64_t)run->seed, repeated_steps_stream);
    int64_t                  inner = run->steps - 2, half = inner / 2, first = -1, second = -1;
    if (half > 0) {
        first = 1 + random_below(key, 0, 0, (uint32_t)half);
    }
    if (inner > 0) {
        second = 1 + half + random_below(key, 0, 1, (uint32_t)(inner - half));
    }
    return index == first || index == second;
}

bool validation_repeats(const struct steps *steps, int64_t index)
{
    switch (level_of(steps)) {
    case VERIFY_FULL:
        return true;
    case VERIFY_QUICK:
        return index == 0 || index == steps->result->planned_steps - 1 || is_drawn(steps, index);
    case VERIFY_LIGHT:
    case VERIFY_OFF:
        return false;
    }
    return false;
}

static int64_t count_repeated(const struct steps *steps)
{
    int64_t count = 0;
    for (int64_t i = 0; i < steps->result->planned_steps; i++) {
        count += validation_repeats(steps, i);
    }
    return count;
}

static void beat(void *context)
{
    const struct steps *steps = context;
    if (steps->hang_watch != NULL) {
        watch_beat(steps->hang_watch);
    }
}

void validation_prepare(struct steps *steps, struct backend *backend)
{
    const struct validation_setup setup = {.plan         = steps->plan,
                                           .step         = steps->step,
                                           .comm         = steps->comm,
                                           .result       = steps->result,
                                           .kin          = environment_fingerprint(backend),
                                           .is_full      = level_of(steps) == VERIFY_FULL,
                                           .sample_bytes = VALIDATION_SAMPLE_BYTES,
                                           .beat         = beat,
                                           .context      = steps};
    if (!steps->result->computes) {
        return;
    }
    steps->validation = validation_open(&setup);
    if (level_of(steps) != VERIFY_OFF) {
        steps->result->verification = validation_expect(&setup, backend->ops->is_device, count_repeated(steps));
    }
}

// Hides verification runs from profilers.
static void begin_beside(struct steps *steps, int64_t step, bool is_repetition)
{
    step_set_watch(steps->step, NULL);
    fault_begin(steps, step, is_repetition);
    steps->verified = clock_seconds();
}

static void end_beside(struct steps *steps)
{
    fault_end(steps);
    step_set_watch(steps->step, steps->ranges != NULL ? &steps->watch : NULL);
    steps->result->verification.seconds += clock_seconds() - steps->verified;
}

bool validation_of_parts(struct steps *steps, int64_t step)
{
    if (steps->validation == NULL || level_of(steps) == VERIFY_OFF) {
        return true;
    }
    begin_beside(steps, step, step >= 0);
    bool has_ops = step < 0 || level_of(steps) == VERIFY_FULL;
    bool is_right =
        (!has_ops || validation_examine_ops(steps->validation, step)) && validation_examine(steps->validation, step);
    end_beside(steps);
    return is_right;
}

void validation_start(struct steps *steps, int64_t index)
{
    bool repeats = validation_repeats(steps, index);
    if (steps->validation == NULL) {
        return;
    }
    if (repeats) {
        steps_enter(steps, index == 0 ? WATCH_OPENING : WATCH_STEP, index);
        steps_fill(steps, index);
        begin_beside(steps, index, true);
    }
    validation_begin(steps->validation, index, repeats);
    if (repeats) {
        end_beside(steps);
    }
}

bool validation_end(struct steps *steps, int64_t index, bool is_finite)
{
    bool is_right = true;
    if (steps->validation == NULL || (is_finite && !validation_repeats(steps, index))) {
        return true;
    }
    steps_enter(steps, WATCH_STEP, index);
    begin_beside(steps, index, true);
    if (is_finite) {
        is_right = validation_repeat(steps->validation, index);
    } else {
        validation_find(steps->validation, index);
        is_right = false;
    }
    end_beside(steps);
    steps_enter(steps, WATCH_BETWEEN, index);
    return is_right;
}
