// SPDX-License-Identifier: MIT
// Writes synthetic results for scripts that read them: report_pages FOLDER [TEXT]
//
// Without TEXT it writes FOLDER/NAME.html and NAME.json of results that one machine cannot produce: many ranks and long
// names, a failed run with hostile texts, and an emulation. With TEXT it writes one result in every format, with TEXT
// in every field that comes from outside the program.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/comparison.h"
#include "gswbench/fatal.h"
#include "gswbench/text.h"
#include "line.h"
#include "result_fixture.h"

enum { STEPS = 1200, RANKS = 16, COMMUNICATIONS = 12 };

static FILE *create(const char *folder, const char *name)
{
    const char *path = line_of("%s/%s", folder, name);
    FILE       *file = fopen(path, "w");
    if (file == NULL) {
        FATAL(EXIT_OUTPUT, "%s cannot be written", path);
    }
    return file;
}

static void write_file(const char *folder, const char *name, report_writer *write, const struct result *result)
{
    FILE *file = create(folder, name);
    write(result, file);
    fclose(file);
}

// Writes a page and a JSON file of the result, and frees it.
static void write_page(const char *folder, const char *name, struct result *result)
{
    write_file(folder, line_of("%s.html", name), report_write_html, result);
    write_file(folder, line_of("%s.json", name), report_write_json, result);
    result_free(result);
}

// Writes a run with a published and an expected time. Its page has a mark of every colour.
static void write_published(const char *folder)
{
    struct result result;
    fixture_open(&result);
    result.expectation = (struct result_expectation){.profile = "h100-sxm", .step_seconds = 6.8, .percent = 2.4};
    result.expectation.waterfall.seconds[WATERFALL_IDEAL]  = 3.68;
    result.expectation.waterfall.seconds[WATERFALL_BUBBLE] = 0.5;
    result.acceptance =
        (struct result_acceptance){.verdict = ACCEPTANCE_REFUSE, .basis = "published", .drain = "dgx-02,dgx-17"};
    text_copy(
        result.acceptance.reason, sizeof(result.acceptance.reason),
        "rank 1 on dgx-02 computes 6.25 % longer than its like, beyond doubt; its interval does not touch theirs");
    result.is_proxy          = true;
    result.steps[20].seconds = 7.9;
    result_add_reason(&result, &(struct result_reason){.verdict = VERDICT_DEGRADED,
                                                       .id      = "slow-rank",
                                                       .message = "rank 1 (dgx-02) computes 6.25 % longer"});
    result_derive(&result);
    write_page(folder, "published", &result);
}

// Writes a result with many steps, ranks and table cells, long names without spaces, and cells of every shade.
static void write_many(const char *folder)
{
    static const char host[] = "gpu-worker-0123456789.eu-central-1.compute.cluster.example.internal";
    struct result     result;
    fixture_open(&result);
    fixture_observe(&result, RANKS);
    for (int64_t rank = 0; rank < RANKS; rank++) {
        text_copy(result.ranks[rank].host, sizeof(result.ranks[rank].host), host);
        result.observations[rank].throttles[THROTTLE_POWER_CAP].samples        = 40;
        result.observations[rank].throttles[THROTTLE_HARDWARE_THERMAL].samples = 7;
    }
    result.steps      = memory_resize(result.steps, STEPS * sizeof(*result.steps));
    result.step_count = STEPS;
    for (int64_t i = 50; i < STEPS; i++) {
        result.steps[i]         = result.steps[10 + i % 40];
        result.steps[i].index   = i;
        result.steps[i].seconds = i == 700 ? 9.5 : result.steps[i].seconds;
    }
    result.compute_time_count = RESULT_CELLS * (RESULT_CELLS - 1);
    result.compute_times =
        memory_resize(result.compute_times, (size_t)result.compute_time_count * sizeof(*result.compute_times));
    for (int64_t i = 0; i < result.compute_time_count; i++) {
        static const double excess[] = {0.001, 0.02, 0.04, 0.5, NAN};
        int64_t             rank = i % RESULT_CELLS * 64, step = 10 + i / RESULT_CELLS * 19;
        result.compute_times[i] = (struct result_compute_time){rank, 64, step, 19, 6.5, excess[i * i / 7 % 5]};
    }
    const struct result_communication_time like =
        result.communication_times[0];    // a copy, since the array may move when it grows
    for (int i = 0; i < COMMUNICATIONS; i++) {
        result_add_communication_time(&result, &like, OP_REDUCE_SCATTER, 1 << AXIS_FSDP | 1 << AXIS_EP, FORMAT_F32);
    }
    strcpy(result.config_name, "a-mixture-of-experts-with-a-name-as-long-as-file-systems-allow-it-to-be-and-no-space");
    strcpy(result.device, "NVIDIA H100 80GB HBM3, CUDA 13.0, cuDNN 9.19.0, NCCL 2.28.3, driver 580.65.06");
    result_add_entry(&result.environment, &result.environment_count, "NCCL_IB_HCA_AND_A_NAME_THAT_NOBODY_SHORTENED",
                     "mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7");
    result_add_entry(&result.environment, &result.environment_count, "LD_LIBRARY_PATH",
                     "/opt/hpcx/ompi/lib:/opt/hpcx/nccl_rdma_sharp_plugin/lib:/usr/local/cuda/lib64");
    result_derive(&result);
    write_page(folder, "many", &result);
}

