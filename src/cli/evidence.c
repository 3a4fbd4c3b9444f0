// SPDX-License-Identifier: MIT
// Warns about settings of a job that no published row has: nothing shows how wrong such a prediction is.
#include <inttypes.h>
#include <string.h>

#include "internal.h"

struct evidence {
    const struct config *config;
    int64_t              program, machine, both;    // published rows with this program, with this machine, with both
    int64_t              ranks;                     // largest number of ranks of a row on the same GPU
};

static bool has_experts(const struct config *config)
{
    return config->model.experts > 0;
}

// A row shows something about a machine only if both models have experts, or none.
static status count_row(void *state, const struct job_selection *selection, const struct config_row *row,
                        struct text_buffer *errors)
{
    struct evidence     *evidence = state;
    const struct config *own      = evidence->config;
    struct job           job;
    if (row->step_seconds == 0.0) {
        return OK;
    }
    TRY(job_read_row(&job, selection, row, errors));
    bool is_program = strcmp(job.config.software.profile, own->software.profile) == 0;
    bool is_machine = strcmp(job.config.hardware.profile, own->hardware.profile) == 0;
    bool is_kind    = has_experts(&job.config) == has_experts(own);
    evidence->program += is_program;
    evidence->machine += is_machine && is_kind;
    evidence->both += is_program && is_machine && is_kind;
    if (is_machine && job.request.mesh.world > evidence->ranks) {
        evidence->ranks = job.request.mesh.world;
    }
    return OK;
}

static status count_rows(void *state, const char *name, const char *path, struct text_buffer *errors)
{
    (void)name;
    return cli_visit_rows(&(struct job_selection){.name = path}, count_row, state, errors);
}

static bool has_given_network(const struct hardware_config *hardware)
{
    const struct quantity *values[] = {&hardware->network_bandwidth, &hardware->network_efficiency,
                                       &hardware->network_latency};
    bool                   is_given = false;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        is_given = is_given || values[i]->origin == QUANTITY_GIVEN;
    }
    return is_given;
}

static void write_gaps(const struct evidence *evidence, const struct job *job, struct text_buffer *warnings)
{
    const struct config *config  = evidence->config;
    const char          *program = config->software.profile, *machine = config->hardware.profile;
    const char          *kind = has_experts(config) ? "with" : "without";
    if (evidence->program == 0) {
        text_append(warnings, "unchecked: no published row is of %s; its error may be larger\n", program);
    }
    if (evidence->machine == 0) {
        text_append(warnings, "unchecked: no published row of a model %s experts is on %s\n", kind, machine);
    } else if (evidence->program > 0 && evidence->both == 0) {
        text_append(warnings, "unchecked: no published row of %s is on %s with a model %s experts\n", program, machine,
                    kind);
    } else if (job->request.mesh.world > 2 * evidence->ranks) {
        text_append(warnings, "unchecked: the largest published row on %s has %" PRId64 " ranks\n", machine,
                    evidence->ranks);
    }
    if (config->software.unfused_attention) {
        text_append(warnings, "unchecked: no published row has unfused attention\n");
    }
    if (job->request.mesh.world > hardware_domain(&config->hardware, job->request.mesh.world) &&
        has_given_network(&config->hardware)) {
        text_append(warnings, "unchecked: published rows use the network of the profile, InfiniBand or EFA\n");
    }
}

status cli_warn_unchecked(const struct job *job, struct text_buffer *warnings, struct text_buffer *errors)
{
    struct evidence evidence = {.config = &job->config};
    TRY(cli_visit_configs(count_rows, &evidence, errors));
    write_gaps(&evidence, job, warnings);
    return OK;
}
