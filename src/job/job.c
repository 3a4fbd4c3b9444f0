// SPDX-License-Identifier: MIT
// Resolves the user's selection (configuration, overrides, number of ranks) to a checked configuration, and derives
// further values. rules.c has the checks.
#include "gswbench/job.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/peak.h"
#include "gswbench/plan_build.h"

static struct config_request make_request(const struct job_selection *selection)
{
    return (struct config_request){
        .name           = selection->name,
        .overrides      = selection->overrides.items,
        .override_count = selection->overrides.count,
        .ranks          = selection->ranks,
        .skips_fits     = selection->skips_fits,
    };
}

void job_print_places(struct text_buffer *places, const struct job_selection *selection, const char *text)
{
    struct config_request request = make_request(selection);
    config_print_places(places, &request, text);
}

static status require_config(const struct job_selection *selection)
{
    return selection->name != NULL
               ? OK
               : fail_as(EXIT_USAGE, "--config is missing: gswbench configs lists the installed ones");
}

// Adds to each error line the config's path, and the file and line of the options that the error names.
static status report(const struct config *config, const struct job_selection *selection, const char *lines)
{
    int  count = 0;
    char path[sizeof(config->path)];
    text_printable(path, sizeof(path), config->path);
    for (const char *line = lines; *line != '\0'; count++) {
        char               text[sizeof(((status *)0)->text)], ranks[64] = "";
        struct text_buffer places = {.text = NULL};
        size_t             length = strcspn(line, "\n");
        snprintf(text, sizeof(text), "%.*s", (int)length, line);
        job_print_places(&places, selection, text);
        if (config->ranks > 0) {
            snprintf(ranks, sizeof(ranks), "at %" PRId64 " rank%s", config->ranks, config->ranks == 1 ? "" : "s");
        }
        const char *and = ranks[0] != '\0' && places.length > 0 ? "; " : "";
        bool is_placed  = ranks[0] != '\0' || places.length > 0;
        text_append(selection->errors, "E-CONFIG %s: %s%s%s%s%s%s\n", path, text, is_placed ? " (" : "", ranks, and,
                    places.length > 0 ? places.text : "", is_placed ? ")" : "");
        text_free(&places);
        line += length + (line[length] == '\n');
    }
    return fail("%d configuration error%s", count, count == 1 ? "" : "s");
}

static status read_config(struct config *config, struct plan_request *request, const struct job_selection *selection)
{
    TRY(require_config(selection));
    struct config_request chosen = make_request(selection);
    TRY(config_read(config, &chosen, selection->errors));
    status check = job_check(request, config);
    return failed(&check) ? report(config, selection, check.text) : OK;
}

// Resolves the layout and copies it into the configuration. Without a number of ranks, this is the smallest layout.
static status resolve(struct job *job, const struct job_selection *selection)
{
    struct config *config = &job->config;
    job->is_open          = job_is_open(config);
    if (job->is_open) {
        struct plan_sections sections = job_sections(config);
        status               resolved = plan_resolve(&job->request, &sections);
        resolved                      = failed(&resolved) ? resolved : job_check_layout(&job->request, config);
        TRY(failed(&resolved) ? report(config, selection, resolved.text) : OK);
    }
    config->parallel = job->request.parallel;
    config->train    = job->request.train;
    job->has_layout  = true;
    job->support     = plan_supports(&job->request);
    return OK;
}

status job_read_config(struct config *config, const struct job_selection *selection)
{
    struct plan_request request;
    return read_config(config, &request, selection);
}

status job_read(struct job *job, const struct job_selection *selection)
{
    TRY(read_config(&job->config, &job->request, selection));
    return resolve(job, selection);
}

// If the configured layout is invalid, this uses data parallelism only, even if that does not divide the batch.
status job_read_open(struct job *job, const struct job_selection *selection)
{
    struct config        *config = &job->config;
    struct config_request chosen = make_request(selection);
    TRY(require_config(selection));
    TRY(config_read(config, &chosen, selection->errors));
    status sections = job_check_sections(config), whole = job_check(&job->request, config);
    if (failed(&sections) || (failed(&whole) && config->train.global_batch == 0)) {
        return report(config, selection, whole.text);
    }
    if (!failed(&whole)) {
        return resolve(job, selection);
    }
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        mesh_ask(&config->parallel, (enum axis)axis, axis_rows[axis].values == AXIS_REST ? config->ranks : 1);
    }
    config->parallel.vp           = 1;
    config->parallel.etp          = 0;
    job->has_layout               = false;
    job->support                  = fail("its own layout is invalid");
    struct plan_sections plainest = job_sections(config);
    status               resolved = plan_resolve(&job->request, &plainest);
    return job->request.mesh.world > 0 ? OK : resolved;
}

static void add_override(struct text_list *overrides, const char *key, const char *value, char *text, size_t bytes)
{
    if (value[0] != '\0') {
        snprintf(text, bytes, "%s=%s", key, value);
        overrides->items[overrides->count++] = text;
    }
}

