// SPDX-License-Identifier: MIT
// Tests that weights are written as a Hugging Face folder with the right names, shapes, shards, index and config.json,
// and that damaged folders are refused.
#include "gswbench/checkpoint.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/internal.h"
#include "folder.h"
#include "gswbench/step.h"
#include "layouts.h"
#include "line.h"
#include "meshes.h"
#include "safetensors_read.h"
#include "success.h"

static const char *weights_folder;    // in the folder of the test

static void make_base(void)
{
    make_folder();
    weights_folder = line_of("%s/weights", folder);
}

static const char *in_folder(const char *name)
{
    return line_of("%s/%s", weights_folder, name);
}

// The one parameter group has 32 elements: a norm of 4, and from element 8 on a matrix. Its rows are q [3, 4], k [2, 4]
// and a row of padding.
static struct tensor small_tensors[] = {{.format = FORMAT_F32, .elements = 32}, {.format = FORMAT_F32, .elements = 32}};
#define PART(name_, rows_, ...)                                                                                        \
    {                                                                                                                  \
        .name = name_, .rows = rows_, .columns = 4, .local_rows = rows_, .local_columns = 4, __VA_ARGS__               \
    }
static struct weight small_weights[] = {
    {.rows       = 1,
     .columns    = 4,
     .part_count = 1,
     .part       = {PART("model.norm.weight", 1, .is_vector = true, .constant = 1)}},
    {.first      = 8,
     .rows       = 6,
     .columns    = 4,
     .part_count = 2,
     .part       = {PART("q_proj.weight", 3, .stream = 5, .deviation = 0.02f),
                    PART("k_proj.weight", 2, .stream = 6, .deviation = 0.02f, .offset = 12)}},
};
static struct plan_unit small_unit = {
    .elements = 32, .weight_count = 2, .kept = {0, 32}, .updated = {0, 32}, .weight = 0, .master = -1};
static const struct plan small_plan = {
    .tensors      = small_tensors,
    .weights      = small_weights,
    .weight_count = 2,
    .units        = &small_unit,
    .unit_count   = 1,
    .is_zero      = false,
    .router_bias  = -1,
    .mesh         = MESH_OF_ONE_RANK,
    .train        = {.sequence = 64},
    .model        = {.family       = "llama",
                     .layers       = 2,
                     .hidden       = 4,
                     .heads        = 3,
                     .kv_heads     = 1,
                     .head_dim     = 2,
                     .ffn          = 8,
                     .vocab        = 10,
                     .norm_epsilon = 1e-5,
                     .rope_theta   = 500000,
                     .rope_scaling = 8,
                     .tied         = 1},
};

// Replaces the real `struct step`, since the checkpoint code calls only the functions below and never looks inside a
// step. It only holds tensors.
struct step {
    const void *data[2];
    size_t      bytes[2];
};

void step_make_weights(struct step *step)
{
    (void)step;
}

void step_read(const struct step *step, int32_t tensor, void *to)
{
    memcpy(to, step->data[tensor], step->bytes[tensor]);
}

void step_write(const struct step *step, int32_t tensor, const void *from)
{
    cr_assert_fail("a checkpoint writes tensor %d from %p of step %p", tensor, from, (const void *)step);
}

void *step_host_memory(const struct step *step, int32_t tensor)
{
    cr_assert_fail("a checkpoint asks for tensor %d of step %p", tensor, (const void *)step);
    return NULL;
}

TestSuite(checkpoint, .init = make_base, .fini = remove_folder);

static void expect_tensor(const char *file, const char *name, int32_t dims, const int64_t *dim, const float *values)
{
    struct safetensors_reader reader;
    REQUIRE(safetensors_open(&reader, in_folder(file)));
    for (int32_t i = 0; i < reader.count; i++) {
        const struct safetensor *tensor = &reader.tensors[i];
        if (strcmp(tensor->name, name) == 0) {
            float read[16];
            cr_expect_eq(tensor->format, FORMAT_F32);
            cr_expect_eq(tensor->dims, dims, "%s", name);
            cr_expect_arr_eq(tensor->dim, dim, (size_t)dims * sizeof(*dim), "%s", name);
            cr_assert_leq(tensor->bytes, (int64_t)sizeof(read));
            EXPECT_SUCCESS(safetensors_read(&reader, name, read, tensor->bytes));
            cr_expect_arr_eq(read, values, (size_t)tensor->bytes, "%s", name);
            safetensors_close(&reader);
            return;
        }
    }
    cr_assert_fail("%s is not in %s", name, file);
}

