// SPDX-License-Identifier: MIT
// Defines the table of sections, and merges presets, the file, its [when ...] sections and overrides into a config.
#include "internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gswbench/input.h"
#include "gswbench/library.h"

// clang-format off
#define SECTION(name, help) \
    { #name, name##_options, offsetof(struct config, name), sizeof(((struct config *)0)->name), help }
const struct config_section config_sections[] = {
    {"model", model_options, offsetof(struct config, model), offsetof(struct model_config, adapters),
     "The shape of the transformer"},
    {"adapters", adapters_options, offsetof(struct config, model.adapters), sizeof(struct adapters_config),
     "Low-rank adapters (LoRA) of a frozen model"},
    SECTION(parallel, "The parallel layout; dp x fsdp x tp x cp x pp is the number of ranks"),
    SECTION(train, "Batch, recompute, routing and optimizer"),
    SECTION(precision, "Data types"),
    SECTION(run, "How a job runs"),
    SECTION(checkpoint, "Checkpoints that a run loads and saves"),
    SECTION(trace, "Traced steps after the measured ones, and their timeline"),
    SECTION(profile, "Steps and ranks that a profiler such as Nsight Systems collects"),
    SECTION(fault, "One injected fault, to test alarms; the result is marked, not compared"),
    // The size ends before collective_times, the last field, which is not an option but read from a file.
    {"hardware", hardware_options, offsetof(struct config, hardware), offsetof(struct hardware_config, collective_times),
     "The hardware of predictions and of MFU"},
    SECTION(software, "The program to predict; default: gswbench"),
    SECTION(published, "The published figures that results are compared with"),
    {NULL, NULL, 0, 0, NULL},
};
// clang-format on

const struct config_section *section_find(const char *name)
{
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        if (strcmp(section->name, name) == 0) {
            return section;
        }
    }
    return NULL;
}

const char *section_suggest(const char *name)
{
    const char *names[sizeof(config_sections) / sizeof(config_sections[0])];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        names[i] = config_sections[i].name;
    }
    return text_closest(name, names);
}

const struct option *section_find_option(const struct config_section *section, const char *key, size_t length)
{
    char text[64];
    bool fits = snprintf(text, sizeof(text), "%.*s", (int)length, key) < (int)sizeof(text);
    return fits ? option_find(section->options, text) : NULL;
}

const struct option *config_find_option(const char *name, size_t length, const struct config_section **section)
{
    for (*section = config_sections; (*section)->name != NULL; (*section)++) {
        size_t dot = strlen((*section)->name);
        if (dot < length && strncmp((*section)->name, name, dot) == 0 && name[dot] == '.') {
            return section_find_option(*section, name + dot + 1, length - dot - 1);
        }
    }
    return NULL;
}

const char *config_folder(void)
{
    static char folder[1024];
    const char *given = getenv("GSWBENCH_CONFIGS");
    if (given != NULL) {
        text_copy(folder, sizeof(folder), given);
        return folder;
    }
    library_beside_program(folder, sizeof(folder), "share/gswbench/configs");
    return folder;
}

bool config_find(const char *name, char *path, size_t bytes)
{
    struct stat about;
    if (strchr(name, '/') != NULL || (stat(name, &about) == 0 && !S_ISDIR(about.st_mode))) {
        return text_copy(path, bytes, name);
    }
    char atlas[1100];
    snprintf(atlas, sizeof(atlas), "%s/" CONFIG_ATLAS, config_folder());
    return file_find(config_folder(), name, path, bytes) || file_find(atlas, name, path, bytes);
}

bool config_suggest(const char *word, char name[CONFIG_NAME_BYTES])
{
    struct arena arena      = {0};
    const char  *suggestion = file_suggest(&arena, config_folder(), word);
    text_copy(name, CONFIG_NAME_BYTES, suggestion != NULL ? suggestion : "");
    arena_free(&arena);
    return name[0] != '\0';
}