// The user's overrides come after the row's precision, gpu and variant, and take precedence.
status job_read_row(struct job *job, const struct job_selection *selection, const struct config_row *row)
{
    struct job_selection selected = *selection;
    char                 precision[64], gpu[sizeof(row->gpu) + 32], variant[64];
    selected.ranks           = row->ranks;
    selected.overrides.count = 0;
    add_override(&selected.overrides, "precision.compute", row->precision, precision, sizeof(precision));
    add_override(&selected.overrides, "hardware.profile", row->gpu, gpu, sizeof(gpu));
    add_override(&selected.overrides, "published.variant", row->variant, variant, sizeof(variant));
    if (selected.overrides.count + selection->overrides.count > TEXT_LIST_MAX) {
        return fail_as(EXIT_USAGE, "more than %d overrides", TEXT_LIST_MAX - selected.overrides.count);
    }
    for (int i = 0; i < selection->overrides.count; i++) {
        selected.overrides.items[selected.overrides.count++] = selection->overrides.items[i];
    }
    return job_read(job, &selected);
}

status job_rows(const struct job_selection *selection, struct config_row rows[CONFIG_ROWS_MAX], int *count)
{
    TRY(require_config(selection));
    if (selection->ranks > 0) {
        rows[0] = (struct config_row){.ranks = selection->ranks};
        *count  = 1;
        return OK;
    }
    struct config_request request = make_request(selection);
    return config_rows(&request, rows, count, selection->errors);
}

// Formats an axis size: " tp 8", or nothing if it is the default. Returns the length.
static int show_size(char *text, size_t bytes, const char *name, int64_t size, int64_t plain)
{
    return size == plain ? 0 : snprintf(text, bytes, " %s %" PRId64, name, size);
}

const char *job_layout(const struct job *job, char *text, size_t bytes)
{
    const struct parallel_config *parallel = &job->config.parallel;
    char sizes[1024] = " one rank", *end = sizes;    // large enough for every axis with any number
    for (int place = 0; place < AXIS_COUNT; place++) {
        enum axis axis = axis_shown(place);
        end += show_size(end, 64, axis_rows[axis].name, mesh_asked(parallel, axis), 1);
    }
    end += show_size(end, 64, "etp", parallel->etp, 0);
    end += show_size(end, 64, "vp", parallel->vp, 1);
    end += show_size(end, 64, "zero", parallel->zero, 0);
    if (parallel->ep_over_cp && parallel->cp > 1 && parallel->ep > 1) {
        end += snprintf(end, 64, " ep_over_cp");
    }
    if (parallel->shard_over_cp && parallel->cp > 1) {
        snprintf(end, 64, " shard_over_cp");
    }
    snprintf(text, bytes, "%s", sizes + 1);
    return text;
}

// Returns a warning if an axis spans nodes although every layer communicates along it. Ranks fill nodes in axis order,
// so an axis stays in a node (or NVLink domain) if its stride times its size divides the devices of a node.
const char *job_warning(const struct job *job, char *text, size_t bytes)
{
    int64_t node    = job->config.hardware.gpus_per_node;
    int64_t devices = hardware_domain(&job->config.hardware, job->request.mesh.world);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        bool is_whole = devices % mesh_stride(&job->request.mesh, (enum axis)(axis + 1)) == 0;
        if (axis_rows[axis].stays_in_node && job->request.mesh.size[axis] > 1 && job->request.mesh.world > devices &&
            !is_whole) {
            snprintf(text, bytes,
                     "[parallel] %s = %" PRId64 " crosses nodes ([hardware] %s = %" PRId64
                     "): every layer waits for links between nodes",
                     axis_rows[axis].name, job->request.mesh.size[axis],
                     devices > node ? "link_domain" : "gpus_per_node", devices);
            return text;
        }
    }
    return NULL;
}

// Returns whether the config has a published step time that applies. It does not apply to a model with reduced layers.
static bool has_published_step(const struct config *config)
{
    return config->published.step_seconds > 0.0 && config->run.layers == 0;
}

double job_tokens_per_second(const struct job *job, double seconds)
{
    return (double)job->config.train.sequence * (double)job->config.train.global_batch / seconds;
}

double job_published_tokens_per_second(const struct job *job)
{
    bool is_published = has_published_step(&job->config);
    return is_published ? job_tokens_per_second(job, job->config.published.step_seconds) : NAN;
}

static enum flop_convention convention_of(const struct config *config)
{
    return config->published.convention != FLOPS_PUBLISHED ? FLOPS_PUBLISHED : FLOPS_FULL;
}

double job_ideal_seconds(const struct job *job)
{
    const struct config *config     = &job->config;
    enum flop_convention convention = convention_of(config);
    enum rate            rate       = precision_rate(config->precision.compute);
    double               peak       = peak_for_convention(convention, peak_of_hardware(&config->hardware, rate).flops,
                                                          peak_published(&config->published, rate));
    double               flops = layers_flops(&config->model, &config->published, convention, config->train.sequence);
    return flops * (double)config->train.global_batch / (double)job->request.mesh.world / peak;
}

double job_attention_share(const struct job *job)
{
    const struct config *config = &job->config;
    return layers_attention_share(&config->model, &config->published, convention_of(config), config->train.sequence);
}

double job_mfu(const struct job *job, double seconds)
{
    return peak_share(job_ideal_seconds(job), seconds);
}

double job_published_mfu(const struct job *job)
{
    bool is_published = has_published_step(&job->config) && job->config.published.convention != FLOPS_PUBLISHED;
    return is_published ? job_mfu(job, job->config.published.step_seconds) : NAN;
}

bool job_names_config(const char *word)
{
    char path[1024];
    return config_find(word, path, sizeof(path)) && access(path, R_OK) == 0;
}
