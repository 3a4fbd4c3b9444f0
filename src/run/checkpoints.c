// SPDX-License-Identifier: MIT
// Loads the checkpoint from which a run starts, and saves checkpoints between steps.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/report.h"
#include "gswbench/statistics.h"
#include "internal.h"

static const struct checkpoint_config *find_config(const struct steps *steps)
{
    return &steps->benchmark->job.config.checkpoint;
}

struct planned_saves {
    const struct config *config;
    int64_t              first_step;
};

// Returns whether the run may save this step. With run.until, each step from run.steps on may be the last one.
static bool may_save(const void *context, int64_t step)
{
    const struct planned_saves *planned = context;
    const struct run_config    *run     = &planned->config->run;
    int64_t                     own     = step - planned->first_step;
    return own >= 1 && own <= run_steps_max(run) &&
           checkpoint_config_saves(&planned->config->checkpoint, step, own >= run->steps);
}

status checkpoints_open(struct catalogue **loaded, const struct config *config, const struct plan *plan,
                        struct comm *comm)
{
    const struct checkpoint_config *checkpoint = &config->checkpoint;
    status                          own        = OK;
    *loaded                                    = NULL;
    if (checkpoint->load[0] != '\0') {
        own = checkpoint_open_shared(loaded, checkpoint->load, plan, checkpoint->verify != 0, comm);
    }
    if (!failed(&own) && comm->topology.rank == 0 && checkpoint->save[0] != '\0') {
        const struct planned_saves planned = {config, *loaded != NULL ? checkpoint_origin(*loaded)->step : 0};
        own                                = checkpoint_check_target(checkpoint->save, may_save, &planned);
    }
    return comm_agree(comm, own);
}

static const char *data_name(const struct run_config *run, char text[16])
{
    option_print(option_find(run_options, "data"), run, text, 16);
    return text;
}

// A resumed run uses the data of [run]. Adds a note if the checkpoint was trained on other data, or with another seed
// or number of samples.
static void note_origin(struct steps *steps, const struct checkpoint_origin *origin)
{
    const struct run_config *run = &steps->benchmark->job.config.run;
    char                     data[16];
    int64_t                  samples = origin->step * steps->plan->train.global_batch;
    if (origin->step == 0) {
        return;
    }
    if (origin->seed != run->seed || strcmp(origin->data, data_name(run, data)) != 0 || origin->samples != samples) {
        result_note(steps->result, NOTE("other-data"),
                    "the checkpoint was trained on %" PRId64 " samples of data %s with seed %" PRId64
                    "; this run continues at sample %" PRId64 " of %s with seed %" PRId64,
                    origin->samples, origin->data, origin->seed, samples, data, run->seed);
    }
}

static void enter_file(void *context, const char *path)
{
    watch_enter_file(context, path);
}

static void move_file(void *context)
{
    watch_move(context);
}

static struct checkpoint_watch make_watch(const struct steps *steps)
{
    return (struct checkpoint_watch){enter_file, move_file, steps->hang_watch};
}

// Gathers the cost of a load or save from all ranks: the maximum of their times, and the sum of their bytes.
static void gather_cost(struct steps *steps, const struct checkpoint_cost *own, double *seconds, double *stalled,
                        double *bytes)
{
    int                     ranks = steps->comm->topology.ranks;
    struct checkpoint_cost *all   = comm_gather(steps->comm, own, sizeof(*own));
    *seconds = *stalled = *bytes = 0;
    for (int rank = 0; rank < ranks; rank++) {
        *seconds = fmax(*seconds, all[rank].seconds);
        *stalled = fmax(*stalled, all[rank].stalled);
        *bytes += (double)all[rank].bytes;
    }
    free(all);
}

static bool prints(const struct steps *steps)
{
    const struct benchmark *benchmark = steps->benchmark;
    return steps->comm->topology.rank == 0 && !benchmark->json && !benchmark->is_quiet;
}

status checkpoints_begin(struct steps *steps)
{
    struct result_checkpoint *whole = &steps->result->checkpoint;
    double                    began = clock_wall_seconds();
    steps->checkpoints.beside =
        memory_allocate((size_t)steps->result->planned_steps * sizeof(*steps->checkpoints.beside));
    if (steps->checkpoints.loaded == NULL) {
        data_initialise(steps->step, steps->plan, (uint64_t)steps->benchmark->job.config.run.seed);
        return OK;
    }
    const struct checkpoint_origin *origin = checkpoint_origin(steps->checkpoints.loaded);
    struct checkpoint_watch         watch  = make_watch(steps);
    data_initialise_state(steps->step, steps->plan);
    data_initialise_adapters(steps->step, steps->plan, (uint64_t)steps->benchmark->job.config.run.seed);
    TRY(comm_agree(steps->comm, checkpoint_load(steps->checkpoints.loaded, steps->plan, steps->step, &watch,
                                                &steps->checkpoints.load)));
    watch_enter(steps->hang_watch, WATCH_OPENING, 0);
    step_make_weights(steps->step);
    double stalled;
    gather_cost(steps, &steps->checkpoints.load, &whole->load_seconds, &stalled, &whole->load_bytes);
    whole->load_bandwidth = whole->load_bytes / whole->load_seconds;
    whole->first_step     = origin->step;
    note_origin(steps, origin);
    if (prints(steps)) {
        report_write_load(steps->result, began, stdout);
    }
    return OK;
}

