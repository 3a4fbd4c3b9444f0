// SPDX-License-Identifier: MIT
// Asks cuDNN for engines for the attention of every shipped configuration. It needs no GPU: cuDNN gets a description of
// an H100.
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdlib.h>

#include "backend/cuda/cudnn/cudnn_graph.h"
#include "gswbench/config.h"
#include "gswbench/plan.h"
#include "gswbench/plan_build.h"

static const char h100[] =
    "{\"deviceName\":\"NVIDIA H100 80GB "
    "HBM3\",\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":232448,\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"totalGlobalMem\":85520809984,\"smClockRateKHz\":1980000,\"memClockRateKHz\":2619000,"
    "\"l2CacheSize\":52428800,\"cudaDeviceId\":0,\"deviceVer\":900,\"driverVer\":12040}";

static struct cudnn cudnn;

static void open_cudnn(void)
{
    status opened = cudnn_open(&cudnn);
    if (failed(&opened)) {
        cr_skip_test("%s", opened.text);
    }
}

static int64_t engines_for(enum op_kind kind, const struct attention_shape *shape)
{
    struct cudnn_graph graph = {.cudnn = &cudnn};
    struct op          op    = {.kind = (uint8_t)kind, .shape.attention = *shape};
    int64_t            engines;
    cudnn_attention_describe(&graph, &op);
    status result = cudnn_graph_engines(&graph, h100, &engines);
    cudnn_graph_free(&graph);
    cr_assert_not(failed(&result), "%s", result.text);
    return engines;
}

static void expect_engines(const struct attention_shape *shape, const char *whose)
{
    for (enum op_kind kind = OP_ATTENTION_FORWARD; kind <= OP_ATTENTION_BACKWARD; kind++) {
        cr_expect_gt(engines_for(kind, shape), 0,
                     "%s of %s: batch %lld, %lld queries and %lld earlier, %lld heads (%lld) of %lld", op_name(kind),
                     whose, (long long)shape->batch, (long long)shape->sequence, (long long)shape->earlier,
                     (long long)shape->heads, (long long)shape->kv_heads, (long long)shape->head_dim);
    }
}

static bool is_alike(const struct attention_shape *a, const struct attention_shape *b)
{
    return a->batch == b->batch && a->sequence == b->sequence && a->heads == b->heads && a->kv_heads == b->kv_heads &&
           a->head_dim == b->head_dim && a->causal == b->causal && a->earlier == b->earlier && a->window == b->window;
}

enum { SHAPES_MAX = 128 };
static struct attention_shape seen[SHAPES_MAX];
static int                    seen_count;

static void expect_op(const struct op *op, const char *whose)
{
    if (op->kind != OP_ATTENTION_FORWARD && op->kind != OP_ATTENTION_BACKWARD) {
        return;
    }
    for (int i = 0; i < seen_count; i++) {
        if (is_alike(&seen[i], &op->shape.attention)) {
            return;
        }
    }
    cr_assert_lt(seen_count, SHAPES_MAX);
    seen[seen_count++] = op->shape.attention;
    expect_engines(&op->shape.attention, whose);
}

// Expects an engine for the attention of a published job, in bf16 whatever its precision. The model has as few layers
// as its pipeline allows, because the layers have equal attention.
static void expect_row(const char *name, const struct config_row *row)
{
    struct config         config;
    struct plan           plan;
    struct text_buffer    errors  = {0};
    struct config_request request = {.name = name, .ranks = row->ranks == 0 ? 1 : row->ranks};
    status                result  = config_read(&config, &request, &errors);
    cr_assert_not(failed(&result), "%s", errors.text);

    int64_t chunks                = config.parallel.pp * config.parallel.vp;
    config.model.layers           = config.parallel.layers_per_chunk_embedding ? 2 * chunks - 2 : chunks;
    config.model.layers           = config.model.layers == 0 ? 1 : config.model.layers;
    config.train.global_batch     = 0;
    config.train.accumulation     = 1;
    config.precision.compute      = COMPUTE_BF16;
    struct plan_sections sections = {&config.model, &config.parallel, &config.train, &config.precision, request.ranks};
    struct plan_request  job;
    result = plan_resolve(&job, &sections);
    cr_assert_not(failed(&result), "%s", result.text);
    status can = plan_supports(&job);
    if (failed(&can)) {
        text_free(&errors);
        return;
    }
    result = plan_build(&plan, &job);
    cr_assert_not(failed(&result), "%s at %lld: %s", name, (long long)request.ranks, result.text);
    for (int32_t i = 0; i < plan.op_count; i++) {
        expect_op(&plan.ops[i], name);
    }
    plan_free(&plan);
    text_free(&errors);
}

Test(cudnn, takes_the_attention_of_every_shipped_configuration)
{
    open_cudnn();
    struct dirent **entries;
    int             count = scandir(config_folder(), &entries, config_is_file, alphasort);
    cr_assert_gt(count, 0);
    for (int i = 0; i < count; i++) {
        struct config_row     rows[CONFIG_ROWS_MAX];
        struct text_buffer    errors  = {0};
        struct config_request request = {.name = entries[i]->d_name};
        int                   row_count;
        status                result = config_rows(&request, rows, &row_count, &errors);
        cr_assert_not(failed(&result), "%s", errors.text);
        for (int row = 0; row < row_count; row++) {
            expect_row(entries[i]->d_name, &rows[row]);
        }
        free(entries[i]);
    }
    free(entries);
    cr_expect_geq(seen_count, 10, "of the shipped configurations, %d distinct shapes", seen_count);
}

Test(cudnn, takes_other_heads_and_blocks_of_a_ring)
{
    open_cudnn();
    static const struct attention_shape shapes[] = {
        {.batch = 2, .sequence = 512, .heads = 8, .kv_heads = 8, .head_dim = 64, .causal = true},
        {.batch = 1, .sequence = 512, .heads = 12, .kv_heads = 1, .head_dim = 192, .causal = true},
        {.batch = 1, .sequence = 512, .heads = 8, .kv_heads = 2, .head_dim = 128, .causal = false},
        {.batch = 1, .sequence = 512, .heads = 8, .kv_heads = 2, .head_dim = 128, .earlier = 512, .causal = false},
        {.batch = 1, .sequence = 512, .heads = 8, .kv_heads = 2, .head_dim = 128, .earlier = 512, .causal = true},
        {.batch = 1, .sequence = 512, .heads = 8, .kv_heads = 2, .head_dim = 64, .causal = true, .window = 128},
        {.batch    = 1,
         .sequence = 512,
         .heads    = 8,
         .kv_heads = 2,
         .head_dim = 128,
         .earlier  = 512,
         .causal   = true,
         .window   = 100},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        expect_engines(&shapes[i], "a test");
    }
}

Test(cudnn, says_what_is_wrong_with_a_graph)
{
    open_cudnn();
    struct cudnn_graph  graph = {.cudnn = &cudnn};
    struct cudnn_layout empty = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    int64_t             engines;
    cudnn_graph_tensor(&graph, CUDNN_DATA_BFLOAT16, &empty, 1);
    status result = cudnn_graph_engines(&graph, h100, &engines);
    cudnn_graph_free(&graph);
    cr_assert(failed(&result));
    cr_expect_str_eq(strncmp(result.text, "cuDNN ", 6) == 0 ? "" : result.text, "");
}