static void write_invalid(const char *folder)
{
    struct result result;
    fixture_open(&result);
    fixture_poison(&result);
    result.steps[7].loss = NAN;
    result_check(&result);
    result_derive(&result);
    write_page(folder, "invalid", &result);
}

static void write_emulated(const char *folder)
{
    struct result result;
    fixture_open(&result);
    result.emulation =
        (struct result_emulation){.stages = 8, .executed = 2, .ops = 90, .measured_ops = 80, .measured_share = 0.875};
    result.rank_count = 0;
    result_add_reason(&result,
                      &(struct result_reason){.verdict = VERDICT_EMULATED, .id = "emulated", .rank = -1, .step = -1});
    write_page(folder, "emulated", &result);
}

#define PUT(field) text_copy(field, sizeof(field), text)

// Puts a text into every field of a result that comes from outside the program.
static void put(struct result *result, const char *text)
{
    fixture_open(result);
    fixture_observe(result, 2);
    PUT(result->run_id);
    PUT(result->version);
    PUT(result->compiler);
    PUT(result->config_hash);
    PUT(result->precision);
    PUT(result->communicator);
    PUT(result->backend);
    PUT(result->config_name);
    PUT(result->config_path);
    PUT(result->published_source);
    PUT(result->device);
    PUT(result->peak_source);
    PUT(result->config[0].value);
    PUT(result->environment[0].value);
    PUT(result->attention.provider);
    for (int64_t i = 0; i < result->rank_count; i++) {
        PUT(result->ranks[i].host);
    }
    for (int64_t i = 0; i < result->communication_time_count; i++) {
        PUT(result->communication_times[i].algorithm);
    }
    PUT(result->observations[0].name);
    PUT(result->observations[0].missing);
    result->observations[1].rank = 9;    // the result has no rank 9
    struct result_reason reason  = {.verdict = VERDICT_VALID, .rank = -1, .step = -1, .id = "note"};
    PUT(reason.message);
    result_add_reason(result, &reason);
    struct result_action action = {.stage = 0, .begin = 0, .end = 1};
    PUT(action.phase);
    result_add_actions(result, &action, 1);
    PUT(result->expectation.profile);
    PUT(result->op_times[0].kind);
}

// Writes the comparison of a harmless result with this one.
static void write_comparison(const struct result *result, FILE *file)
{
    struct result     first;
    struct comparison comparison;
    fixture_open(&first);
    comparison_init(&comparison, &first, result, 0.01);
    comparison_write_html(&comparison, 1, file);
    comparison_free(&comparison);
    result_free(&first);
}

static void write_list(const struct result *result, FILE *file)
{
    const char                *text = result->config_name;
    const struct report_listed row  = {.name = text, .link = text, .result = result, .speedup = 1};
    report_write_list(&(struct report_list){.title      = text,
                                            .subtitle   = text,
                                            .heading    = "all",
                                            .answer     = text,
                                            .remark     = text,
                                            .facts      = &(struct report_fact){1, "fact", text},
                                            .fact_count = 1,
                                            .rows       = &row,
                                            .count      = 1},
                      file);
}

static void write_table(const char *folder, const struct result *result)
{
    static const struct {
        const char  *name;
        grid_writer *write;
    } formats[] = {
        {"table.text", grid_write_text}, {"table.markdown", grid_write_markdown}, {"table.csv", grid_write_csv}};
    struct table table = {.row_count = 0};
    table_add(&table, result);
    table_finish(&table);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        FILE *file = create(folder, formats[i].name);
        table_write(&table, formats[i].write, file);
        fclose(file);
    }
    FILE *file = create(folder, "table.json");
    json_write(table_fields, &table, file);
    fclose(file);
    table_free(&table);
}

static void write_hostile(const char *folder, const char *text)
{
    struct result result;
    put(&result, text);
    for (const struct report_format *format = report_formats; format->name != NULL; format++) {
        write_file(folder, format->name, format->write, &result);
    }
    write_file(folder, "header", report_write_header, &result);
    write_file(folder, "comparison", write_comparison, &result);
    write_file(folder, "list", write_list, &result);
    write_table(folder, &result);
    result_free(&result);
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        write_hostile(argv[1], argv[2]);
        return 0;
    }
    if (argc != 2) {
        FATAL(EXIT_USAGE, "usage: report_pages FOLDER [TEXT]");
    }
    write_published(argv[1]);
    write_many(argv[1]);
    write_invalid(argv[1]);
    write_emulated(argv[1]);
    return 0;
}
