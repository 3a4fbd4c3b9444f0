// SPDX-License-Identifier: MIT
// Estimates the error of a predicted step time. Each input is changed by its standard deviation, one input at a time.
// The estimate is the root of the sum of the squared changes of the step time, as for independent errors. The sum
// includes the prediction error that was fitted for this GPU.
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/fatal.h"
#include "internal.h"

// Once each pipeline stage has a microbatch, step time is linear in the number of microbatches. So a long step is
// extrapolated from two short steps.
enum { STEPS = 2 };

// Maximum number of threads. Each thread holds its own plans, so this limits the memory.
enum { THREADS_MAX = 4 };

// A move changes one option value, or the times of all measured ops together, by one standard deviation.
struct move {
    const char          *section;
    const struct option *option;     // NULL: the times of all measured ops
    double               percent;    // change of the step time
};

struct moves {
    const struct plan_request *request;
    const struct machine      *machine;
    struct move               *list;
    int                        count;
    atomic_int                 next;
};

// State of a worker thread: its own plans and option values. The thread takes one move at a time from the list.
struct probe {
    struct moves           *moves;
    struct hardware_config  hardware;
    struct software_config  software;
    struct machine          machine;
    struct plan_request     requests[STEPS];
    struct predict_pipeline pipelines[STEPS];
    int                     step_count;
    int64_t                 microbatches;
    double                  step_seconds;    // step time with unchanged values
    status                  result;
};

static status probe_open(struct probe *probe, const struct plan_request *request)
{
    int64_t actions =
        request->train.overlap_microbatches != 0 ? 2 : 1;    // microbatches per stage until the pipeline is full
    int64_t enough = request->mesh.size[AXIS_PP] * actions, all = request->train.accumulation;
    status  result      = OK;
    probe->microbatches = all;
    probe->step_count   = all > STEPS * enough ? STEPS : 1;
    for (int i = 0; i < probe->step_count && !failed(&result); i++) {
        probe->requests[i] = plan_shorten(request, probe->step_count > 1 ? (i + 1) * enough : all);
        result             = predict_pipeline_init(&probe->pipelines[i], &probe->requests[i]);
    }
    return result;
}

// Predicts the step time with the current values. The wait for the slowest replica and the overhead per step do not
// grow linearly with the microbatches, so they are left out of the short steps and added to the whole step.
static status predict_step(struct probe *probe, double *seconds)
{
    double parts[STEPS] = {0.0};
    for (int i = 0; i < probe->step_count; i++) {
        struct prediction prediction = {.step_seconds = 0.0};
        TRY(predict_time_pipeline(&prediction, &probe->pipelines[i], &probe->requests[i], &probe->machine));
        parts[i] = prediction.step_seconds - prediction.straggler_seconds - probe->software.step_overhead.value;
    }
    double whole = parts[0];
    if (probe->step_count > 1) {
        double first  = (double)probe->requests[0].train.accumulation,
               second = (double)probe->requests[1].train.accumulation;
        whole += (parts[1] - parts[0]) * ((double)probe->microbatches - first) / (second - first);
    }
    *seconds = predict_whole_seconds(probe->moves->request, &probe->machine, whole);
    return OK;
}

// Sets *percent to the change of the step time caused by the value that the caller has changed.
static status compare(struct probe *probe, double *percent)
{
    double moved;
    TRY(predict_step(probe, &moved));
    *percent = 100.0 * (moved / probe->step_seconds - 1.0);
    return OK;
}

static status move_value(struct probe *probe, struct move *move)
{
    bool             is_hardware = strcmp(move->section, "hardware") == 0;
    void            *section     = is_hardware ? (void *)&probe->hardware : (void *)&probe->software;
    struct quantity *quantity    = option_quantity(move->option, section);
    double           value       = quantity->value;
    quantity->value *= 1.0 + quantity->spread_percent / 100.0;
    status result   = compare(probe, &move->percent);
    quantity->value = value;
    return result;
}

static status move_measured(struct probe *probe, struct move *move)
{
    const struct measured_ops *measured = probe->machine.measured;
    struct measured_ops        moved    = {.ops   = memory_allocate((size_t)measured->count * sizeof(*moved.ops)),
                                           .count = measured->count};
    for (int32_t i = 0; i < measured->count; i++) {
        moved.ops[i] = measured->ops[i];
        moved.ops[i].seconds.value *= 1.0 + moved.ops[i].seconds.spread_percent / 100.0;
    }
    probe->machine.measured = &moved;
    status result           = compare(probe, &move->percent);
    probe->machine.measured = measured;
    measured_free(&moved);
    return result;
}

