// SPDX-License-Identifier: MIT
// Translates a job of Hugging Face, Megatron or torchtitan to options. The table in import_names.c translates single
// names and values. The derive functions then set options that depend on several values.
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/input.h"
#include "gswbench/number.h"
#include "internal.h"

enum { FILE_BYTES_MAX = 4 << 20 };

struct import_value *reader_find(struct reader *reader, const char *name)
{
    for (int i = 0; i < reader->values.count; i++) {
        if (strcmp(reader->values.list[i].name, name) == 0 && reader->values.list[i].value != NULL) {
            return &reader->values.list[i];
        }
    }
    return NULL;
}

const char *reader_value(struct reader *reader, const char *name)
{
    struct import_value *found = reader_find(reader, name);
    if (found != NULL) {
        found->is_used = true;
    }
    return found != NULL ? found->value : NULL;
}

bool reader_has(struct reader *reader, const char *name, const char *value)
{
    const struct import_value *found = reader_find(reader, name);
    return found != NULL && strcmp(found->value, value) == 0 && reader_value(reader, name) != NULL;
}

int64_t reader_number(struct reader *reader, const char *name, int64_t absent)
{
    int64_t                    value = absent;
    const struct import_value *found = reader_find(reader, name);
    return found != NULL && number_parse_integer(found->value, &value) && reader_value(reader, name) != NULL ? value
                                                                                                             : absent;
}

void reader_drop(struct reader *reader, const char *names)
{
    for (int i = 0; i < reader->values.count; i++) {
        if (text_has_word(names, reader->values.list[i].name)) {
            reader->values.list[i].value = NULL;
        }
    }
}

// Returns the index of an option's setting, or of the next new setting if the option has none.
static int find_setting(const struct reader *reader, const char *option)
{
    int    at     = 0;
    size_t length = strlen(option);
    while (at < reader->import->settings.count) {
        const char *setting = reader->import->settings.items[at] + strlen("--from ");
        if (strncmp(setting, option, length) == 0 && setting[length] == '=') {
            break;
        }
        at++;
    }
    return at;
}

const char *reader_setting(const struct reader *reader, const char *option)
{
    int at = find_setting(reader, option);
    return at < reader->import->settings.count ? strchr(reader->import->settings.items[at], '=') + 1 : NULL;
}

void reader_set(struct reader *reader, const char *option, const char *value)
{
    struct text_list *list = &reader->import->settings;
    int               at   = find_setting(reader, option);
    assert(at < TEXT_LIST_MAX);    // the table of names has fewer options than that
    list->count     = at == list->count ? at + 1 : list->count;
    list->items[at] = arena_format(reader->values.arena, "--from %s=%s", option, value);
}

void reader_set_all(struct reader *reader, const char *settings)
{
    for (const char *at = settings; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        int option = (int)strcspn(at, "="), length = (int)strcspn(at, " ");
        reader_set(reader, arena_format(reader->values.arena, "%.*s", option, at),
                   arena_format(reader->values.arena, "%.*s", length - option - 1, at + option + 1));
    }
}

void reader_set_number(struct reader *reader, const char *option, int64_t value)
{
    reader_set(reader, option, arena_format(reader->values.arena, "%" PRId64, value));
}

bool reader_translate(struct reader *reader, const char *list, const char *value, const char **ours)
{
    for (const char *at = list; *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " "), name = strcspn(at, "= ");
        if (at[name] == '=' && name == strlen(value) && strncmp(at, value, name) == 0) {
            *ours = arena_format(reader->values.arena, "%.*s", (int)(length - name - 1), at + name + 1);
            return true;
        }
        at += length;
    }
    *ours = value;
    return strchr(list, '*') != NULL;
}

status import_unsupported(struct reader *reader, const char *name, const char *value, const char *list)
{
    const char *text = "";
    for (const char *at = list; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        text =
            arena_format(reader->values.arena, "%s%s%.*s", text, *text != '\0' ? ", " : "", (int)strcspn(at, "="), at);
    }
    if (*text == '\0' || strcmp(text, "false") == 0) {
        return fail("%s: %s = %s is not supported: remove it in a copy of this file", reader->values.path, name, value);
    }
    return fail("%s: %s = %s is not supported: set it to one of %s in a copy of this file", reader->values.path, name,
                value, text);
}