static bool matches(const struct document *document, const struct assignment *assignment, struct selection selection)
{
    if (assignment->origin != ORIGIN_WHEN) {
        return (assignment->origin != ORIGIN_OVERRIDE || !selection.skips_overrides) &&
               (assignment->origin != ORIGIN_FIT || !selection.skips_fits);
    }
    return condition_matches(&document->conditions[assignment->condition], &selection);
}

static void parse_overrides(struct document *document, const struct config_request *request)
{
    for (int i = 0; i < request->override_count; i++) {
        document_override(document, request->overrides[i]);
    }
}

// Applies the assignments of a document. An assignment of a later origin (enum origin) replaces one of an earlier
// origin. All were validated when they were parsed.
void document_apply(struct config *config, const struct document *document, struct selection selection)
{
    for (int origin = 0; origin < ORIGIN_COUNT; origin++) {
        for (size_t i = 0; i < document->count; i++) {
            const struct assignment *assignment = &document->assignments[i];
            if ((int)assignment->origin == origin && matches(document, assignment, selection)) {
                option_set(assignment->option, (char *)config + assignment->section->offset, assignment->value);
            }
        }
    }
    if (document_names_gpu(document, selection.gpu)) {
        text_copy(config->hardware.profile, sizeof(config->hardware.profile), selection.gpu);
    }
}

void config_set_defaults(struct config *config)
{
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        option_set_defaults(section->options, (char *)config + section->offset);
    }
}

// Finds the values that select [when ...] sections, from the assignments outside of such sections. A [when ...] section
// may set hardware.profile, but this selects no other section.
struct selection document_select(const struct document *document, const struct config_request *request)
{
    struct selection selection = {.ranks = -1, .compute = -1, .skips_overrides = request == NULL};
    struct config   *config    = memory_allocate(sizeof(*config));
    config_set_defaults(config);
    document_apply(config, document, selection);
    selection.compute = config->precision.compute;
    if (request != NULL) {
        selection.ranks      = request->ranks;
        selection.skips_fits = request->skips_fits;
    }
    text_copy(selection.gpu, sizeof(selection.gpu), config->hardware.profile);
    text_copy(selection.variant, sizeof(selection.variant), config->published.variant);
    free(config);
    return selection;
}

const struct assignment *document_find(const struct document *document, const struct option *option,
                                       struct selection selection)
{
    const struct assignment *last = NULL;
    for (size_t i = 0; i < document->count; i++) {
        const struct assignment *assignment = &document->assignments[i];
        if (assignment->option == option && matches(document, assignment, selection) &&
            (last == NULL || assignment->origin >= last->origin)) {
            last = assignment;
        }
    }
    return last;
}

void document_parse_file(struct document *document, const char *path)
{
    char  *text;
    size_t bytes;
    status result = input_load(path, FILE_BYTES_MAX, &text, &bytes);
    if (failed(&result)) {
        document_error(document, "%s: %s", path, result.text);
    } else {
        document_parse(document, path, text, bytes);
        free(text);
    }
}

bool document_is_overridden(const struct document *document, const struct option *option)
{
    const struct assignment *found = document_find(document, option, (struct selection){.ranks = -1, .compute = -1});
    return found != NULL && found->origin == ORIGIN_OVERRIDE;
}

// Resolves a conflict of batch sizes. global_batch = micro_batch x replicas x accumulation, so an override of one value
// does not fit if the file sets the other two. If all three are set and an override changes one, the first key that no
// override sets becomes auto.
static void free_batch_size(struct train_config *train, const struct document *document, struct selection selection)
{
    static const char *const keys[] = {"accumulation", "global_batch", "micro_batch"};
    struct config           *plain  = memory_allocate(sizeof(*plain));
    config_set_defaults(plain);
    selection.skips_overrides = true;
    document_apply(plain, document, selection);
    bool is_changed = train->accumulation != plain->train.accumulation ||
                      train->global_batch != plain->train.global_batch ||
                      train->micro_batch != plain->train.micro_batch;
    free(plain);
    bool is_tied = train->accumulation != 0 && train->global_batch != 0 && train->micro_batch != 0;
    for (size_t i = 0; is_changed && is_tied && i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct option *option = option_find(train_options, keys[i]);
        if (!document_is_overridden(document, option)) {
            option_set(option, train, option_auto[0]);
            return;
        }
    }
}

