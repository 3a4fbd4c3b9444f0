// SPDX-License-Identifier: MIT
// gswbench calibrate: measures the ops of a configuration on this machine, and writes what predictions are made from.
#include "gswbench/calibrate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/fatal.h"
#include "gswbench/version.h"
#include "run.h"

enum { STEPS = 15, PASSES = 3 };
static const double round_seconds = 5e-3;

struct calibrate_arguments {
    struct run_arguments run;
    const char          *output;
};

static const struct flag flags[] = {
    CONFIG_FLAGS(calibrate_arguments, run.config),
    OVERRIDE_FLAG(calibrate_arguments, run.config.overrides, "--backend", "NAME", "run.backend",
                  "what computes: auto, cuda, host"),
    OVERRIDE_FLAG(calibrate_arguments, run.config.overrides, "--comm", "NAME", "run.communicator",
                  "what connects ranks: auto, nccl, mpi, or local for threads of this process"),
    TEXT_FLAG(calibrate_arguments, output, "-o", "FILE", "where to write the hardware profile"),
    END_FLAGS,
};

struct calibrate_shared {
    struct run_shared run;
    const char       *output;
};

struct rank {
    const struct calibrate_shared *shared;
    struct comm                   *comm;    // that it is started with, or nccl
    struct comm                    nccl;    // ops is NULL unless it is open
    struct run_peer               *peers;
    struct run_cores               cores;
    struct backend                 backend;    // ops is NULL until it is open
    struct sample_list             list;
    struct hardware_config         hardware;
    FILE                          *profile;    // of rank 0
};

static status open_backend(struct rank *rank)
{
    TRY(run_open_backend(&rank->backend, &rank->shared->run.job->config, &rank->comm->place, rank->cores.threads));
    if (rank->backend.ops == &backend_null) {
        return fail("[run] backend = null: it computes nothing that could be measured");
    }
    return OK;
}

static status open_place(struct rank *rank)
{
    const struct run_config *run  = &rank->shared->run.job->config.run;
    struct comm             *comm = rank->comm;
    int64_t                  sharers;
    TRY(run_meet(&rank->peers, &rank->shared->run, comm));
    rank->cores = run_share_cores(rank->peers, &comm->place, run->threads);
    TRY(run_agree(comm, open_backend(rank)));
    TRY(run_agree(comm, run_share_devices(comm, &rank->backend, run->ranks_per_device, &sharers)));
    TRY(run_connect(&rank->nccl, comm, &rank->backend, run, sharers));
    rank->comm = rank->nccl.ops != NULL ? &rank->nccl : comm;
    return OK;
}

static status measure(struct rank *rank)
{
    const struct job      *job   = rank->shared->run.job;
    struct calibrate_setup setup = {.request       = &job->request,
                                    .run           = &job->config.run,
                                    .backend       = &rank->backend,
                                    .comm          = rank->comm,
                                    .mesh          = &job->mesh,
                                    .cores         = rank->cores.cores,
                                    .core_ranks    = rank->cores.sharers,
                                    .has_cores     = (rank->cores.index + 1) * rank->cores.threads <= rank->cores.cores,
                                    .steps         = STEPS,
                                    .passes        = PASSES,
                                    .round_seconds = round_seconds};
    rank->hardware               = job->config.hardware;
    TRY(run_agree(rank->comm, calibrate_collect(&rank->list, &job->request, &setup.working_bytes)));
    TRY(run_agree(rank->comm, calibrate_steps(&rank->list, &setup)));
    TRY(run_agree(rank->comm, calibrate_transfers(&rank->list, &setup)));
    return run_agree(rank->comm, calibrate_machine(&rank->hardware, &rank->list, &setup));
}

// Where the values are from.
static void describe(struct rank *rank, struct text_buffer *text)
{
    const struct job        *job   = rank->shared->run.job;
    const struct comm_place *place = &rank->comm->place;
    char                     time[32], layout[256], device[512];
    run_print_time(time, sizeof(time));
    rank->backend.ops->describe(&rank->backend, device, sizeof(device));
    text_append(text, "Measured by gswbench %s on %s, for %s in %s: %s.\n", version_text, time, job->config.name,
                precision_compute_names[job->config.precision.compute], job_layout(job, layout, sizeof(layout)));
    text_append(text, "%s: %s.\n", place->host, device);
    text_append(text, "%d rank%s on %d node%s, %" PRId64 " core%s for %" PRId64 " of them, %s communicator%s%s.\n",
                place->ranks, place->ranks == 1 ? "" : "s", place->nodes, place->nodes == 1 ? "" : "s",
                rank->cores.cores, rank->cores.cores == 1 ? "" : "s", rank->cores.sharers, rank->comm->ops->name,
                rank->comm->library[0] != '\0' ? ", " : "", rank->comm->library);
}

// Before anything is measured: nobody likes to learn at the end that the folder is missing.
static status open_profile(struct rank *rank)
{
    const char *path = rank->shared->output;
    if (rank->comm->place.rank != 0) {
        return OK;
    }
    rank->profile = fopen(path, "w");
    return rank->profile != NULL ? OK : fail_as(EXIT_OUTPUT, "%s: cannot be written: %s", path, strerror(errno));
}

static status write_profile(struct rank *rank)
{
    const char *path = rank->shared->output;
    if (rank->comm->place.rank != 0) {
        return OK;
    }
    struct text_buffer origin = {.text = NULL};
    describe(rank, &origin);
    calibrate_write(rank->profile, origin.text, &rank->hardware, &rank->list);
    text_free(&origin);
    if (fflush(rank->profile) != 0 || ferror(rank->profile) != 0) {
        return fail_as(EXIT_OUTPUT, "%s: cannot be written: %s", path, strerror(errno));
    }
    printf("%s: %" PRId32 " ops measured; predictions use it with --set hardware.profile=%s%s\n", path,
           rank->list.count, strchr(path, '/') == NULL ? "./" : "", path);
    return OK;
}

static status calibrate(struct rank *rank)
{
    TRY(open_place(rank));
    TRY(run_agree(rank->comm, open_profile(rank)));
    TRY(measure(rank));
    return run_agree(rank->comm, write_profile(rank));
}

static void release(struct rank *rank)
{
    free(rank->peers);
    calibrate_free(&rank->list);
    if (rank->nccl.ops != NULL) {
        comm_close(&rank->nccl);
    }
    if (rank->backend.ops != NULL) {
        backend_close(&rank->backend);
    }
}

static status calibrate_rank(const void *shared, struct comm *comm)
{
    struct rank rank = {.shared = shared, .comm = comm};
    fatal_set_rank(comm->place.rank);
    status result = calibrate(&rank);
    if (rank.profile != NULL) {
        fclose(rank.profile);
        if (failed(&result)) {
            remove(rank.shared->output);
        }
    }
    release(&rank);
    return result;
}

static status run(const void *arguments, struct text_buffer *errors)
{
    struct calibrate_arguments chosen = *(const struct calibrate_arguments *)arguments;
    struct calibrate_shared    shared = {.output = chosen.output};
    struct job                 job;
    if (chosen.output == NULL) {
        return fail_as(EXIT_USAGE, "-o is missing: name the file to write");
    }
    TRY(run_read_job(&shared.run, &job, &chosen.run, errors));
    status result = launch_ranks(&job.config.run, (int)job.mesh.world, calibrate_rank, &shared);
    free(shared.run.config_text);
    return result;
}

const struct command command_calibrate = {
    .name  = "calibrate",
    .help  = "measure the ops of a configuration on this machine, for predictions",
    .flags = flags,
    .bytes = sizeof(struct calibrate_arguments),
    .run   = run,
};
