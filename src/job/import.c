// SPDX-License-Identifier: MIT
// Translates the job of another program. One table translates names and values to options. Options that depend on
// several values are set afterwards.
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/input.h"
#include "gswbench/number.h"
#include "internal.h"

enum { FILE_BYTES_MAX = 4 << 20 };

// A file and its translation.
struct reader {
    struct import       *import;
    struct import_values values;
    bool                 is_known;    // the table has a name of the file
};

static struct import_value *find_value(struct reader *reader, const char *name)
{
    for (int i = 0; i < reader->values.count; i++) {
        if (strcmp(reader->values.list[i].name, name) == 0 && reader->values.list[i].value != NULL) {
            return &reader->values.list[i];
        }
    }
    return NULL;
}

// Returns the value of a name, or NULL, and marks it as used.
static const char *value_of(struct reader *reader, const char *name)
{
    struct import_value *found = find_value(reader, name);
    if (found != NULL) {
        found->is_used = true;
    }
    return found != NULL ? found->value : NULL;
}

// Returns whether a name has this value, and then marks it as used.
static bool has(struct reader *reader, const char *name, const char *value)
{
    const struct import_value *found = find_value(reader, name);
    return found != NULL && strcmp(found->value, value) == 0 && value_of(reader, name) != NULL;
}

// Returns the value of a name as a number, and then marks it as used.
static int64_t number_of(struct reader *reader, const char *name, int64_t absent)
{
    int64_t                    value = absent;
    const struct import_value *found = find_value(reader, name);
    return found != NULL && number_parse_integer(found->value, &value) && value_of(reader, name) != NULL ? value
                                                                                                         : absent;
}

// Removes values that have no effect in the other program.
static void drop(struct reader *reader, const char *const *names)
{
    for (; *names != NULL; names++) {
        struct import_value *found = find_value(reader, *names);
        if (found != NULL) {
            found->value = NULL;
        }
    }
}

// Returns the place of an option's setting, or that of the next setting.
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

// Returns the value that the settings give to an option, or NULL.
static const char *setting_of(const struct reader *reader, const char *option)
{
    int at = find_setting(reader, option);
    return at < reader->import->settings.count ? strchr(reader->import->settings.items[at], '=') + 1 : NULL;
}

static void set(struct reader *reader, const char *option, const char *value)
{
    struct text_list *list = &reader->import->settings;
    int               at   = find_setting(reader, option);
    assert(at < TEXT_LIST_MAX);    // fewer options have names in other programs
    list->count     = at == list->count ? at + 1 : list->count;
    list->items[at] = arena_format(reader->values.arena, "--from %s=%s", option, value);
}

static void set_number(struct reader *reader, const char *option, int64_t value)
{
    set(reader, option, arena_format(reader->values.arena, "%" PRId64, value));
}

// Sets `ours` to the translated value. Returns false if the list does not have the value; "*" in a list accepts any
// other value.
static bool translate(struct reader *reader, const char *list, const char *value, const char **ours)
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

// Returns the error for a value that is not in the list, with the values that are: "silu, gelu".
static status unsupported(struct reader *reader, const char *name, const char *value, const char *list)
{
    const char *text = "";
    for (const char *at = list; at != NULL && *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        text =
            arena_format(reader->values.arena, "%s%s%.*s", text, *text != '\0' ? ", " : "", (int)strcspn(at, "="), at);
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
            return fail("%s: %s = %s is a shell variable: put its value", reader->values.path, pair->name, pair->value);
        }
        if (row->values == NULL) {
            value = pair->value;
        } else if (!translate(reader, row->values, pair->value, &value)) {
            return unsupported(reader, pair->name, pair->value, row->values);
        }
        if (row->option != NULL && *value != '\0') {
            set(reader, row->option, value);
        }
    }
    return OK;
}

// Sets the pattern of Megatron's moe_layer_freq: "[0]*3+[1]*58", or N for experts in layers 0, N, 2 N and so on.
static status derive_pattern(struct reader *reader, const char *frequency)
{
    int64_t     every   = 1;
    const char *pattern = "";
    if (number_parse_integer(frequency, &every)) {
        if (every > 1) {
            set(reader, "model.pattern",
                arena_format(reader->values.arena, "(experts, %" PRId64 " x dense)", every - 1));
        }
        return OK;
    }
    for (const char *at = frequency; *at != '\0';) {
        char has_experts;
        int  count = 1, length = 0;    // "[0]" is "[0]*1"
        if (sscanf(at, "[%c]%n*%9d%n", &has_experts, &length, &count, &length) < 1 || length == 0 ||
            strchr("01", has_experts) == NULL) {
            return fail("%s: moe_layer_freq = %s is not read; a number or [0]*3+[1]*58 is", reader->values.path,
                        frequency);
        }
        pattern = arena_format(reader->values.arena, "%s%s%d x %s", pattern, *pattern != '\0' ? ", " : "", count,
                               has_experts == '1' ? "experts" : "dense");
        at += length + (at[length] == '+');
    }
    set(reader, "model.pattern", pattern);
    return OK;
}