static status translate_values(struct reader *reader)
{
    for (int i = 0; i < reader->values.count; i++) {
        struct import_value      *pair = &reader->values.list[i];
        const struct import_name *row  = import_find_name(pair->name);
        const char               *value;
        if (row == NULL || pair->value == NULL) {
            continue;
        }
        pair->is_used    = true;
        reader->is_known = true;
        if (strchr(pair->value, '$') != NULL) {
            return fail("%s: %s = %s is a shell variable without one value in the file: put its value",
                        reader->values.path, pair->name, pair->value);
        }
        if (row->values == NULL) {
            value = pair->value;
        } else if (!reader_translate(reader, row->values, pair->value, &value)) {
            return import_unsupported(reader, pair->name, pair->value, row->values);
        }
        if (row->option != NULL && *value != '\0') {
            reader_set(reader, row->option, value);
        }
    }
    return OK;
}

void reader_set_windows(struct reader *reader, int64_t windows, const char *kind)
{
    const char *full = strcmp(kind, "mlp") == 0 ? "dense" : kind;
    reader_set(reader, "model.family", "gswbench");    // other families have no windows
    reader_set(reader, "model.pattern",
               windows == 0   ? arena_format(reader->values.arena, "window_attention + %s", kind)
               : windows == 1 ? arena_format(reader->values.arena, "(window_attention + %s, %s)", kind, full)
                              : arena_format(reader->values.arena, "(%" PRId64 " x window_attention + %s, %s)", windows,
                                             kind, full));
}

// Sets window attention from a list like ["sliding_attention","full_attention"], in which every Nth layer is full.
static status derive_layer_types(struct reader *reader, const char *layers, const char *kind)
{
    int64_t period = 0, layer = 0, windows = 0;
    for (const char *at = strchr(layers, '"'); at != NULL; at = strchr(at, '"')) {
        size_t length    = strcspn(at + 1, "\"");
        bool   is_window = length == 17 && strncmp(at + 1, "sliding_attention", length) == 0;
        bool   is_full   = length == 14 && strncmp(at + 1, "full_attention", length) == 0;
        layer++;
        period = period == 0 && is_full ? layer : period;
        windows += is_window;
        if ((!is_window && !is_full) || (period > 0 && is_full != (layer % period == 0))) {
            return fail("%s: layer_types is not read: only full_attention, and sliding_attention with every Nth layer "
                        "full_attention, are",
                        reader->values.path);
        }
        at += length + 1 + (at[length + 1] == '"');
    }
    if (windows > 0) {
        reader_set_windows(reader, period > 0 ? period - 1 : 0, kind);
    }
    return OK;
}

// Returns a list of layers as letters of model.pattern: "ME" for ["mamba","moe"]; NULL if a name has no letter.
static const char *find_letters(struct reader *reader, const char *list)
{
    static const char *const names[] = {"mamba", "attention", "mlp", "moe"};
    const char              *letters = "";
    for (const char *at = strchr(list, '"'); at != NULL;) {
        size_t length = strcspn(at + 1, "\""), kind = 0;
        while (kind < 4 && (strlen(names[kind]) != length || strncmp(at + 1, names[kind], length) != 0)) {
            kind++;
        }
        if (kind == 4) {
            return NULL;
        }
        letters = arena_format(reader->values.arena, "%s%c", letters, "M*-E"[kind]);
        at      = strchr(at + length + 1 + (at[length + 1] == '"'), '"');
    }
    return letters;
}

