// SPDX-License-Identifier: MIT
// Reads the job of another program. Its file becomes a list of names and values, which one table translates to options.
// Options that depend on several values are set afterwards.
#define _DEFAULT_SOURCE    // strsep
#include "gswbench/job.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/input.h"
#include "gswbench/number.h"

enum { PAIRS_MAX = 512, FILE_BYTES_MAX = 4 << 20 };

struct pair {
    const char *name, *value;    // the name has underscores for dashes; in TOML it is "section.name"
    bool        is_used;
};

struct reader {
    struct import *import;
    struct arena  *arena;
    const char    *path;
    struct pair    pairs[PAIRS_MAX];
    int            count;
};

// One row per option: its names in other programs, and translations of its values as "theirs=ours", both separated by
// spaces. Without translations (NULL) the value is taken unchanged; "*" takes any other value unchanged. "theirs=" sets
// nothing, and neither does a row without an option (NULL), whose names have no effect here.
#define YES_NO "true=yes false=no"
static const struct translation {
    const char *names, *option, *values;
} translations[] = {
    // Rows for the sizes of a model.
    {"num_layers num_hidden_layers n_layer n_layers", "model.layers", NULL},
    {"hidden_size n_embd d_model", "model.hidden", NULL},
    {"num_attention_heads n_head n_heads", "model.heads", NULL},
    {"num_query_groups num_key_value_heads n_kv_heads", "model.kv_heads", NULL},
    {"kv_channels head_dim qk_nope_head_dim qk_head_dim", "model.head_dim", NULL},
    {"q_lora_rank", "model.q_rank", NULL},
    {"kv_lora_rank", "model.kv_rank", NULL},
    {"qk_rope_head_dim qk_pos_emb_head_dim", "model.rope_dim", NULL},
    {"v_head_dim", "model.value_dim", NULL},
    {"ffn_hidden_size intermediate_size", "model.ffn", NULL},
    {"vocab_size", "model.vocab", NULL},
    {"make_vocab_size_divisible_by", "model.vocab_multiple", NULL},
    // Rows for the composition of a layer.
    {"hidden_act", "model.activation", "silu=swiglu gelu=gelu gelu_new=gelu gelu_pytorch_tanh=geglu relu2=relu2"},
    {"mlp_hidden_act", "model.activation", "relu2=relu2"},
    {"swiglu", "model.activation", "true=swiglu false="},
    {"squared_relu", "model.activation", "true=relu2 false="},
    {"normalization", "model.norm", "RMSNorm=rmsnorm LayerNorm=layernorm"},
    {"apply_layernorm_1p", "model.norm", "true=layernorm1p false="},
    {"norm_epsilon layernorm_epsilon rms_norm_eps layer_norm_epsilon", "model.norm_epsilon", NULL},
    {"init_method_std initializer_range", "model.init_deviation", NULL},
    {"position_embedding_type", "model.positions", "rope=rotary learned_absolute=learned none=none"},
    {"use_rotary_position_embeddings", "model.positions", "true=rotary false="},
    {"max_position_embeddings", NULL, NULL},
    {"rotary_base rope_theta", "model.rope_theta", NULL},
    {"rotary_percent partial_rotary_factor", "model.rope_fraction", NULL},
    {"untie_embeddings_and_output_weights", "model.tied", "true=no false=yes"},
    {"tie_word_embeddings", "model.tied", YES_NO},
    {"qk_layernorm", "model.qk_norm", YES_NO},
    {"add_qkv_bias attention_bias", "model.attention_bias", YES_NO},
    {"mlp_bias", "model.mlp_bias", YES_NO},
    {"mtp_num_layers num_nextn_predict_layers", "model.predicted_tokens", NULL},
    {"hybrid_override_pattern hybrid_layer_pattern", "model.pattern", NULL},
    {"mamba_num_heads", "model.mamba_heads", NULL},
    {"mamba_head_dim", "model.mamba_head_dim", NULL},
    {"mamba_state_dim ssm_state_size", "model.mamba_state", NULL},
    {"mamba_num_groups n_groups", "model.mamba_groups", NULL},
    {"conv_kernel", "model.mamba_conv", NULL},
    {"chunk_size", "model.mamba_chunk", NULL},
    // Rows for experts.
    {"num_experts num_local_experts n_routed_experts", "model.experts", NULL},
    {"moe_router_topk num_experts_per_tok", "model.top_k", NULL},
    {"moe_ffn_hidden_size moe_intermediate_size", "model.expert_ffn", NULL},
    {"moe_latent_size", "model.expert_hidden", NULL},
    {"moe_shared_expert_intermediate_size", "model.shared_ffn", NULL},
    {"moe_router_score_function scoring_func", "model.router_score", "softmax=softmax sigmoid=sigmoid"},
    {"norm_topk_prob", "model.router_normalise", YES_NO},
    {"moe_router_num_groups n_group", "model.router_groups", NULL},
    {"moe_router_group_topk topk_group", "model.router_top_groups", NULL},
    {"moe_router_topk_scaling_factor routed_scaling_factor", "model.router_scale", NULL},
    {"moe_router_bias_update_rate", "model.router_bias_rate", NULL},
    {"moe_expert_capacity_factor", "model.capacity_factor", NULL},
    {"moe_aux_loss_coeff router_aux_loss_coef", "model.auxiliary_loss", NULL},
    // Rows for the parallel layout.
    {"tensor_model_parallel_size tensor_parallel_degree tensor_parallel_size tensor_parallel", "parallel.tp", NULL},
    {"pipeline_model_parallel_size pipeline_parallel_degree pipeline_parallel_size pipeline_parallel", "parallel.pp",
     NULL},
    {"virtual_pipeline_model_parallel_size virtual_pipeline_parallel num_virtual_stages_per_pipeline_rank",
     "parallel.vp", NULL},
    {"pipeline_parallel_schedule", "parallel.schedule", "1F1B=1f1b Interleaved1F1B=1f1b"},
    {"enable_zero_bubble", "parallel.schedule", "true=zero-bubble false=1f1b"},
    {"zero_bubble_v_schedule enable_optimizer_post_validation", NULL, "false="},
    {"context_parallel_size context_parallel_degree context_parallel", "parallel.cp", NULL},
    {"cp_comm_type", "parallel.context", "p2p=ring a2a=exchange allgather=gather"},
    {"expert_model_parallel_size expert_parallel_degree expert_parallel", "parallel.ep", NULL},
    {"expert_tensor_parallel_size expert_tensor_parallel_degree", "parallel.etp", NULL},
    {"data_parallel_shard_degree", "parallel.fsdp", "-1=auto *"},
    {"data_parallel_replicate_degree data_parallel_size", "parallel.dp", NULL},
    {"sequence_parallel", "parallel.sequence_parallel", YES_NO},
    {"use_distributed_optimizer", "parallel.zero", "true=1 false=0"},
    {"overlap_param_gather", "parallel.zero_gather", "true=forward false="},
    {"tp_comm_overlap enable_async_tensor_parallel", "parallel.tp_overlap", YES_NO},
    // Rows for batch, recompute and optimizer.
    {"seq_length seq_len encoder_seq_length sequence_length seq", "train.sequence", NULL},
    {"micro_batch_size local_batch_size training.batch_size mbs", "train.micro_batch", NULL},
    {"global_batch_size", "train.global_batch", "-1=auto *"},
    {"batch_size gbs", "train.global_batch", NULL},
    {"recompute_granularity", "train.recompute", "full=full selective=attention"},
    {"recompute_activations", "train.recompute", "true=attention false="},
    {"activation_checkpoint.mode", "train.recompute", "none=none full=full selective=selective"},
    {"learning_rate optimizer.lr lr", "train.learning_rate", NULL},
    {"optimizer", "train.optimizer", "adam=adamw adamw=adamw muon=muon dist_muon=muon"},
    {"muon_momentum", "train.muon_momentum", NULL},
    {"muon_extra_scale_factor", "train.muon_scale", NULL},
    {"adam_beta1", "train.beta1", NULL},
    {"adam_beta2", "train.beta2", NULL},
    {"adam_eps optimizer.eps", "train.epsilon", NULL},
    {"weight_decay", "train.weight_decay", NULL},
    {"clip_grad max_norm", "train.clip", NULL},
    {"train_iters training.steps train_steps", "run.steps", NULL},
    // Rows for precision.
    {"bf16", "precision.compute", "true=bf16 false="},
    {"grad_reduce_in_bf16", "precision.gradients", "true=bf16 false="},
    {"fp8_format", "precision.compute", "hybrid=fp8 e4m3=fp8"},
    {"fp4_format", "precision.compute", "e2m1=fp4"},
    {"fp4_recipe", "precision.recipe", "nvfp4=nvfp4"},
    {"fp8_recipe", "precision.recipe", "delayed=delayed tensorwise=current blockwise=block mxfp8=mxfp8"},
    {"fp8_amax_history_len", "precision.fp8_history", NULL},
    {"attention_backend", "run.attention", "fused=cudnn auto=auto"},
};
enum { TRANSLATIONS = sizeof(translations) / sizeof(translations[0]) };

