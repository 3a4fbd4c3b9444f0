// SPDX-License-Identifier: MIT
// gswbench check and plan: verify a configuration, and print the plan of one rank, without a device or MPI.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/number.h"
#include "gswbench/predict.h"
#include "gswbench/show.h"
#include "gswbench/terminal.h"
#include "gswbench/verify.h"
#include "internal.h"

const struct flag check_flags[] = {
    CONFIG_FLAGS(config),
    HEADING("Output"),
    SWITCH_FLAG(all, "--all", "check every row of every installed config"),
    SWITCH_FLAG(json, "--json", "print JSON"),
    END_FLAGS,
};

// Computes the memory that the job needs in the framework of [software]. The job may fit there even if it does not fit
// in gswbench.
static status find_program(struct proved_job *proved)
{
    const struct config *config  = &proved->job.config;
    struct machine       machine = predict_machine(config, NULL);
    struct footprint     footprint;
    if (failed(&proved->job.support) || !footprint_is_modelled(&config->software)) {
        return OK;
    }
    TRY(predict_footprint(&footprint, &proved->job.request, &machine));
    proved->program_need   = footprint.device;
    proved->program_bytes  = &proved->program_need;
    proved->is_program_fit = hardware_holds(&config->hardware, footprint.device);
    proved->program_fits   = proved->fits != NULL ? &proved->is_program_fit : NULL;
    return OK;
}

// Fails, like predict, if the GPU of [hardware] has no FP8. job_check refuses FP4.
static status check_precision(const struct config *config)
{
    const struct hardware_config *hardware = &config->hardware;
    bool                          is_gpu   = hardware->device[0] != '\0' && strcmp(config->run.backend, "host") != 0;
    if (!is_gpu || config->precision.compute != COMPUTE_FP8 || hardware->peak[RATE_FP8].value > 0.0) {
        return OK;
    }
    return fail("[precision] compute = fp8: %s has no FP8 (hardware profile %s has no peak_fp8): use --precision bf16, "
                "another --gpu such as h100-sxm, or set the peak",
                hardware->device, hardware->profile);
}

// Returns why the job cannot run: this version does not support it, or its memory does not fit. OK: it can run.
static status describe_unfit(const struct proved_job *proved)
{
    const char *program     = proved->job.config.software.profile;
    char        remark[256] = "", bytes[32];
    if (failed(&proved->job.support) || proved->fits == NULL || *proved->fits) {
        return proved->job.support;
    }
    if (proved->program_fits != NULL) {
        snprintf(remark, sizeof(remark), "; %.120s needs %s, which %s", program,
                 number_bytes(bytes, sizeof(bytes), (double)proved->program_need),
                 proved->is_program_fit ? "fits" : "does not fit either");
    }
    return show_shortage(&proved->job.config, "gswbench", job_device_bytes(proved), remark);
}

// Totals over the checked rows (jobs).
struct sum {
    struct progress  progress;
    int              rows, verified;
    struct job_proof proof;
    int              possible;    // rows that this version and the GPU can run, whatever their memory
    // Error returned after the output: why the single row cannot run, or that no row can; else OK.
    status unfit;
    // Of check --all, which reports the errors of every configuration and does not stop at the first error.
    const struct arguments *options;
    bool                    has_begun;
    status                  result;    // status of the last configuration that failed
};

static void add_proof(struct sum *sum, const struct job_proof *proof)
{
    sum->rows++;
    sum->verified += proof->built > 0;
    sum->proof.world += proof->world;
    sum->proof.built += proof->built;
    sum->proof.classes += proof->classes;
    sum->proof.ops += proof->ops;
    sum->proof.communications += proof->communications;
}

// Rows (jobs) of a configuration, and the state of their check.
struct checked_rows {
    const struct job_selection *selection;
    struct config_row           rows[CONFIG_ROWS_MAX];
    int                         count;
    bool                        is_alone;    // the only row: printed with all details
    json_t                     *list;        // receives the rows as JSON; NULL: rows are printed
    struct proved_job           proved;      // the row that is checked
};

static status check_row(struct checked_rows *checked, int index, struct sum *sum)
{
    struct proved_job *proved = &checked->proved;
    *proved                   = (struct proved_job){.proof = {.world = 0}};
    status result             = job_read_row(&proved->job, checked->selection, &checked->rows[index]);
    if (!failed(&result)) {
        progress_show(&sum->progress, sum->rows, proved->job.config.name);
        status_add(&proved->job.support, check_precision(&proved->job.config));
        sum->possible += !failed(&proved->job.support);
        result = job_prove(proved);
        result = failed(&result) ? result : find_program(proved);
        progress_clear(&sum->progress);
    }
    if (!failed(&result) && checked->list != NULL) {
        json_array_append_new(checked->list, show_check_row(proved));
    } else if (!failed(&result)) {
        (checked->is_alone ? show_check_details : show_check_line)(proved);
    }
    if (!failed(&result) && checked->count == 1) {
        sum->unfit = describe_unfit(proved);
    }
    add_proof(sum, &proved->proof);
    return result;
}