// Sets a pattern with one letter per layer, which also tells the number of layers and of MTP modules.
static status derive_letters(struct reader *reader)
{
    enum { LONG = 256 };    // model.pattern takes no text of this length
    const char *list = reader_value(reader, "layers_block_type"), *letters = reader_setting(reader, "model.pattern");
    const char *mtp     = reader_value(reader, "mtp_hybrid_override_pattern"),
               *modules = reader_value(reader, "mtp_layers_block_type");
    int64_t depth       = reader_number(reader, "mtp_num_layers", reader_number(reader, "num_nextn_predict_layers", 0));
    letters             = list != NULL ? find_letters(reader, list) : letters;
    mtp                 = modules != NULL ? find_letters(reader, modules) : mtp;
    if ((list != NULL && letters == NULL) || (modules != NULL && mtp == NULL)) {
        return fail("%s: layers_block_type is not read: only mamba, attention, mlp and moe are", reader->values.path);
    }
    if (letters == NULL) {
        return OK;
    }
    if (strchr(letters, '|') != NULL) {
        return fail("%s: %s has pipeline stages (|), which are not supported: leave | out", reader->values.path,
                    letters);
    }
    for (int64_t i = 0; i < depth && mtp != NULL && (i > 0 || strchr(letters, '/') == NULL) && strlen(letters) < LONG;
         i++) {
        letters = arena_format(reader->values.arena, "%s/%s", letters, mtp);
    }
    const char *end = letters + strcspn(letters, "/");
    reader_set(reader, "model.pattern", letters);
    reader_set_number(reader, "model.layers", end - letters);
    for (depth = 0; *end != '\0'; end++) {
        depth += *end == '/';
    }
    if (depth > 0) {
        reader_set_number(reader, "model.predicted_tokens", depth);
    }
    return OK;
}

// Adds settings of Hugging Face that depend on several values.
static status derive_hugging_face(struct reader *reader)
{
    int64_t     dense  = reader_number(reader, "first_k_dense_replace", 0);
    int64_t     shared = reader_number(reader, "n_shared_experts", 0);
    int64_t     window = reader_number(reader, "sliding_window", 0);
    const char *kind   = reader_find(reader, "num_local_experts") != NULL ? "experts" : "mlp";
    const char *layers = reader_value(reader, "layer_types"), *type = reader_value(reader, "model_type");
    const char *frequency = reader_value(reader, "moe_layer_freq");
    if (frequency != NULL && strcmp(frequency, "1") != 0) {
        return fail("%s: moe_layer_freq = %s is not read; 1 is", reader->values.path, frequency);
    }
    if (dense > 0) {
        reader_set(reader, "model.pattern", arena_format(reader->values.arena, "%" PRId64 " x dense, experts", dense));
    }
    TRY(layers != NULL ? derive_layer_types(reader, layers, kind) : OK);
    if (layers == NULL && window > 0 && text_has_word("mistral mixtral", type)) {
        reader_set_windows(reader, 0, kind);
    }
    if (reader_setting(reader, "model.pattern") != NULL &&
        strstr(reader_setting(reader, "model.pattern"), "window") != NULL) {
        reader_set_number(reader, "model.window", window);
    }
    if (reader_has(reader, "attention_bias", "true") || reader_has(reader, "mlp_bias", "true")) {
        reader_set(reader, "model.family", "gswbench");    // other families have no biases
    }
    // With latent attention, Hugging Face's head_dim is the rotary width; ours is the width of the non-rotary part.
    const char *key_width = reader_value(reader, "qk_nope_head_dim");
    if (key_width != NULL) {
        reader_set(reader, "model.head_dim", key_width);
    }
    if (shared > 0 && reader_value(reader, "moe_shared_expert_intermediate_size") == NULL) {
        double width = (double)shared * (double)reader_number(reader, "moe_intermediate_size", 0);    // cannot overflow
        reader_set(reader, "model.shared_ffn", arena_format(reader->values.arena, "%.0f", width));
    }
    if (reader_has(reader, "rope_scaling.rope_type", "llama3")) {
        const char *factor = reader_value(reader, "rope_scaling.factor");
        if (factor == NULL) {
            return fail("%s: rope_scaling has no factor: add it", reader->values.path);
        }
        reader_set(reader, "model.rope_scaling", factor);
    }
    return OK;
}

// Adds options that a file may leave out: kv_heads = heads, and head_dim = hidden / heads.
static void complete(struct reader *reader)
{
    const char *heads = reader_setting(reader, "model.heads"), *hidden = reader_setting(reader, "model.hidden");
    int64_t     width, count;
    if (heads != NULL && reader_setting(reader, "model.kv_heads") == NULL) {
        reader_set(reader, "model.kv_heads", heads);
    }
    if (heads != NULL && hidden != NULL && reader_setting(reader, "model.head_dim") == NULL &&
        number_parse_integer(heads, &count) && number_parse_integer(hidden, &width) && count > 0) {
        reader_set_number(reader, "model.head_dim", width / count);
    }
}