// Copies a name without leading dashes, with underscores for dashes.
static void normalise(char *to, size_t bytes, const char *name)
{
    text_copy(to, bytes, name + strspn(name, "-"));
    for (char *at = to; *at != '\0'; at++) {
        *at = *at == '-' ? '_' : *at;
    }
}

// Finds the table row of a name. If "section.name" has no row, finds the row of "name".
static const struct translation *find(const char *name)
{
    const char               *last    = strrchr(name, '.') != NULL ? strrchr(name, '.') + 1 : name;
    const struct translation *by_last = NULL;
    for (int i = 0; i < TRANSLATIONS; i++) {
        if (text_has_word(translations[i].names, name)) {
            return &translations[i];
        }
        by_last = by_last == NULL && text_has_word(translations[i].names, last) ? &translations[i] : by_last;
    }
    return by_last;
}

// Finds the table row of an argument, such as "--seq-length".
static const struct translation *find_argument(const char *argument)
{
    char name[96];
    normalise(name, sizeof(name), argument);
    return find(name);
}

const char *import_find(const char *name)
{
    const struct translation *row = find_argument(name);
    return row != NULL ? row->option : NULL;
}

static status add(struct reader *reader, const char *name, const char *value)
{
    char word[96];
    if (reader->count == PAIRS_MAX) {
        return fail("%s has more than %d names", reader->path, PAIRS_MAX);
    }
    normalise(word, sizeof(word), name);
    reader->pairs[reader->count++] = (struct pair){.name  = arena_format(reader->arena, "%s", word),
                                                   .value = arena_format(reader->arena, "%s", value)};
    return OK;
}