Test(checkpoint, writes_the_initial_weights_under_their_exported_names)
{
    float q[12], k[8];
    data_weight_values(&small_weights[1].part[0], 7, 0, 12, q);
    data_weight_values(&small_weights[1].part[1], 7, 0, 8, k);

    REQUIRE(checkpoint_write_initial(&small_plan, 7, weights_folder));
    expect_tensor("model.safetensors", "model.norm.weight", 1, (int64_t[]){4}, (float[]){1, 1, 1, 1});
    expect_tensor("model.safetensors", "q_proj.weight", 2, (int64_t[]){3, 4}, q);
    expect_tensor("model.safetensors", "k_proj.weight", 2, (int64_t[]){2, 4}, k);
    cr_expect_neq(access(in_folder("model.safetensors.index.json"), F_OK), 0);
}

// Arguments and result of a rank's thread, when all ranks write a checkpoint together.
struct writer {
    struct plan       plan;
    struct step       step;
    struct local_hub *hub;
    status            result;
};

static status write_shards(const struct weight_source *source, int64_t shard_bytes)
{
    struct output_folder held;
    TRY(output_claim_folder(&held, weights_folder));
    status result = checkpoint_write_folder(source, &held, shard_bytes);
    output_close_folder(&held);
    return result;
}

// Bytes that rank 0 has passed to gather_all. Every rank needs memory for as many bytes of each rank.
static int64_t                gathered_bytes;
static struct comm_ops        counting_ops;
static const struct comm_ops *local_ops;

static void count_gathered(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    gathered_bytes += bytes;
    local_ops->gather_all(comm, in, out, bytes);
}

static void *write_rank(void *argument)
{
    struct writer *writer = argument;
    struct comm    comm;
    comm_open_local(&comm, writer->hub, (int)writer->plan.rank);
    struct output_folder held = {.is_open = false};
    if (writer->plan.rank == 0) {
        local_ops               = comm.ops;
        counting_ops            = *local_ops;
        counting_ops.gather_all = count_gathered;
        comm.ops                = &counting_ops;
        mkdir(weights_folder, 0755);
        output_open_folder(&held, weights_folder);
    }
    writer->result =
        checkpoint_write(&writer->plan, &writer->step, &comm, &held, &(struct checkpoint_watch){NULL, NULL, NULL});
    output_close_folder(&held);
    comm_close(&comm);
    return NULL;
}

static status write_present(const void *weight, const void *master)
{
    struct writer writer = {.plan = small_plan, .step = {{weight, master}, {128, 128}}, .hub = local_hub_open(1)};
    write_rank(&writer);
    local_hub_close(writer.hub);
    return writer.result;
}

Test(checkpoint, writes_the_present_weights_of_a_step_without_padding)
{
    float values[32];
    for (int i = 0; i < 32; i++) {
        values[i] = (float)i - 7;
    }

    REQUIRE(write_present(values, NULL));
    expect_tensor("model.safetensors", "model.norm.weight", 1, (int64_t[]){4}, values);
    expect_tensor("model.safetensors", "q_proj.weight", 2, (int64_t[]){3, 4}, values + 8);
    expect_tensor("model.safetensors", "k_proj.weight", 2, (int64_t[]){2, 4}, values + 20);
}

Test(checkpoint, widens_weights_that_are_their_own_masters)
{
    float values[32];
    bf16  rounded[64] = {0};
    for (int i = 0; i < 32; i++) {
        values[i]  = (float)i - 7;
        rounded[i] = bf16_from_float(values[i]);
    }
    small_tensors[0].format = FORMAT_BF16;

    REQUIRE(write_present(rounded, NULL));
    expect_tensor("model.safetensors", "q_proj.weight", 2, (int64_t[]){3, 4}, values + 8);
}

Test(checkpoint, takes_the_master_where_there_is_one)
{
    float masters[32] = {1, 2, 3, 1.0000001f};
    bf16  wrong[64]   = {0};
    small_unit.master = 1;

    REQUIRE(write_present(wrong, masters));
    expect_tensor("model.safetensors", "model.norm.weight", 1, (int64_t[]){4}, masters);
}