static void *serve(void *argument)
{
    struct probe *probe     = argument;
    struct moves *moves     = probe->moves;
    probe->machine          = *moves->machine;
    probe->hardware         = *moves->machine->hardware;
    probe->software         = *moves->machine->software;
    probe->machine.hardware = &probe->hardware;
    probe->machine.software = &probe->software;
    probe->result           = probe_open(probe, moves->request);
    if (!failed(&probe->result)) {
        probe->result = predict_step(probe, &probe->step_seconds);
    }
    while (!failed(&probe->result)) {
        int i = atomic_fetch_add(&moves->next, 1);
        if (i >= moves->count) {
            break;
        }
        struct move *move = &moves->list[i];
        probe->result     = move->option != NULL ? move_value(probe, move) : move_measured(probe, move);
    }
    for (int i = 0; i < probe->step_count; i++) {
        predict_pipeline_free(&probe->pipelines[i]);
    }
    return NULL;
}

// Computes the change of the step time for every move (change of an input), in several threads. The result does not
// depend on the number of threads.
static status serve_all(struct moves *moves)
{
    struct probe probes[THREADS_MAX];
    pthread_t    threads[THREADS_MAX];
    int          usable = cores_usable(), count = usable < THREADS_MAX ? usable : THREADS_MAX;
    status       result = OK;
    for (int i = 0; i < count; i++) {
        probes[i] = (struct probe){.moves = moves};
        if (i > 0 && pthread_create(&threads[i], NULL, serve, &probes[i]) != 0) {
            FATAL(EXIT_INTERNAL, "no thread for a range");
        }
    }
    serve(&probes[0]);
    for (int i = 0; i < count; i++) {
        if (i > 0) {
            pthread_join(threads[i], NULL);
        }
        result = failed(&result) ? result : probes[i].result;
    }
    return result;
}

static void add_move(struct moves *moves, const char *section, const struct option *option)
{
    LIST_APPEND(moves->list, moves->count, (struct move){.section = section, .option = option});
}

static void list_values(struct moves *moves, const char *name, const struct option *options, void *section)
{
    for (const struct option *option = options; option->key != NULL; option++) {
        const struct quantity *quantity = option->type == OPTION_QUANTITY ? option_quantity(option, section) : NULL;
        if (quantity != NULL && quantity->value * quantity->spread_percent != 0.0) {
            add_move(moves, name, option);
        }
    }
}

static void note(struct predict_range *range, double *squares, const char *section, const char *key, double percent)
{
    *squares += percent * percent;
    if (range->effect_count < PREDICT_EFFECTS_MAX) {
        range->effects[range->effect_count++] = (struct predict_effect){section, key, percent};
    }
}

// Adds the prediction error that was fitted for this GPU: the part of the error that the uncertainty of the other
// values does not explain.
static void note_prediction_error(struct predict_range *range, double *squares, const struct moves *moves)
{
    const struct hardware_config *hardware    = moves->machine->hardware;
    bool                          has_experts = moves->request->model.experts > 0;
    const struct quantity *error = has_experts ? &hardware->expert_prediction_error : &hardware->prediction_error;
    if (error->value > 0.0) {
        note(range, squares, "hardware", has_experts ? "expert_prediction_error" : "prediction_error", error->value);
    }
}

status predict_range(struct predict_range *range, const struct plan_request *request, const struct machine *machine)
{
    struct hardware_config hardware = *machine->hardware;
    struct software_config software = *machine->software;
    struct moves           moves    = {.request = request, .machine = machine};
    double                 squares  = 0.0;
    *range                          = (struct predict_range){.percent = 0.0};
    list_values(&moves, "hardware", hardware_options, &hardware);
    list_values(&moves, "software", software_options, &software);
    int values = moves.count;
    if (machine->measured != NULL && machine->measured->count > 0) {
        add_move(&moves, "measured", NULL);
    }
    status result = serve_all(&moves);
    for (int i = 0; i < values && !failed(&result); i++) {
        note(range, &squares, moves.list[i].section, moves.list[i].option->key, moves.list[i].percent);
    }
    note_prediction_error(range, &squares, &moves);
    for (int i = values; i < moves.count && !failed(&result); i++) {
        note(range, &squares, "measured", "all ops", moves.list[i].percent);
    }
    range->percent = sqrt(squares);
    free(moves.list);
    return result;
}