// Returns the last value of a name, or NULL, and marks it as used.
static const char *value_of(struct reader *reader, const char *name)
{
    for (int i = reader->count - 1; i >= 0; i--) {
        if (strcmp(reader->pairs[i].name, name) == 0) {
            reader->pairs[i].is_used = true;
            return reader->pairs[i].value;
        }
    }
    return NULL;
}

static int64_t number_of(struct reader *reader, const char *name, int64_t absent)
{
    int64_t     value = absent;
    const char *text  = value_of(reader, name);
    return text != NULL && number_parse_integer(text, &value) ? value : absent;
}

static void set(struct reader *reader, const char *option, const char *value)
{
    struct text_list *list = &reader->import->settings;
    if (list->count < TEXT_LIST_MAX) {
        list->items[list->count++] = arena_format(reader->arena, "--from %s=%s", option, value);
    }
}

static void set_number(struct reader *reader, const char *option, int64_t value)
{
    set(reader, option, arena_format(reader->arena, "%" PRId64, value));
}

// Sets `ours` to the translated value. Returns false if the list does not have the value; "*" in a list accepts any
// other value.
static bool translate(struct reader *reader, const char *list, const char *value, const char **ours)
{
    for (const char *at = list; *at != '\0'; at += strspn(at, " ")) {
        size_t length = strcspn(at, " "), name = strcspn(at, "= ");
        if (at[name] == '=' && name == strlen(value) && strncmp(at, value, name) == 0) {
            *ours = arena_format(reader->arena, "%.*s", (int)(length - name - 1), at + name + 1);
            return true;
        }
        at += length;
    }
    *ours = value;
    return strchr(list, '*') != NULL;
}