// Sets the modules that Megatron's selective recompute lists, and the limits of full recompute.
static void derive_recompute(struct reader *reader)
{
    bool is_flag = value_of(reader, "recompute_activations") != NULL;
    bool is_some = has(reader, "recompute_granularity", "selective") || is_flag;
    if (is_some && find_value(reader, "recompute_modules") != NULL) {
        set(reader, "train.recompute", "modules");
        set(reader, "train.recompute_modules", value_of(reader, "recompute_modules"));
    }
    if (has(reader, "recompute_method", "block")) {
        set_number(reader, "train.recompute_layers", number_of(reader, "recompute_num_layers", 0));
    } else if (has(reader, "recompute_num_layers", "1")) {
        has(reader, "recompute_method", "uniform");    // each layer by itself, as here
    }
}

// Sets Megatron's low precision, whatever the order of its arguments and --bf16.
static void derive_precision(struct reader *reader)
{
    bool        has_fp8 = value_of(reader, "fp8_format") != NULL, has_fp4 = value_of(reader, "fp4_format") != NULL;
    const char *recipe = setting_of(reader, "precision.recipe");
    if (has_fp8 || has_fp4) {
        set(reader, "precision.compute", has_fp8 ? "fp8" : "fp4");
    }
    // Here only weights with one scale per tensor can be stored and gathered in FP8.
    bool has_scale = recipe != NULL && (strcmp(recipe, "delayed") == 0 || strcmp(recipe, "current") == 0);
    if (has_fp8 && has_scale && value_of(reader, "fp8_param_gather") != NULL) {
        set(reader, "precision.fp8_weights", "yes");
    }
    if (has(reader, "exp_avg_sq_dtype", "bf16") && has(reader, "exp_avg_dtype", "bf16")) {
        set(reader, "precision.moments", "bf16");
    }
}

// Sets the precision of torchtitan's converters (torchtitan/components/quantization). Float8 without a recipe has one
// scale per tensor.
static status derive_converters(struct reader *reader)
{
    static const char *const sections[] = {"quantize.linear.float8", "float8"};    // newer and older name
    static const char        recipes[]  = "tensorwise=current rowwise=rows rowwise_with_gw_hp=rows";
    const char              *converters = value_of(reader, "model.converters"), *ours = "current";
    bool                     has_float8 = has(reader, "float8.enable_float8_linear", "true");    // until February 2025
    if (converters != NULL && (text_has_word(converters, "mx") || text_has_word(converters, "quantize.linear.mx"))) {
        set(reader, "precision.compute", "fp8");
        set(reader, "precision.recipe", "mxfp8");
    }
    for (int i = 0; i < 2; i++) {
        has_float8 = has_float8 || (converters != NULL && text_has_word(converters, sections[i]));
    }
    for (int i = 0; i < 2 && has_float8; i++) {
        const char *name   = arena_format(reader->values.arena, "%s.recipe_name", sections[i]);
        const char *recipe = value_of(reader, name);
        if (recipe != NULL && !translate(reader, recipes, recipe, &ours)) {
            return unsupported(reader, name, recipe, recipes);
        }
        if (recipe != NULL && strcmp(recipe, "rowwise_with_gw_hp") == 0) {
            set(reader, "precision.fp8_weight_gradients", "no");
        }
        name = arena_format(reader->values.arena, "%s.enable_fsdp_float8_all_gather", sections[i]);
        if (has(reader, name, "true")) {
            set(reader, "precision.fp8_weights", "yes");
        }
    }
    if (has_float8) {
        set(reader, "precision.compute", "fp8");
        set(reader, "precision.recipe", ours);
    }
    return OK;
}

