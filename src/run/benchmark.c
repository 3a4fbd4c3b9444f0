// SPDX-License-Identifier: MIT
// Reads the job that all ranks of a run share, and runs a job several times in one launch.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/comparison.h"
#include "internal.h"

// If [parallel] is valid for another number of ranks than were launched, returns an error about the number of launched
// ranks.
static status check_ranks(const struct config *config, int64_t ranks, const struct text_buffer *errors)
{
    struct mesh mesh;
    status      own           = mesh_init(&mesh, &config->parallel, ranks);
    bool        is_mesh_error = failed(&own) && errors->text != NULL && strstr(errors->text, own.text) != NULL;
    status      needed        = mesh_init(&mesh, &config->parallel, 0);
    if (!is_mesh_error || failed(&needed)) {
        return OK;
    }
    return fail_as(EXIT_LAUNCH,
                   "%" PRId64 " rank%s launched, but [parallel] needs %s%" PRId64
                   ": launch that many (mpirun -np, srun -n; --comm local needs no launcher), or change [parallel]",
                   ranks, ranks == 1 ? " was" : "s were", mesh_has_auto(&config->parallel) ? "a multiple of " : "",
                   mesh.world);
}

static status read_job(struct job *job, const struct job_selection *selection)
{
    status read   = job_read(job, selection);
    status launch = OK;
    if (failed(&read) && comm_launched_ranks() > 0) {
        launch = check_ranks(&job->config, selection->ranks, selection->errors);
    }
    if (failed(&launch)) {
        text_free(selection->errors);    // the other errors are consequences of this one
        return launch;
    }
    return read;
}

status benchmark_read(struct benchmark *benchmark, const struct job_selection *selection)
{
    struct job_selection launched = *selection;
    TRY(launch_count_ranks(&launched));
    TRY(read_job(&benchmark->job, &launched));
    TRY(benchmark->job.support);
    TRY(thresholds_check(&benchmark->job.config.run));
    struct text_stream text;
    text_stream_open(&text);
    config_write(&benchmark->job.config, text.file);
    text_stream_close(&text);
    benchmark->config_text  = text.data;
    benchmark->config_bytes = text.bytes;
    return OK;
}

// Adds a run to the table of repeated runs, unless its figures must not be shown, for example because it is INVALID.
static void conclude(void *context, struct result *result)
{
    if (result_is_shown(result)) {
        table_add(context, result);
    }
}

// Returns whether the job may run again. A stopped or wrong run ends the repetition; a missed threshold does not.
static bool may_repeat(const status *result)
{
    return !failed(result) &&
           (result->exit_code == EXIT_VALID || result->exit_code == EXIT_GATE || result->exit_code == EXIT_UNDECIDED);
}

status benchmark_repeat_rank(const void *shared, struct comm *comm)
{
    const struct repeated_benchmark *repeated  = shared;
    struct benchmark                 benchmark = repeated->benchmark;
    struct table                     table     = {.rows = NULL};
    int                              code      = EXIT_VALID;
    status                           result    = OK;
    benchmark.conclude                         = conclude;
    benchmark.context                          = &table;
    for (int64_t i = 0; i < repeated->times && may_repeat(&result); i++) {
        result = benchmark_run_rank(&benchmark, comm);
        code   = code == EXIT_VALID || result.exit_code == EXIT_GATE ? result.exit_code : code;
    }
    if (comm->topology.rank == 0 && table.run_count > 1) {
        table_finish(&table);
        table_write(&table, grid_write_text, stdout);
    }
    table_free(&table);
    result.exit_code = may_repeat(&result) ? code : result.exit_code;
    return result;
}
