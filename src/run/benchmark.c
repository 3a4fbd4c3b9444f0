// SPDX-License-Identifier: MIT
// Reads the job that all ranks of a run share.
#include "gswbench/benchmark.h"
#include "thresholds.h"

#include <inttypes.h>
#include <string.h>

#include "internal.h"

// If the layout fits another number of ranks, the error is the launch, not the layout.
static status check_ranks(const struct config *config, int64_t ranks, const struct text_buffer *errors)
{
    struct mesh mesh;
    status      own   = mesh_init(&mesh, &config->parallel, ranks);
    bool        is_so = failed(&own) && errors->text != NULL && strstr(errors->text, own.text) != NULL;
    status      other = mesh_init(&mesh, &config->parallel, 0);
    if (!is_so || failed(&other)) {
        return OK;
    }
    return fail_as(EXIT_LAUNCH,
                   "%" PRId64 " rank%s launched, but [parallel] needs %s%" PRId64
                   ": launch that many (mpirun -np, srun -n; --comm local needs no launcher), or change [parallel]",
                   ranks, ranks == 1 ? " was" : "s were", mesh_has_auto(&config->parallel) ? "a multiple of " : "",
                   mesh.world);
}

static status read_job(struct job *job, const struct job_selection *selection, struct text_buffer *errors)
{
    status read   = job_read(job, selection, errors);
    status launch = OK;
    if (failed(&read) && comm_launched_ranks() > 0) {
        launch = check_ranks(&job->config, selection->ranks, errors);
    }
    if (failed(&launch)) {
        text_free(errors);    // consequences of the launch error
        return launch;
    }
    return read;
}

status benchmark_read(struct benchmark *benchmark, const struct job_selection *selection, struct text_buffer *errors)
{
    struct job_selection launched = *selection;
    TRY(launch_count_ranks(&launched, errors));
    TRY(read_job(&benchmark->job, &launched, errors));
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