// Adds torchtitan's settings that depend on several values of the file.
static status derive_torchtitan(struct reader *reader)
{
    int64_t     stages = number_of(reader, "parallelism.pipeline_parallel_degree", 1);
    int64_t     batch  = number_of(reader, "training.local_batch_size", 8);
    const char *mode   = value_of(reader, "activation_checkpoint.mode");
    bool        is_op  = has(reader, "activation_checkpoint.selective_ac_option", "op");
    if (stages > 1) {    // a pipeline splits the local batch into microbatches
        int64_t micro = number_of(reader, "parallelism.pipeline_parallel_microbatch_size", 1);
        set_number(reader, "train.micro_batch", micro);
        if (number_of(reader, "training.global_batch_size", -1) < 0 && micro > 0) {
            set_number(reader, "train.accumulation", batch / micro);
        }
        // Interleaved1F1B has two chunks per stage, torchtitan's default.
        if (has(reader, "parallelism.pipeline_parallel_schedule", "Interleaved1F1B")) {
            set(reader, "parallel.vp", "2");
        }
        if (!has(reader, "parallelism.fsdp_reshard_after_forward", "always")) {
            set(reader, "parallel.reshard", "never");
        }
    }
    if ((mode == NULL || strcmp(mode, "selective") == 0) && !is_op) {
        int64_t every = number_of(reader, "activation_checkpoint.selective_ac_option", 2);
        set(reader, "train.recompute", every > 1 ? "block_every" : "full");
        set_number(reader, "train.recompute_every", every > 1 ? every : 1);
    }
    return derive_converters(reader);
}

// Adds settings that depend on several values of the file.
static status derive(struct reader *reader)
{
    int64_t per_chunk = number_of(reader, "num_layers_per_virtual_pipeline_stage", 0);
    int64_t stages    = number_of(reader, "pipeline_model_parallel_size", 1);
    int64_t dense     = number_of(reader, "first_k_dense_replace", 0);
    int64_t shared    = number_of(reader, "n_shared_experts", 0);
    if (per_chunk > 0 && stages > 0) {
        set_number(reader, "parallel.vp", number_of(reader, "num_layers", 0) / stages / per_chunk);
    }
    if (dense > 0) {
        set(reader, "model.pattern", arena_format(reader->values.arena, "%" PRId64 " x dense, experts", dense));
    }
    const char *frequency = value_of(reader, "moe_layer_freq");
    TRY(frequency != NULL ? derive_pattern(reader, frequency) : OK);
    // With latent attention, the head_dim of Hugging Face is the rotary width, and its qk_head_dim is the whole width.
    const char *key_width = value_of(reader, "qk_nope_head_dim");
    if (key_width != NULL) {
        set(reader, "model.head_dim", key_width);
    }
    if (shared > 0 && value_of(reader, "moe_shared_expert_intermediate_size") == NULL) {
        double width = (double)shared * (double)number_of(reader, "moe_intermediate_size", 0);    // cannot overflow
        set(reader, "model.shared_ffn", arena_format(reader->values.arena, "%.0f", width));
    }
    const char *factor = value_of(reader, "rope_scaling_factor");
    if (value_of(reader, "use_rope_scaling") != NULL) {    // Megatron's
        set(reader, "model.rope_scaling", factor != NULL ? factor : "8");
    }
    if (has(reader, "rope_scaling.rope_type", "llama3")) {
        factor = value_of(reader, "rope_scaling.factor");
        if (factor == NULL) {
            return fail("%s: rope_scaling has no factor: add it", reader->values.path);
        }
        set(reader, "model.rope_scaling", factor);
    }
    derive_recompute(reader);
    derive_precision(reader);
    return reader->import->format == IMPORT_TORCHTITAN ? derive_torchtitan(reader) : OK;
}

// Adds options that a file may leave out: kv_heads = heads, and head_dim = hidden / heads.
static void complete(struct reader *reader)
{
    const char *heads = setting_of(reader, "model.heads"), *hidden = setting_of(reader, "model.hidden");
    int64_t     width, count;
    if (heads != NULL && setting_of(reader, "model.kv_heads") == NULL) {
        set(reader, "model.kv_heads", heads);
    }
    if (heads != NULL && hidden != NULL && setting_of(reader, "model.head_dim") == NULL &&
        number_parse_integer(heads, &count) && number_parse_integer(hidden, &width) && count > 0) {
        set_number(reader, "model.head_dim", width / count);
    }
}