// Returns the accepted values of a list as text for an error: "silu, gelu".
static const char *allowed(struct reader *reader, const char *list)
{
    const char *text = "";
    for (const char *at = list; at != NULL && *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        text = arena_format(reader->arena, "%s%s%.*s", text, *text != '\0' ? ", " : "", (int)strcspn(at, "="), at);
    }
    return text;
}

static status translate_pairs(struct reader *reader)
{
    for (int i = 0; i < reader->count; i++) {
        struct pair              *pair = &reader->pairs[i];
        const struct translation *row  = find(pair->name);
        const char               *value;
        if (row == NULL || strcmp(pair->value, "null") == 0) {
            continue;
        }
        pair->is_used = true;
        if (strchr(pair->value, '$') != NULL) {
            return fail("%s: %s = %s is a shell variable: put its value", reader->path, pair->name, pair->value);
        }
        if (row->values == NULL) {
            value = pair->value;
        } else if (!translate(reader, row->values, pair->value, &value)) {
            return fail("%s: %s = %s has no counterpart here (%s have): change it, and adapt the config afterwards",
                        reader->path, pair->name, pair->value, allowed(reader, row->values));
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
            set(reader, "model.pattern", arena_format(reader->arena, "(experts, %" PRId64 " x dense)", every - 1));
        }
        return OK;
    }
    for (const char *at = frequency; *at != '\0';) {
        char has_experts;
        int  count = 1, length = 0;    // "[0]" is "[0]*1"
        if (sscanf(at, "[%c]%n*%9d%n", &has_experts, &length, &count, &length) < 1 || length == 0 ||
            strchr("01", has_experts) == NULL) {
            return fail("%s: moe_layer_freq = %s is not read; a number or [0]*3+[1]*58 is", reader->path, frequency);
        }
        pattern = arena_format(reader->arena, "%s%s%d x %s", pattern, *pattern != '\0' ? ", " : "", count,
                               has_experts == '1' ? "experts" : "dense");
        at += length + (at[length] == '+');
    }
    set(reader, "model.pattern", pattern);
    return OK;
}

// Adds settings that depend on several values of the file, or on a default of the other program.
static status derive(struct reader *reader)
{
    int64_t layers    = number_of(reader, "num_layers", 0);
    int64_t per_chunk = number_of(reader, "num_layers_per_virtual_pipeline_stage", 0);
    int64_t stages    = number_of(reader, "pipeline_model_parallel_size", 1);
    int64_t dense     = number_of(reader, "first_k_dense_replace", 0);
    if (per_chunk > 0 && stages > 0 && layers > 0) {
        set_number(reader, "parallel.vp", layers / stages / per_chunk);
    }
    if (dense > 0) {
        set(reader, "model.pattern", arena_format(reader->arena, "%" PRId64 " x dense, experts", dense));
    }
    const char *frequency = value_of(reader, "moe_layer_freq");
    TRY(frequency != NULL ? derive_pattern(reader, frequency) : OK);
    // With latent attention, the head_dim of Hugging Face is the rotary width, and its qk_head_dim is the whole width.
    const char *key_width = value_of(reader, "qk_nope_head_dim");
    if (key_width != NULL) {
        set(reader, "model.head_dim", key_width);
    }
    int64_t shared = number_of(reader, "n_shared_experts", 0);
    if (shared > 0 && value_of(reader, "moe_shared_expert_intermediate_size") == NULL) {
        set_number(reader, "model.shared_ffn", shared * number_of(reader, "moe_intermediate_size", 0));
    }
    const char *schedule = value_of(reader, "parallelism.pipeline_parallel_schedule");
    // Interleaved1F1B has two chunks per stage, torchtitan's default.
    bool has_two = schedule != NULL && strcmp(schedule, "Interleaved1F1B") == 0;
    if (has_two && number_of(reader, "parallelism.pipeline_parallel_degree", 1) > 1) {
        set(reader, "parallel.vp", "2");
    }
    const char *method = value_of(reader, "recompute_method");
    if (method != NULL && strcmp(method, "block") == 0) {
        set_number(reader, "train.recompute_layers", number_of(reader, "recompute_num_layers", 0));
    }
    const char *kind = value_of(reader, "rope_scaling.rope_type");
    if (kind != NULL && strcmp(kind, "llama3") == 0) {
        const char *factor = value_of(reader, "rope_scaling.factor");
        if (factor == NULL) {
            return fail("%s: rope_scaling has no factor: add it", reader->path);
        }
        set(reader, "model.rope_scaling", factor);
    }
    return OK;
}