// Writes a checkpoint with four ranks. Two ranks hold one half of the parameters, two the other half: rank = half + 2 *
// replica.
static void write_slices(struct writer writers[4], struct plan_unit units[4], float values[4][16])
{
    pthread_t         threads[4];
    struct local_hub *hub = local_hub_open(4);
    for (int rank = 0; rank < 4; rank++) {
        int slice        = rank % 2;
        units[rank]      = small_unit;
        units[rank].kept = units[rank].updated = (struct plan_slice){slice * 16, 16};
        units[rank].update_axes                = 1u << AXIS_FSDP;
        units[rank].replica_axes               = 1u << AXIS_DP;
        for (int i = 0; i < 16; i++) {
            values[rank][i] = (float)(slice * 16 + i);
        }
        values[rank][10]         = -0.0f;    // its sign must be kept
        writers[rank]            = (struct writer){.plan = small_plan, .step = {{values[rank]}, {64}}, .hub = hub};
        writers[rank].plan.rank  = rank;
        writers[rank].plan.units = &units[rank];
        writers[rank].plan.mesh  = MESH(.fsdp = 2, .dp = 2);
        pthread_create(&threads[rank], NULL, write_rank, &writers[rank]);
    }
    for (int rank = 0; rank < 4; rank++) {
        pthread_join(threads[rank], NULL);
    }
    local_hub_close(hub);
}

Test(checkpoint, gathers_slices_from_the_ranks_that_keep_them_once)
{
    struct writer    writers[4];
    struct plan_unit units[4];
    float            values[4][16], expected[32];
    small_tensors[0].elements = 16;
    for (int i = 0; i < 32; i++) {
        expected[i] = i % 16 == 10 ? -0.0f : (float)i;
    }

    write_slices(writers, units, values);

    cr_assert(!failed(&writers[0].result), "%s", writers[0].result.text);
    cr_expect_leq(gathered_bytes, 8, "the weights of all ranks are in memory at once");
    expect_tensor("model.safetensors", "q_proj.weight", 2, (int64_t[]){3, 4}, expected + 8);
    expect_tensor("model.safetensors", "k_proj.weight", 2, (int64_t[]){2, 4}, expected + 20);
}

Test(checkpoint, lets_no_rank_wait_when_the_folder_cannot_be_written, .timeout = 20)
{
    struct writer    writers[4];
    struct plan_unit units[4];
    float            values[4][16];
    small_tensors[0].elements = 16;
    weights_folder            = "/proc";

    write_slices(writers, units, values);

    cr_expect_eq(writers[0].result.exit_code, EXIT_OUTPUT);
    cr_expect(!failed(&writers[3].result));
}

Test(checkpoint, splits_into_shards_with_an_index)
{
    // The limit is 64 bytes a shard. model.norm.weight has 16 bytes and q_proj.weight 48, so both fill the first shard
    // exactly, and k_proj.weight starts a second one.
    struct weight_source source = {.plan = &small_plan, .seed = 7};
    float                k[8];
    data_weight_values(&small_weights[1].part[1], 7, 0, 8, k);

    REQUIRE(write_shards(&source, 64));
    expect_tensor("model-00001-of-00002.safetensors", "model.norm.weight", 1, (int64_t[]){4}, (float[]){1, 1, 1, 1});
    expect_tensor("model-00002-of-00002.safetensors", "k_proj.weight", 2, (int64_t[]){2, 4}, k);
    json_t *index = json_load_file(in_folder("model.safetensors.index.json"), 0, NULL);
    char   *text  = json_dumps(index, JSON_COMPACT);
    cr_expect_str_eq(text, "{\"metadata\":{\"total_size\":96},\"weight_map\":{"
                           "\"model.norm.weight\":\"model-00001-of-00002.safetensors\","
                           "\"q_proj.weight\":\"model-00001-of-00002.safetensors\","
                           "\"k_proj.weight\":\"model-00002-of-00002.safetensors\"}}");
    free(text);
    json_decref(index);
}

Test(checkpoint, gives_a_part_above_the_limit_a_shard_of_its_own)
{
    struct weight_source source = {.plan = &small_plan, .seed = 7};

    REQUIRE(write_shards(&source, 20));
    cr_expect_eq(access(in_folder("model-00003-of-00003.safetensors"), F_OK), 0);
}