// Sets options whose default in Megatron differs from gswbench's default.
static void set_megatron_defaults(struct reader *reader)
{
    static const char *const groups[] = {"num_query_groups", NULL}, *const channels[] = {"kv_channels", NULL};
    static const char *const latent[]      = {"q_lora_rank",         "kv_lora_rank", "qk_head_dim",
                                              "qk_pos_emb_head_dim", "v_head_dim",   NULL};
    static const char *const defaults[][2] = {{"model.activation", "gelu"},         {"model.norm", "layernorm"},
                                              {"model.positions", "learned"},       {"model.tied", "yes"},
                                              {"model.vocab_multiple", "128"},      {"parallel.context", "ring"},
                                              {"parallel.sequence_parallel", "no"}, {"parallel.dp", "auto"}};
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
        set(reader, defaults[i][0], defaults[i][1]);
    }
    const char *positions = value_of(reader, "position_embedding_type");
    bool        is_rotary = value_of(reader, "use_rotary_position_embeddings") != NULL;
    if (!is_rotary && (positions == NULL || strcmp(positions, "learned_absolute") == 0)) {
        set_number(reader, "model.max_positions", number_of(reader, "max_position_embeddings", 0));
    }
    double hidden = (double)number_of(reader, "hidden_size", 0);
    double ffn    = value_of(reader, "swiglu") != NULL ? 64 * floor(8 * hidden / 3 / 64) : 4 * hidden;
    set(reader, "model.ffn", arena_format(reader->values.arena, "%.0f", ffn));
    if (value_of(reader, "num_experts") != NULL) {
        set(reader, "model.top_k", "2");
    }
    if (value_of(reader, "fp8_format") != NULL) {
        set(reader, "precision.recipe", "delayed");
        set(reader, "precision.fp8_history", "1");
    }
    if (value_of(reader, "group_query_attention") != NULL) {
        set(reader, "model.kv_heads", "1");
    } else {
        drop(reader, groups);    // as in Megatron, which then has a key and value head for each query head
    }
    if (value_of(reader, "multi_latent_attention") != NULL) {
        set(reader, "model.kv_rank", "32");
        set(reader, "model.head_dim", "128");
        set(reader, "model.rope_dim", "64");
        set(reader, "model.value_dim", "128");
        drop(reader, channels);
    } else {
        drop(reader, latent);
    }
    if (value_of(reader, "disable_bias_linear") == NULL) {
        set(reader, "model.attention_bias", "yes");
        set(reader, "model.mlp_bias", "yes");
    }
}

// Sets the model preset and torchtitan's defaults. torchtitan selects a model by name and flavor, such as "llama3" and
// "8B".
static status set_torchtitan_defaults(struct reader *reader)
{
    static const char presets[] = "8B=llama3.1-8b 70B=llama3.1-70b 405B=llama3.1-405b";
    const char       *flavor = value_of(reader, "model.flavor"), *name = value_of(reader, "model.name"), *preset;
    name   = name != NULL ? name : "llama3";
    flavor = flavor != NULL ? flavor : "debugmodel";
    if (strcmp(name, "llama3") != 0 || !translate(reader, presets, flavor, &preset)) {
        return fail("%s: the sizes of model %s %s are not known; those of llama3 8B, 70B and 405B are: start from "
                    "gswbench init --model NAME",
                    reader->values.path, name, flavor);
    }
    set(reader, "model.preset", preset);
    set(reader, "parallel.fsdp", "auto");
    set(reader, "train.micro_batch", "8");
    return OK;
}

// Sets the family of a model type in config.json, with the features of its Hugging Face class. Fails for types with
// layers that this program does not have.
static status set_class(struct reader *reader)
{
    // Qwen2 has biases on q, k and v, but not on the output projection. attention_bias adds one there: 0.002 % of the
    // parameters of the 14B model. Other programs could not read such an export, so its family is gswbench.
    static const struct {
        const char *type, *family, *qk_norm, *attention_bias;
    } classes[]      = {{"llama", "llama", "no", NULL},
                        {"mistral", "llama", "no", NULL},
                        {"mixtral", "mixtral", "no", NULL},
                        {"qwen2", "gswbench", "no", "yes"},
                        {"qwen3", "qwen3", "yes", NULL},
                        {"qwen3_moe", "qwen3_moe", "yes", NULL},
                        {"deepseek_v3", "deepseek_v3", "no", NULL},
                        {"kimi_k2", "deepseek_v3", "no", NULL},
                        {"nemotron_h", "gswbench", "no", NULL}};
    const char *type = value_of(reader, "model_type");
    for (size_t i = 0; type != NULL && i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (strcmp(classes[i].type, type) == 0) {
            set(reader, "model.family", classes[i].family);
            set(reader, "model.qk_norm", classes[i].qk_norm);
            if (classes[i].attention_bias != NULL) {
                set(reader, "model.attention_bias", classes[i].attention_bias);
            }
            if (strcmp(type, "nemotron_h") == 0) {
                set(reader, "model.positions", "none");
                set(reader, "model.router_score", value_of(reader, "n_routed_experts") != NULL ? "sigmoid" : "softmax");
            }
            return OK;
        }
    }
    return fail("%s: model_type = %s is not read; llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, deepseek_v3, "
                "kimi_k2 and nemotron_h are: start from gswbench init --model NAME, and change the sizes",
                reader->values.path, type != NULL ? type : "(missing)");
}

// Lists the names that set nothing.
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
        set(reader, "parallel.fsdp", "auto");
        TRY(set_class(reader));
    } else if (*format == IMPORT_MEGATRON) {
        set_megatron_defaults(reader);
    } else {
        TRY(set_torchtitan_defaults(reader));
    }
    TRY(translate_values(reader));
    TRY(derive(reader));
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
