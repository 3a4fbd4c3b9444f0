// SPDX-License-Identifier: MIT
// Runs one rank of a calibration: measures the ops of a job on this machine and writes a hardware profile.
#include "gswbench/calibrate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/fatal.h"
#include "gswbench/output.h"
#include "gswbench/environment.h"
#include "gswbench/version.h"

enum { STEPS = 15, PASSES = 3 };
static const double round_seconds = 5e-3;

struct rank {
    const struct calibration *calibration;
    struct rank_environment   environment;
    struct distinct_ops       list;
    struct hardware_config    hardware;
    struct output             profile;    // the profile to write; open on rank 0 only
};

static status open_environment(struct rank *rank, struct comm *comm)
{
    const struct benchmark *benchmark = &rank->calibration->benchmark;
    const struct config    *config    = &benchmark->job.config;
    bool                    is_null   = strcmp(config->run.backend, backend_null.name) == 0;
    status own = is_null ? fail("[run] backend = null computes nothing to measure: use cuda or host") : OK;
    return environment_open(&rank->environment, config, benchmark->weights_out != NULL, comm, own);
}

// Returns data sheet values of the device: from [hardware] if it describes this device, else from an installed profile,
// else defaults.
static struct hardware_config describe_machine(const struct rank *rank)
{
    struct hardware_config            hardware = rank->calibration->benchmark.job.config.hardware;
    const struct environment_devices *devices  = &rank->environment.devices;
    const char                       *device   = devices->kinds == 1 ? devices->names[0] : "";
    if (strcmp(hardware.device, device) != 0 && !config_find_hardware(&hardware, device)) {
        option_set_defaults(hardware_options, &hardware);
        text_copy(hardware.device, sizeof(hardware.device), device);
    }
    return hardware;
}

// Whether no thread of a rank with a lower index is on the same cores.
static bool has_own_cores(const struct environment_cores *cores)
{
    return cores->index == 0 || (cores->index + 1) * cores->threads <= cores->cores;
}

static status measure(struct rank *rank)
{
    const struct job      *job   = &rank->calibration->benchmark.job;
    struct calibrate_setup setup = {.request       = &job->request,
                                    .run           = &job->config.run,
                                    .backend       = &rank->environment.backend,
                                    .comm          = rank->environment.comm,
                                    .cores         = rank->environment.cores.cores,
                                    .core_ranks    = rank->environment.cores.sharers,
                                    .has_cores     = has_own_cores(&rank->environment.cores),
                                    .steps         = STEPS,
                                    .passes        = PASSES,
                                    .round_seconds = round_seconds};
    rank->hardware               = describe_machine(rank);
    TRY(comm_agree(rank->environment.comm, calibrate_collect(&rank->list, &job->request, &setup.working_bytes)));
    TRY(comm_agree(rank->environment.comm, calibrate_steps(&rank->list, &setup)));
    TRY(comm_agree(rank->environment.comm, calibrate_communications(&rank->list, &setup)));
    return comm_agree(rank->environment.comm, calibrate_hardware(&rank->hardware, &rank->list, &setup));
}

static void describe(struct rank *rank, struct calibration_origin *origin)
{
    const struct job           *job      = &rank->calibration->benchmark.job;
    const struct comm          *comm     = rank->environment.comm;
    const struct comm_topology *topology = &comm->topology;
    *origin                              = (struct calibration_origin){.ranks      = topology->ranks,
                                                                       .nodes      = topology->nodes,
                                                                       .cores      = rank->environment.cores.cores,
                                                                       .core_ranks = rank->environment.cores.sharers};
    text_copy(origin->version, sizeof(origin->version), version_text);
    benchmark_print_time(origin->time, sizeof(origin->time));
    text_copy(origin->config, sizeof(origin->config), job->config.name);
    text_copy(origin->precision, sizeof(origin->precision), precision_compute_names[job->config.precision.compute]);
    job_layout(job, origin->layout, sizeof(origin->layout));
    text_printable(origin->host, sizeof(origin->host), topology->host);
    rank->environment.backend.ops->describe(&rank->environment.backend, origin->device, sizeof(origin->device));
    text_copy(origin->communicator, sizeof(origin->communicator), comm->ops->name);
    text_copy(origin->library, sizeof(origin->library), comm->library);
}

static status write_profile(struct rank *rank)
{
    const char *path = rank->calibration->output;
    if (rank->environment.comm->topology.rank != 0) {
        return OK;
    }
    struct calibration_origin origin;
    struct text_stream        text;
    describe(rank, &origin);
    text_stream_open(&text);
    calibrate_write(text.file, &origin, &rank->hardware, &rank->list);
    text_stream_close(&text);
    status result = output_append(&rank->profile, text.data, text.bytes);
    free(text.data);
    TRY(result);
    TRY(output_finish(&rank->profile));
    if (rank->calibration->json) {
        calibrate_write_json(stdout, &origin, &rank->hardware, &rank->list);    // main checks stdout for errors
    } else {
        text_print(path, stdout);
        printf(": %" PRId32 " ops measured; predictions use it with --set hardware.profile=%s", rank->list.count,
               strchr(path, '/') == NULL ? "./" : "");
        text_print(path, stdout);
        putchar('\n');
    }
    return OK;
}

static status calibrate(struct rank *rank, struct comm *comm)
{
    bool is_first = comm->topology.rank == 0;
    TRY(open_environment(rank, comm));
    // Opens the output file before the measurement, so that a missing folder fails at once.
    TRY(comm_agree(rank->environment.comm, is_first ? output_begin(&rank->profile, rank->calibration->output) : OK));
    TRY(measure(rank));
    return comm_agree(rank->environment.comm, write_profile(rank));
}

status calibrate_rank(const void *shared, struct comm *comm)
{
    struct rank rank = {.calibration = shared};
    fatal_set_rank(comm->topology.rank);
    status result = calibrate(&rank, comm);
    output_abandon(&rank.profile);
    calibrate_free(&rank.list);
    environment_close(&rank.environment);
    return result;
}