static void end_save(struct steps *steps)
{
    struct result_checkpoint *whole = &steps->result->checkpoint;
    steps->checkpoints.saved        = checkpoint_save_end(steps->checkpoints.saving, &steps->checkpoints.save);
    steps->checkpoints.saving       = NULL;
    if (!failed(&steps->checkpoints.saved)) {
        gather_cost(steps, &steps->checkpoints.save, &whole->save_seconds, &whole->stall_seconds, &whole->save_bytes);
        whole->save_bandwidth = whole->save_bytes / whole->save_seconds;
        whole->saves++;
        if (prints(steps)) {
            report_write_save(steps->result, steps->checkpoints.saving_step, steps->checkpoints.saving_began, stdout);
        }
    }
}

static void begin_save(struct steps *steps, int64_t step)
{
    const struct checkpoint_config *config = find_config(steps);
    const struct run_config        *run    = &steps->benchmark->job.config.run;
    struct checkpoint_target        target = {config->save, config->keep, config->asynchronous != 0, make_watch(steps)};
    struct checkpoint_origin        origin = {step, step * steps->plan->train.global_batch, run->seed, ""};
    data_name(run, origin.data);
    steps->checkpoints.saving_step  = step;
    steps->checkpoints.saving_began = clock_wall_seconds();
    steps->checkpoints.saved =
        checkpoint_save_begin(&steps->checkpoints.saving, steps->plan, steps->step, steps->comm, &target, &origin);
}

bool checkpoints_follow(struct steps *steps, int64_t index, bool is_last)
{
    int64_t step = steps->result->checkpoint.first_step + index + 1;
    // Saves nothing after a check has failed, so that a wrong checkpoint does not replace a good one.
    int32_t due =
        steps->result->verdict < VERDICT_INVALID && checkpoint_config_saves(find_config(steps), step, is_last);
    steps->comm->ops->share(steps->comm, &due, sizeof(due), 0);
    steps->checkpoints.beside[index] = steps->checkpoints.saving != NULL;
    if (steps->checkpoints.saving == NULL && due == 0) {
        return true;
    }
    watch_enter(steps->hang_watch, WATCH_SAVING, index);
    if (steps->checkpoints.saving != NULL &&
        (due != 0 || is_last ||
         comm_smallest(steps->comm, checkpoint_save_is_written(steps->checkpoints.saving)) > 0)) {
        end_save(steps);
    }
    if (due != 0 && !failed(&steps->checkpoints.saved)) {
        begin_save(steps, step);
        if (steps->checkpoints.saving != NULL && (is_last || find_config(steps)->asynchronous == 0)) {
            end_save(steps);
        }
    }
    watch_enter(steps->hang_watch, WATCH_BETWEEN, index);
    return !failed(&steps->checkpoints.saved);
}

static void beat(void *context)
{
    watch_beat(context);
}

status checkpoints_write_weights(struct steps *steps, const struct output_folder *folder)
{
    const struct checkpoint_watch watch = {NULL, beat, steps->hang_watch};
    return comm_agree(steps->comm, checkpoint_write(steps->plan, steps->step, steps->comm, folder, &watch));
}

void checkpoints_close(struct steps *steps)
{
    checkpoint_save_close(steps->checkpoints.saving);
    checkpoint_close(steps->checkpoints.loaded);
    free(steps->checkpoints.beside);
}

// Sets the median times of the steps with and without an overlapping save.
void checkpoints_judge(struct steps *steps)
{
    struct result            *result     = steps->result;
    struct result_checkpoint *whole      = &result->checkpoint;
    double                   *seconds[2] = {memory_allocate((size_t)result->step_count * sizeof(double)),
                                            memory_allocate((size_t)result->step_count * sizeof(double))};
    int64_t                   counts[2]  = {0, 0};
    for (int64_t i = result->planned_warmup; i < result->step_count; i++) {
        int beside                        = steps->checkpoints.beside[i];
        seconds[beside][counts[beside]++] = result->steps[i].seconds;
    }
    whole->steps_beside   = counts[1];
    whole->beside_seconds = counts[1] > 0 ? statistics_median(seconds[1], counts[1]) : 0;
    whole->other_seconds  = counts[0] > 0 ? statistics_median(seconds[0], counts[0]) : 0;
    free(seconds[0]);
    free(seconds[1]);
}

void checkpoints_describe(const struct steps *steps, struct result_rank *own)
{
    own->load_seconds = steps->checkpoints.load.seconds;
    own->load_bytes   = (double)steps->checkpoints.load.bytes;
    own->save_seconds = steps->checkpoints.save.seconds;
    own->save_bytes   = (double)steps->checkpoints.save.bytes;
}
