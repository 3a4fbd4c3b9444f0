// SPDX-License-Identifier: MIT
// Reads and writes rows of options through the option tables.
#include "layouts.h"

#include <stdio.h>
#include <string.h>

#include "gswbench/fatal.h"
#include "gswbench/job.h"

enum { SECTIONS = 5, VALUE_BYTES = 256 };

struct section {
    const struct option *options;
    size_t               offset;    // offset in struct tiny
};

static const struct section sections[SECTIONS] = {
    {parallel_options, offsetof(struct tiny, parallel)},
    {train_options, offsetof(struct tiny, train)},
    {model_options, offsetof(struct tiny, model)},
    {precision_options, offsetof(struct tiny, precision)},
    {adapters_options, offsetof(struct tiny, model.adapters)},
};

static void set_option(struct tiny *tiny, const char *key, const char *value)
{
    for (int i = 0; i < SECTIONS; i++) {
        const struct option *option = option_find(sections[i].options, key);
        if (option != NULL) {
            status result = option_set(option, (char *)tiny + sections[i].offset, value);
            if (failed(&result)) {
                FATAL(EXIT_INTERNAL, "a layout with %s %s: %s", key, value, result.text);
            }
            return;
        }
    }
    FATAL(EXIT_INTERNAL, "a layout has an option %s, which is none", key);
}

int layout_apply(struct tiny *tiny, const char *row)
{
    char copy[LAYOUT_NAME_BYTES], *rest = NULL;
    snprintf(copy, sizeof(copy), "%s", row);
    for (char *item = strtok_r(copy, ";", &rest); item != NULL; item = strtok_r(NULL, ";", &rest)) {
        char *key = item + strspn(item, " "), *value = strchr(key, ' ');
        if (*key == '\0') {
            continue;
        }
        if (value == NULL) {
            FATAL(EXIT_INTERNAL, "a layout has no value for %s", key);
        }
        *value = '\0';
        set_option(tiny, key, value + 1);
    }
    const struct parallel_config *parallel = &tiny->parallel;
    return (int)(parallel->dp * parallel->fsdp * parallel->tp * parallel->cp * parallel->pp);
}

struct tiny tiny_of(const char *row)
{
    struct tiny tiny;
    tiny_init(&tiny);
    layout_apply(&tiny, row);
    return tiny;
}

struct plan_request layout_request(const char *row)
{
    struct tiny tiny;
    tiny_init(&tiny);
    int ranks = layout_apply(&tiny, row);
    return tiny_request(&tiny, ranks, 0);
}

struct plan *tiny_plan_of(const char *row, int64_t rank)
{
    static struct tiny tiny;
    plan_free(&tiny.plan);
    tiny_init(&tiny);
    tiny_plan_rank(&tiny, layout_apply(&tiny, row), rank);
    return &tiny.plan;
}

void layout_job(struct job *job, const char *name, int64_t ranks, const char *settings)
{
    static char          words[1024];
    struct text_buffer   errors    = {.text = NULL};
    struct job_selection selection = {.name = name, .ranks = ranks, .errors = &errors};
    char                *rest      = words;
    snprintf(words, sizeof(words), "%s", settings);
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        selection.overrides.items[selection.overrides.count++] = word;
    }
    status read = job_read(job, &selection);
    if (failed(&read)) {
        FATAL(EXIT_INTERNAL, "%s", errors.text);
    }
}

void layout_assignment(struct tiny *tiny, int64_t sequences)
{
    tiny->train.micro_batch = sequences / tiny->parallel.dp / tiny->parallel.fsdp / tiny->train.accumulation;
}

static int64_t replicas_of(const struct tiny *tiny)
{
    return tiny->parallel.dp * tiny->parallel.fsdp;
}

void layout_alone(struct tiny *tiny)
{
    tiny->train.micro_batch *= replicas_of(tiny) * tiny->train.accumulation;
    tiny->train.accumulation           = 1;
    tiny->train.recompute              = RECOMPUTE_NONE;
    tiny->train.overlap_microbatches   = false;
    tiny->train.delay_weight_gradients = false;
    option_set_defaults(parallel_options, &tiny->parallel);
}

void layout_alone_in_turn(struct tiny *tiny)
{
    int64_t micro_batch = tiny->train.micro_batch,
            sequences   = micro_batch * replicas_of(tiny) * tiny->train.accumulation;
    layout_alone(tiny);
    tiny->train.micro_batch  = micro_batch;
    tiny->train.accumulation = sequences / micro_batch;
}

// Appends an option to the row, unless its value is the default of tiny_init.
static void append(char name[LAYOUT_NAME_BYTES], const struct option *option, const void *section, const void *usual)
{
    char   value[VALUE_BYTES], other[VALUE_BYTES];
    size_t length = strlen(name);
    option_print(option, section, value, sizeof(value));
    option_print(option, usual, other, sizeof(other));
    if (strcmp(value, other) == 0) {
        return;
    }
    int written =
        snprintf(name + length, LAYOUT_NAME_BYTES - length, "%s%s %s", length > 0 ? "; " : "", option->key, value);
    if ((size_t)written >= LAYOUT_NAME_BYTES - length) {
        FATAL(EXIT_INTERNAL, "the name of a layout is too long: %s", name);
    }
}

const char *layout_name(const struct tiny *tiny, char name[LAYOUT_NAME_BYTES])
{
    struct tiny usual;
    tiny_init(&usual);
    name[0] = '\0';
    for (int i = 0; i < SECTIONS; i++) {
        for (const struct option *option = sections[i].options; option->key != NULL; option++) {
            append(name, option, (const char *)tiny + sections[i].offset, (const char *)&usual + sections[i].offset);
        }
    }
    return name;
}