// Checks all rows of a configuration and reports the errors of each. Returns the status of the last row that failed.
// list: receives the rows as JSON; NULL: rows are printed.
static status check_rows(const struct arguments *options, json_t *list, struct sum *sum)
{
    struct checked_rows *checked = memory_allocate(sizeof(*checked));
    checked->selection           = &options->config;
    checked->list                = list;
    status result                = job_rows(checked->selection, checked->rows, &checked->count);
    int    count                 = failed(&result) ? 0 : checked->count;
    checked->is_alone            = count == 1 && !options->all;
    if (!failed(&result) && !checked->is_alone && list == NULL) {
        show_check_header();
    }
    for (int i = 0; i < count; i++) {
        status row = check_row(checked, i, sum);
        result     = failed(&row) ? row : result;
    }
    free(checked);
    return result;
}

static status check_config(void *state, const char *name, const char *path)
{
    struct sum      *sum = state;
    struct arguments one = *sum->options;
    one.config.name      = path;
    printf("%s%s\n", sum->has_begun ? "\n" : "", name);
    sum->has_begun = true;
    status checked = check_rows(&one, NULL, sum);
    sum->result    = failed(&checked) ? checked : sum->result;
    return OK;
}

status command_check(const struct arguments *options)
{
    struct sum sum   = {.options = options};
    int64_t    count = 0;
    if (options->all && (options->json || options->config.name != NULL)) {
        return fail_as(EXIT_USAGE, "--all checks every config: leave --config and --json out");
    }
    TRY(cli_count_rows(&count, &options->config));
    sum.progress   = progress_begin("rows", count);
    json_t *list   = options->json ? json_array() : NULL;
    status  result = options->all ? cli_visit_configs(check_config, &sum) : check_rows(options, list, &sum);
    result         = failed(&result) ? result : sum.result;
    if (!failed(&result) && list != NULL) {
        show_rows(show_check_fields, options->config.name, list);
    } else if (!failed(&result) && sum.rows > 1) {
        show_line(2,
                  "%d of %d rows verified: %" PRId64 " ranks, %" PRId64 " plans built, %" PRId64
                  " distinct with %" PRId64 " ops, %" PRId64 " of them transfers",
                  sum.verified, sum.rows, sum.proof.world, sum.proof.built, sum.proof.classes, sum.proof.ops,
                  sum.proof.communications);
    }
    if (!options->all && !failed(&result) && !failed(&sum.unfit) && sum.possible == 0) {
        sum.unfit = fail("no row can run; each %s has its reason", list != NULL ? "row of the output" : "line");
    }
    json_decref(list);
    return failed(&result) || options->all ? result : sum.unfit;
}

const struct flag plan_flags[] = {
    CONFIG_FLAGS(config),
    HEADING("Output"),
    INTEGER_FLAG(rank, "--rank", "R", 0, 1048575, "rank of the plan; default: 0"),
    SWITCH_FLAG(ops, "--ops", "print every op, one line each"),
    SWITCH_FLAG(schedule, "--schedule", "draw the pipeline schedule of all stages"),
    SWITCH_FLAG(json, "--json", "print the plan as JSON"),
    END_FLAGS,
};

status command_plan(const struct arguments *options)
{
    struct job job;
    TRY(job_read(&job, &options->config));
    if (options->rank >= job.request.mesh.world) {
        return fail_as(EXIT_USAGE, "--rank %" PRId64 ": the job has ranks 0 to %" PRId64, options->rank,
                       job.request.mesh.world - 1);
    }
    if (options->schedule) {
        return show_schedule(&job);
    }
    if (failed(&job.support)) {
        return job.support;
    }
    struct plan plan;
    job.request.rank = options->rank;
    status result    = plan_build(&plan, &job.request);
    result           = failed(&result) ? result : plan_verify(&plan, NULL);
    if (!failed(&result)) {
        if (options->json) {
            show_plan_json(&job, &plan);
        } else if (options->ops) {
            show_plan_ops(&plan);
        } else {
            result = show_plan(&job, &plan);
        }
    }
    plan_free(&plan);
    return result;
}