void config_evaluate(struct config *config, struct document *document, struct selection selection)
{
    config_set_defaults(config);
    preset_apply_all(config, document, selection);
    int64_t layers = config->model.layers;
    document_apply(config, document, selection);
    config->full_layers = config->model.preset[0] != '\0' ? layers : 0;
    collectives_read(&config->hardware, document);
    free_batch_size(&config->train, document, selection);
    config->ranks = selection.ranks;
}

bool config_is_proxy(const struct config *config)
{
    return config->run.layers > 0 || config->model.layers < config->full_layers;
}

// Parses the file and the overrides. Parses overrides even after an error in the file, to report all errors at once.
void document_read(struct document *document, const struct config_request *request, char *path, size_t bytes)
{
    struct stat about;
    if (config_find(request->name, path, bytes)) {
        document_parse_file(document, path);
    } else if (stat(request->name, &about) == 0 && S_ISDIR(about.st_mode)) {
        document_error(document, "%s: is a folder: name a file in it", request->name);
    } else {
        const char *suggestion = file_suggest(&document->arena, config_folder(), request->name);
        document_error(document, "%s: no config with this name, neither in the current folder nor in %s%s",
                       request->name, config_folder(), document_hint(document, "\"", suggestion, "\""));
    }
    parse_overrides(document, request);
}

status document_finish(struct document *document)
{
    int64_t errors = document->error_count;
    if (errors > DOCUMENT_ERRORS_SHOWN) {
        text_append(document->errors, "E-CONFIG %" PRId64 " more errors\n", errors - DOCUMENT_ERRORS_SHOWN);
    }
    document_free(document);
    return errors == 0 ? OK : fail("%" PRId64 " configuration error%s", errors, errors == 1 ? "" : "s");
}

static void name_config(struct config *config)
{
    if (strncmp(config->path, CONFIG_STDIN, strlen(CONFIG_STDIN)) == 0) {
        text_copy(config->name, sizeof(config->name), "stdin");
        text_copy(config->path, sizeof(config->path), "stdin");
        return;
    }
    const char *slash = strrchr(config->path, '/');
    text_printable(config->name, sizeof(config->name), slash == NULL ? config->path : slash + 1);
    config->name[config_stem(config->name)] = '\0';
}

static status complete(struct config *config, struct document *document, const struct config_request *request)
{
    struct selection selection = document_select(document, request);
    name_config(config);
    condition_check_variant(document, selection.variant);
    config_evaluate(config, document, selection);
    config_keep_published(config, document, selection);
    if (config->run.warmup < 0) {
        config->run.warmup = run_warmup(config->run.steps);
    }
    if (config->run.layers == config->model.layers) {
        config->run.layers = 0;    // the whole model runs, so the job is no proxy (with fewer layers)
    } else if (config->run.layers > config->model.layers && config->model.layers > 0) {
        document_error(document, "[run] layers = %" PRId64 ": the model has %" PRId64 "; more need [model] layers",
                       config->run.layers, config->model.layers);
    } else if (config->run.layers != 0) {
        config->model.layers = config->run.layers;
    }
    return document_finish(document);
}

status config_read(struct config *config, const struct config_request *request, struct text_buffer *errors)
{
    struct document document = {.errors = errors};
    *config                  = (struct config){0};
    document_read(&document, request, config->path, sizeof(config->path));
    return complete(config, &document, request);
}

status config_read_text(struct config *config, const struct config_request *request, const char *text, size_t bytes,
                        struct text_buffer *errors)
{
    struct document document = {.errors = errors};
    *config                  = (struct config){0};
    text_copy(config->path, sizeof(config->path), request->name);
    document_parse(&document, request->name, text, bytes);
    parse_overrides(&document, request);
    return complete(config, &document, request);
}