// Sets the family of a model type in config.json, with the features of its Hugging Face class. Fails for types with
// layers that this program does not have.
static status set_class(struct reader *reader)
{
    // Qwen2 has biases on q, k and v, but not on the output projection. attention_bias adds one there: 0.002 % of the
    // parameters of the 14B model. Other programs could not read such an export, so its family is gswbench.
    static const struct {
        const char *type, *settings;
    } classes[]      = {{"llama", "model.family=llama model.qk_norm=no"},
                        {"mistral", "model.family=llama model.qk_norm=no"},
                        {"mixtral", "model.family=mixtral model.qk_norm=no"},
                        {"qwen2", "model.family=gswbench model.qk_norm=no model.attention_bias=yes"},
                        {"qwen3", "model.family=qwen3 model.qk_norm=yes"},
                        {"qwen3_moe", "model.family=qwen3_moe model.qk_norm=yes"},
                        {"deepseek_v3", "model.family=deepseek_v3 model.qk_norm=no"},
                        {"kimi_k2", "model.family=deepseek_v3 model.qk_norm=no"},
                        {"deepseek_v2", "model.family=gswbench model.qk_norm=no"},
                        {"gpt_oss", "model.family=gswbench model.qk_norm=no model.attention_bias=yes "
                                         "model.attention_sinks=yes model.mlp_bias=yes model.router_offset=yes"},
                        {"nemotron_h", "model.family=gswbench model.qk_norm=no model.positions=none"}};
    const char *type = reader_value(reader, "model_type");
    for (size_t i = 0; type != NULL && i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (strcmp(classes[i].type, type) == 0) {
            reader_set_all(reader, classes[i].settings);
            if (strcmp(type, "nemotron_h") == 0) {
                reader_set(reader, "model.router_score",
                           reader_value(reader, "n_routed_experts") != NULL ? "sigmoid" : "softmax");
            }
            return OK;
        }
    }
    if (type == NULL) {
        return fail("%s has no model_type: of JSON files only config.json of Hugging Face is read",
                    reader->values.path);
    }
    return fail(
        "%s: model_type = %s is not read; llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, deepseek_v2, deepseek_v3, "
        "kimi_k2, gpt_oss and nemotron_h are: start from gswbench init --model NAME, and change the sizes",
        reader->values.path, type);
}

// Lists the names in the file that set no option.
static const char *list_unused(const struct reader *reader)
{
    const char *list = "";
    for (int i = 0; i < reader->values.count; i++) {
        if (!reader->values.list[i].is_used) {
            list = arena_format(reader->values.arena, "%s%s%s", list, *list != '\0' ? ", " : "",
                                reader->values.list[i].name);
        }
    }
    return list;
}

static status translate_file(struct reader *reader, char *text)
{
    enum import_format *format = &reader->import->format;
    TRY(import_read_values(&reader->values, format, text));
    if (*format == IMPORT_HUGGING_FACE) {
        reader_set(reader, "parallel.fsdp", "auto");
        TRY(set_class(reader));
    } else if (*format == IMPORT_MEGATRON) {
        import_set_megatron_defaults(reader);
    } else {
        TRY(import_set_torchtitan_defaults(reader));
    }
    TRY(translate_values(reader));
    TRY(derive_letters(reader));
    TRY(*format == IMPORT_HUGGING_FACE ? derive_hugging_face(reader)
        : *format == IMPORT_MEGATRON   ? import_derive_megatron(reader)
                                       : import_derive_torchtitan(reader));
    TRY(import_derive_precision(reader));
    complete(reader);
    reader->import->passed = list_unused(reader);
    return reader->is_known ? OK
                            : fail("%s has no name that means something here, such as num_layers", reader->values.path);
}

status import_read(struct import *import, const char *path, struct arena *arena)
{
    struct reader *reader = arena_allocate(arena, sizeof(*reader));
    char          *text;
    size_t         bytes;
    *import       = (struct import){.passed = ""};
    *reader       = (struct reader){.import = import, .values = {.arena = arena, .path = path}};
    status result = input_load(path, FILE_BYTES_MAX, &text, &bytes);
    if (failed(&result)) {
        return fail("%s: %s", path, result.text);
    }
    result = translate_file(reader, text);
    free(text);
    return result;
}
