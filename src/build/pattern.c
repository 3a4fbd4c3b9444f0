// SPDX-License-Identifier: MIT
// Parses the option [model] pattern, which lists the sublayers of the layers. It has runs of layers, "3 x dense,
// experts", or groups of runs, "2 x (dense, experts)". A last run without a number has all remaining layers. As in
// Megatron, a pattern can also have one letter per layer: "MEM*E".
#include "block.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/text.h"

#define LAYER_KIND_ADDRESS(name) &name##_kind,
const struct layer_kind *const layer_kinds[] = {LAYER_KINDS(LAYER_KIND_ADDRESS) NULL};

// Names for layers of attention and an MLP or experts. In models with kv_rank, name_layer replaces attention by latent
// attention.
static const struct {
    const char              *name;
    const struct layer_kind *kinds[2];
} layers_by_name[] = {
    {"dense", {&attention_kind, &mlp_kind}},
    {"experts", {&attention_kind, &experts_kind}},
};
enum { NAMED_LAYERS = sizeof(layers_by_name) / sizeof(layers_by_name[0]), WORD_BYTES = 64, LAYERS_MAX = 4096 };

// Returns the kind that a pattern calls `name`, or NULL. Patterns do not name the embedding, the head or MTP modules.
static const struct layer_kind *find_kind(const char *name)
{
    for (const struct layer_kind *const *kind = layer_kinds; *kind != NULL; kind++) {
        if (strcmp((*kind)->name, name) == 0 && !(*kind)->begins && !(*kind)->ends) {
            return *kind;
        }
    }
    return NULL;
}

static bool name_layer(struct layer_run *run, const struct model_config *model, const char *name)
{
    for (int i = 0; i < NAMED_LAYERS; i++) {
        if (strcmp(layers_by_name[i].name, name) == 0) {
            run->count = 2;
            memcpy(run->kinds, layers_by_name[i].kinds, sizeof(layers_by_name[i].kinds));
            run->kinds[0] = model->kv_rank > 0 ? &latent_kind : run->kinds[0];
            return true;
        }
    }
    return false;
}

// Copies the next word of letters, digits and underscores, or a single other character, to `word`; "" at the end of the
// text. Returns the text after it.
static const char *read_word(const char *text, char word[WORD_BYTES])
{
    size_t length = 0;
    while (isspace((unsigned char)*text)) {
        text++;
    }
    while ((isalnum((unsigned char)*text) || *text == '_') && length + 1 < WORD_BYTES) {
        word[length++] = *text++;
    }
    if (length == 0 && *text != '\0') {
        word[length++] = *text++;
    }
    word[length] = '\0';
    return text;
}

// Returns the error for a word that is not a layer. It names every kind that a layer can have.
static status unknown(const struct model_config *model, const char *word)
{
    struct text_buffer names = {.text = NULL};
    for (const struct layer_kind *const *kind = layer_kinds; *kind != NULL; kind++) {
        if (find_kind((*kind)->name) != NULL) {
            text_append(&names, "%s%s", names.length > 0 ? ", " : "", (*kind)->name);
        }
    }
    status result = fail("[model] pattern = %s: \"%s\" is not a layer: use dense, experts, or kinds joined by + (%s), "
                         "each with a count, e.g. 3 x dense, 58 x experts or 2 x (dense, experts)",
                         model->pattern, word, names.text);
    text_free(&names);
    return result;
}

static status add_kind(struct layer_run *run, const struct layer_kind *kind, const struct model_config *model)
{
    for (int32_t i = 0; i < run->count; i++) {
        FAIL_IF(run->kinds[i]->norm == kind->norm, "[model] pattern = %s: a layer has %s or %s, not both",
                model->pattern, run->kinds[i]->name, kind->name);
    }
    FAIL_IF(run->count == LAYER_SUBLAYERS, "[model] pattern = %s: a layer has at most %d kinds", model->pattern,
            (int)LAYER_SUBLAYERS);
    run->kinds[run->count++] = kind;
    return OK;
}