// Returns the value that the settings give to an option, or NULL.
static const char *setting_of(const struct reader *reader, const char *option)
{
    const char *value  = NULL;
    size_t      length = strlen(option);
    for (int i = 0; i < reader->import->settings.count; i++) {
        const char *setting = reader->import->settings.items[i] + strlen("--from ");
        bool        is_it   = strncmp(setting, option, length) == 0 && setting[length] == '=';
        value               = is_it ? setting + length + 1 : value;
    }
    return value;
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

// Reads JSON: all plain values, and the plain values of objects one level down as "object.name". Members of text_config
// count as members of the file, and rope_parameters is the newer name of rope_scaling.
static status read_json(struct reader *reader, json_t *root, const char *prefix)
{
    const char *name;
    json_t     *value;
    json_object_foreach(root, name, value)
    {
        bool is_model = json_is_object(value) && strcmp(name, "text_config") == 0;
        char whole[96];
        snprintf(whole, sizeof(whole), "%s%s", prefix, name);
        if (is_model || (json_is_object(value) && *prefix == '\0')) {
            const char *object = strcmp(name, "rope_parameters") == 0 ? "rope_scaling" : name;
            TRY(read_json(reader, value, is_model ? "" : arena_format(reader->arena, "%s.", object)));
        } else if (json_is_string(value)) {
            TRY(add(reader, whole, json_string_value(value)));
        } else if (!json_is_array(value) && !json_is_object(value)) {
            char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
            TRY(add(reader, whole, text));
            free(text);
        }
    }
    return OK;
}

// Reads the part of TOML that torchtitan's files use: sections, and one plain value per line.
static status read_toml(struct reader *reader, char *text)
{
    char section[64] = "";
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;) {
        line += strspn(line, " \t");
        char *equals = strchr(line, '=');
        if (*line == '[') {
            snprintf(section, sizeof(section), "%.*s.", (int)strcspn(line + 1, "]"), line + 1);
        } else if (isalpha((unsigned char)*line) && equals != NULL) {
            char *value = equals + 1 + strspn(equals + 1, " \t\"'");
            char  name[96];
            value[strcspn(value, "\"'#\r")] = '\0';
            value[strcspn(value, " \t")]    = '\0';
            snprintf(name, sizeof(name), "%s%.*s", section, (int)strcspn(line, " \t="), line);
            TRY(add(reader, name, value));
        }
    }
    return OK;
}

// Returns whether an argument of Megatron takes no value, so that the next word of the script is not its value.
static bool is_flag(const char *argument)
{
    const struct translation *row = find_argument(argument);
    return row != NULL && row->values != NULL && strncmp(row->values, "true=", strlen("true=")) == 0;
}

// Reads Megatron's arguments, in a shell script or alone: --name value, --name=value, --name.
static status read_arguments(struct reader *reader, char *text)
{
    const char *name  = NULL;
    char        quote = '\0';                     // the open quote
    for (char *at = text; *at != '\0'; at++) {    // overwrites comments with spaces
        if (quote != '\0') {
            quote = *at == quote ? '\0' : quote;
        } else if (*at == '"' || *at == '\'') {
            quote = *at;
        } else if (*at == '#' && (at == text || isspace((unsigned char)at[-1]))) {
            memset(at, ' ', strcspn(at, "\n"));
        }
    }
    for (char *word, *rest = text; (word = strsep(&rest, " \t\r\n\"'()\\")) != NULL;) {
        if (strncmp(word, "--", 2) == 0) {
            if (name != NULL) {
                TRY(add(reader, name, "true"));
            }
            char *equals = strchr(word, '=');
            name         = word;
            if (equals != NULL) {
                *equals = '\0';
                TRY(add(reader, word, equals + 1));
                name = NULL;
            }
        } else if (*word != '\0' && name != NULL) {
            TRY(add(reader, name, is_flag(name) ? "true" : word));
            name = NULL;
        }
    }
    return name != NULL ? add(reader, name, "true") : OK;
}