Test(checkpoint, accepts_an_empty_folder_and_refuses_a_full_one)
{
    mkdir(weights_folder, 0700);

    EXPECT_SUCCESS(checkpoint_write_initial(&small_plan, 7, weights_folder));
    EXPECT_ERROR(checkpoint_write_initial(&small_plan, 7, weights_folder), EXIT_OUTPUT,
                 line_of("%s: is not empty: name a new folder", weights_folder));
}

Test(checkpoint, refuses_a_folder_that_cannot_be_made)
{
    EXPECT_ERROR(checkpoint_write_initial(&small_plan, 7, "/no/such/folder"), EXIT_OUTPUT,
                 "cannot create /no/such/folder: No such file or directory");
    EXPECT_ERROR(checkpoint_write_initial(&small_plan, 7, "/dev/null"), EXIT_OUTPUT,
                 "cannot open /dev/null: Not a directory");
}

Test(checkpoint, describes_a_llama_to_hugging_face)
{
    checkpoint_write_initial(&small_plan, 7, weights_folder);

    json_t *json = json_load_file(in_folder("config.json"), 0, NULL);
    char   *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(6));
    cr_expect_str_eq(text,
                     "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_act\":\"silu\",\"model_type\":\"llama\","
                     "\"vocab_size\":10,\"hidden_size\":4,\"intermediate_size\":8,\"num_hidden_layers\":2,"
                     "\"num_attention_heads\":3,\"num_key_value_heads\":1,\"head_dim\":2,\"rms_norm_eps\":1e-5,"
                     "\"rope_theta\":500000.0,\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,"
                     "\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
                     "\"original_max_position_embeddings\":8192},\"max_position_embeddings\":65536,"
                     "\"attention_bias\":false,\"mlp_bias\":false,\"tie_word_embeddings\":true,"
                     "\"torch_dtype\":\"float32\"}",
                     "%s", text);
    free(text);
    json_decref(json);
}

// norm_topk_prob of Qwen3 means that gates are normalised over the chosen experts. A family that Hugging Face
// transformers does not have is described with names that gswbench defines.
Test(checkpoint, describes_models_with_experts_and_other_families)
{
    static const struct {
        const char *model, *members;
    } cases[] = {
        {"family mixtral; experts 4; top_k 2; auxiliary_loss 0.02",
         "{\"architectures\": [\"MixtralForCausalLM\"], \"model_type\": \"mixtral\", \"hidden_act\": \"silu\","
         " \"num_local_experts\": 4, \"num_experts_per_tok\": 2, \"router_aux_loss_coef\": 0.02}"},
        {"family qwen3_moe; ffn 8; qk_norm yes; experts 4; expert_ffn 6; top_k 2",
         "{\"architectures\": [\"Qwen3MoeForCausalLM\"], \"model_type\": \"qwen3_moe\", \"num_experts\": 4,"
         " \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 6, \"intermediate_size\": 8,"
         " \"decoder_sparse_step\": 1, \"mlp_only_layers\": [], \"norm_topk_prob\": true,"
         " \"use_sliding_window\": false}"},
        {"family gswbench; activation relu2; norm layernorm1p; rope_fraction 0.5; experts 4; top_k 2;"
         " embedding_scale 78.5; logit_scale 0.25",
         "{\"architectures\": [\"GswbenchForCausalLM\"], \"activation\": \"relu2\", \"norm\": \"layernorm1p\","
         " \"rope_fraction\": 0.5, \"embedding_multiplier\": 78.5, \"logit_scale\": 0.25, \"num_experts_per_tok\": 2}"},
        {"family gswbench; positions learned; max_positions 32; attention_bias yes; mlp_bias yes",
         "{\"positions\": \"learned\", \"max_position_embeddings\": 32, \"attention_bias\": true, \"mlp_bias\": true}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tiny tiny = tiny_of(cases[i].model);
        const char *key;
        json_t     *member, *members = json_loads(cases[i].members, 0, NULL);
        json_t     *json = describe_model(&tiny.model, 16, FORMAT_F32);
        cr_assert_not_null(members, "%s", cases[i].members);
        json_object_foreach(members, key, member)
        {
            char *found = json_dumps(json_object_get(json, key), JSON_ENCODE_ANY);
            cr_expect(json_equal(json_object_get(json, key), member), "%s is %s", key,
                      found != NULL ? found : "missing");
            free(found);
        }
        json_decref(json);
        json_decref(members);
    }
}