// Reads the kinds of a layer, joined by +. `word` has the first kind on entry, and the word after the last kind on
// return.
static status read_kinds(struct layer_run *run, const struct model_config *model, const char **text, char *word)
{
    if (name_layer(run, model, word)) {
        *text = read_word(*text, word);
        return OK;
    }
    for (;;) {
        const struct layer_kind *kind = find_kind(word);
        if (kind == NULL) {
            return unknown(model, word);
        }
        TRY(add_kind(run, kind, model));
        *text = read_word(*text, word);
        if (strcmp(word, "+") != 0) {
            return OK;
        }
        *text = read_word(*text, word);
    }
}

// Reads a count, such as "3 x", and the word after it. Sets number to -1 if the text does not start with a count.
static status read_number(int64_t *number, const struct model_config *model, const char **text, char *word)
{
    *number = -1;
    *text   = read_word(*text, word);
    if (isdigit((unsigned char)word[0])) {
        char *end;
        *number = strtoll(word, &end, 10);
        if (*end != '\0' || *number < 1 || *number > LAYERS_MAX) {
            return unknown(model, word);
        }
        *text = read_word(*text, word);
        if (strcmp(word, "x") != 0) {
            return unknown(model, word);
        }
        *text = read_word(*text, word);
    }
    return OK;
}

// Returns the kind of a layer in a pattern with one letter per layer.
static const struct layer_kind *kind_of_letter(const struct model_config *model, char letter)
{
    return letter == 'M'   ? &mamba_kind
           : letter == '-' ? &mlp_kind
           : letter == 'E' ? &experts_kind
                           : (model->kv_rank > 0 ? &latent_kind : &attention_kind);
}

static status add_run(struct layer_pattern *pattern, const struct model_config *model, const struct layer_run *run)
{
    FAIL_IF(pattern->count == PATTERN_RUNS_MAX, "[model] pattern = %s: has more than %d runs of layers", model->pattern,
            (int)PATTERN_RUNS_MAX);
    pattern->runs[pattern->count++] = *run;
    return OK;
}

static int64_t count_layers(const struct layer_pattern *pattern)
{
    int64_t layers = 0;
    for (int i = 0; i < pattern->count; i++) {
        layers += pattern->runs[i].layers;
    }
    return layers;
}

// Reads a group of runs after its opening parenthesis, and repeats the runs `times` times. If the last group of a
// pattern has no number, its runs are repeated until all layers are assigned.
static status read_group(struct layer_pattern *pattern, const struct model_config *model, int64_t times,
                         const char **text, char *word)
{
    int first = pattern->count;
    do {
        struct layer_run run;
        TRY(read_number(&run.layers, model, text, word));
        run = (struct layer_run){.layers = run.layers < 0 ? 1 : run.layers};
        TRY(read_kinds(&run, model, text, word));
        TRY(add_run(pattern, model, &run));
    } while (strcmp(word, ",") == 0);
    if (strcmp(word, ")") != 0) {
        return unknown(model, word);
    }
    *text     = read_word(*text, word);
    int  end  = pattern->count;
    bool ends = times < 0 && word[0] == '\0';
    for (int64_t i = end - first; ends ? count_layers(pattern) < model->layers : i < times * (end - first); i++) {
        TRY(add_run(pattern, model, &pattern->runs[first + i % (end - first)]));
    }
    struct layer_run *last = &pattern->runs[pattern->count - 1];
    int64_t           more = count_layers(pattern) - model->layers;
    last->layers -= ends && more > 0 && more < last->layers ? more : 0;
    return OK;
}

// Reads one run or group, and the comma after it. A run without a number has one layer, except the last run of the
// pattern: it gets layers = -1, which means all remaining layers, at least one.
static status read_runs(struct layer_pattern *pattern, const struct model_config *model, const char **text)
{
    char    word[WORD_BYTES];
    int64_t number;
    TRY(read_number(&number, model, text, word));
    if (strcmp(word, "(") == 0) {
        TRY(read_group(pattern, model, number, text, word));
    } else {
        struct layer_run run = {.layers = number};
        TRY(read_kinds(&run, model, text, word));
        run.layers = number < 0 && word[0] != '\0' ? 1 : number;
        TRY(add_run(pattern, model, &run));
    }
    if (strcmp(word, ",") != 0 && word[0] != '\0') {
        return unknown(model, word);
    }
    *text = word[0] == '\0' ? NULL : *text;
    return OK;
}