// Sets options whose default in Megatron differs from gswbench's default.
static void set_megatron_defaults(struct reader *reader)
{
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
    set(reader, "model.ffn", arena_format(reader->arena, "%.0f", ffn));
    if (value_of(reader, "num_experts") != NULL) {
        set(reader, "model.top_k", "2");
    }
    if (value_of(reader, "disable_bias_linear") == NULL) {
        set(reader, "model.attention_bias", "yes");
        set(reader, "model.mlp_bias", "yes");
    }
}

// Sets the model preset and fsdp = auto. torchtitan selects a model by name and flavor, such as "llama3" and "8B".
static void set_torchtitan_defaults(struct reader *reader)
{
    static const char presets[] = "8B=llama3.1-8b 70B=llama3.1-70b 405B=llama3.1-405b";
    const char       *flavor = value_of(reader, "model.flavor"), *name = value_of(reader, "model.name"), *preset;
    bool              is_llama = name == NULL || strcmp(name, "llama3") == 0;
    if (is_llama && flavor != NULL && translate(reader, presets, flavor, &preset)) {
        set(reader, "model.preset", preset);
    }
    set(reader, "parallel.fsdp", "auto");
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
                reader->path, type != NULL ? type : "(missing)");
}

static status read_text(struct reader *reader, char *text)
{
    struct import *import = reader->import;
    const char    *start  = text + strspn(text, " \t\r\n");
    json_error_t   wrong;
    status         result;
    if (*start == '{') {
        json_t *root   = json_loads(text, 0, &wrong);
        import->format = "Hugging Face";
        if (root == NULL) {
            return fail("%s:%d: %s", reader->path, wrong.line, wrong.text);
        }
        set(reader, "parallel.fsdp", "auto");
        result = read_json(reader, root, "");
        json_decref(root);
        result = failed(&result) ? result : set_class(reader);
    } else if (strstr(text, "\n--") != NULL || strstr(text, " --") != NULL || strncmp(text, "--", 2) == 0) {
        import->format = "Megatron";
        result         = read_arguments(reader, text);
        set_megatron_defaults(reader);
    } else if (*start == '[' || strstr(text, "\n[") != NULL) {
        import->format = "torchtitan";
        result         = read_toml(reader, text);
        set_torchtitan_defaults(reader);
    } else {
        result = fail("%s is neither a config.json of Hugging Face, nor TOML of torchtitan, nor arguments of Megatron",
                      reader->path);
    }
    return result;
}

static status translate_file(struct reader *reader, char *text)
{
    int defaults;
    TRY(read_text(reader, text));
    defaults = reader->import->settings.count;
    TRY(translate_pairs(reader));
    TRY(derive(reader));
    complete(reader);
    for (int i = 0; i < reader->count; i++) {
        struct text_list *passed = &reader->import->passed;
        if (!reader->pairs[i].is_used && passed->count < TEXT_LIST_MAX) {
            passed->items[passed->count++] = reader->pairs[i].name;
        }
    }
    return reader->import->settings.count > defaults
               ? OK
               : fail("%s has no name that means something here, such as num_layers", reader->path);
}

status import_read(struct import *import, const char *path, struct arena *arena)
{
    struct reader *reader = arena_allocate(arena, sizeof(*reader));
    char          *text;
    size_t         bytes;
    *import       = (struct import){.format = ""};
    *reader       = (struct reader){.import = import, .arena = arena, .path = path};
    status result = input_load(path, FILE_BYTES_MAX, &text, &bytes);
    if (failed(&result)) {
        return fail("%s: %s", path, result.text);
    }
    result = translate_file(reader, text);
    free(text);
    return result;
}