enum { LETTERS_END = '/' };
static const char letters[] = "M*-E";

// Returns whether the pattern has one letter per layer, which is how Megatron writes hybrid models.
static bool has_letters(const char *text)
{
    size_t length = strspn(text, letters);
    return length > 0 && (text[length] == '\0' || text[length] == LETTERS_END);
}

// Reads the layers of the MTP modules: each module has a slash and the letters of its layers, and all modules are the
// same.
static status read_modules(struct layer_run *run, const struct model_config *model, const char *text)
{
    size_t  each  = strcspn(text + 1, "/");
    int64_t count = 0;
    for (const char *at = text; *at != '\0'; at += each + 1) {
        FAIL_IF(strncmp(at, text, each + 1) != 0 || strspn(at + 1, letters) < each || each == 0,
                "[model] pattern = %s: after each / come the layers of an MTP module, which are the same in all "
                "modules, e.g. /*E/*E",
                model->pattern);
        count++;
    }
    FAIL_IF(count != model->predicted_tokens,
            "[model] pattern = %s has %" PRId64 " MTP modules, but predicted_tokens = %" PRId64 ": change one of them",
            model->pattern, count, model->predicted_tokens);
    *run = (struct layer_run){.layers = count};
    for (size_t i = 0; i < each; i++) {
        TRY(add_kind(run, kind_of_letter(model, text[1 + i]), model));
    }
    return OK;
}

static status read_letters(struct layer_pattern *pattern, struct layer_run *last, const struct model_config *model,
                           const char *text)
{
    size_t length = strspn(text, letters);
    for (size_t i = 0; i < length; i++) {
        *last = (struct layer_run){.layers = 1, .count = 1, .kinds = {kind_of_letter(model, text[i])}};
        TRY(add_run(pattern, model, last));
    }
    return text[length] == '\0' ? OK : read_modules(last, model, text + length);
}

// Returns the MTP modules as a run: the first part of a module, the sublayers of `last`, and its last part. last: the
// last layer, or the layers of a module that the pattern names after a slash.
static struct layer_run predicting(const struct layer_run *last, const struct model_config *model)
{
    struct layer_run run = {.layers = model->predicted_tokens, .count = last->count + 2, .kinds = {&prediction_kind}};
    memcpy(&run.kinds[1], last->kinds, (size_t)last->count * sizeof(last->kinds[0]));
    run.kinds[last->count + 1] = &prediction_head_kind;
    return run;
}

const char *pattern_of(const struct model_config *model)
{
    return model->pattern[0] != '\0' ? model->pattern : model->experts > 0 ? "experts" : "dense";
}

static status read_words(struct layer_pattern *pattern, const struct model_config *model, const char *text)
{
    int64_t total = 0;
    while (text != NULL) {
        int first = pattern->count;
        TRY(read_runs(pattern, model, &text));
        for (int i = first; i < pattern->count; i++) {
            struct layer_run *run  = &pattern->runs[i];
            int64_t           left = model->layers > total ? model->layers - total : 1;
            run->layers            = run->layers < 0 ? left : run->layers;
            total += run->layers;
        }
    }
    return OK;
}

status pattern_read(struct layer_pattern *pattern, const struct model_config *model)
{
    const char      *text = pattern_of(model);
    struct layer_run last;
    pattern->count = 0;
    if (has_letters(text)) {
        TRY(read_letters(pattern, &last, model, text));
    } else {
        TRY(read_words(pattern, model, text));
        last = pattern->runs[pattern->count - 1];
    }
    FAIL_IF(count_layers(pattern) != model->layers,
            "[model] pattern = %s does not fit layers = %" PRId64 ": its counts add up to %" PRId64
            "; without its count, the last kind fills the remaining layers",
            model->pattern, model->layers, count_layers(pattern));
    pattern->prediction = predicting(&last, model);
    return OK;
}
