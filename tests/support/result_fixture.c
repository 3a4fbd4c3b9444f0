// SPDX-License-Identifier: MIT
// The numbers of the synthetic run.
#include "result_fixture.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/text.h"
#include "meshes.h"

static void fixture_add_steps(struct result *result)
{
    for (int i = 0; i < 50; i++) {
        // The 40 measured steps take 6.997 to 7.001 s, each value eight times. The last one takes 7.000 s.
        result->steps[i] = (struct result_step){
            .index           = i,
            .phase           = i < 10 ? STEP_WARMUP : STEP_MEASURE,
            .seconds         = i == 0   ? 21.412
                               : i < 10 ? 7.1
                                        : (6997 + (i * 7) % 5) / 1000.0,
            .slowest_rank    = i % 64,
            .loss            = 10.5 - i / 77.0,
            .gradient_norm   = 1.0 + 1.0 / (i + 3),
            .dropped         = NAN,
            .prediction_loss = NAN,
        };
        result->steps[i].rank0_seconds  = result->steps[i].seconds;
        result->steps[i].device_seconds = NAN;
        result->wall_seconds += result->steps[i].seconds;
    }
    result->step_count = 50;
    result->wall_seconds += 2;
}

// Adds a trace in which 3.68 of 7.02 s are ideal.
static void fixture_add_trace(struct result *result)
{
    result->trace                  = (struct result_trace){.source       = RESULT_MEASURED,
                                                           .timed_by     = "cupti",
                                                           .rank         = 1,
                                                           .step_seconds = 7.02,
                                                           .waterfall    = {{[WATERFALL_IDEAL]        = 3.68,
                                                                             [WATERFALL_GEMM]         = 1.44,
                                                                             [WATERFALL_ATTENTION]    = -0.25,
                                                                             [WATERFALL_MEMORY]       = 0.75,
                                                                             [WATERFALL_RECOMPUTE]    = 1.0,
                                                                             [WATERFALL_OPTIMIZER]    = 0.05,
                                                                             [WATERFALL_EXPOSED_FSDP] = 0.25,
                                                                             [WATERFALL_STRAGGLERS]   = 0.04,
                                                                             [WATERFALL_UNEXPLAINED]  = 0.06}}};
    static struct op_totals totals = {.count   = {[OP_GEMM][PHASE_FORWARD] = 561, [OP_GEMM][PHASE_BACKWARD] = 1122},
                                      .seconds = {[OP_GEMM][PHASE_FORWARD] = 1.75, [OP_GEMM][PHASE_BACKWARD] = 3.25}};
    result_set_op_times(result, &totals);
}

static void fixture_add_communication_time(struct result *result)
{
    const struct result_communication_time time = {.elements          = 855654400,
                                                   .group_size        = 64,
                                                   .count             = 160,
                                                   .bytes             = 1711308800,
                                                   .seconds           = 0.0055,
                                                   .moving_seconds    = 0.005,
                                                   .alone_seconds     = 0.0045,
                                                   .predicted_seconds = NAN,
                                                   .bandwidth         = 3.37e11,
                                                   .alone_bandwidth   = 3.74e11,
                                                   .late_rank         = 1,
                                                   .late_share        = 0.75,
                                                   .wait_seconds      = 0.000025};
    result_add_communication_time(result, &time, OP_ALL_GATHER, 1 << AXIS_FSDP, FORMAT_BF16);
}

void fixture_open(struct result *result)
{
    *result = (struct result){
        .method               = RESULT_METHOD,
        .version              = "0.1.0",
        .compiler             = "cc 1",
        .run_id               = "20260822T101500Z-7f3a",
        .started              = "2026-08-22T10:15:00Z",
        .ended                = "2026-08-22T10:21:00Z",
        .config_name          = "llama2-70b",
        .config_path          = "configs/llama2-70b.ini",
        .config_hash          = "9c41d0e2a3b4c5d6",
        .precision            = "bf16",
        .communicator         = "mpi",
        .backend              = "cuda",
        .device               = "an accelerator",
        .computes             = true,
        .planned_steps        = 50,
        .planned_warmup       = 10,
        .mesh                 = MESH(.fsdp = 64),
        .sequence             = 4096,
        .micro_batch          = 2,
        .global_batch         = 128,
        .accumulation         = 1,
        .layers               = 80,
        .parameters           = 68976648192,
        .active_parameters    = 68976648192,
        .flops_per_sequence   = {1.82e15, 1.820637e15, 1.754667e15, NAN, 2.171e15},
        .peak                 = 989e12,
        .published_peak       = 989e12,
        .peak_source          = "published dense bf16",
        .published_source     = "a table",
        .published_seconds    = 6.999,
        .published_mfu        = 0.5259,
        .storage_bytes        = {2155520256, 2155520256, 12933121536, 131072, 4096, 53687091200},
        .live_bytes           = 53687091000,
        .allocated_bytes      = 70931397120,
        .flops                = {1.2e15, 4e14, 2.4e15, 0, 0},
        .tensor_count         = 4321,
        .op_count             = 3456,
        .start_loss           = 10.6,
        .start_loss_margin    = 1.2,
        .verify               = "quick",
        .replica_groups       = 1,
        .replica_groups_equal = 1,
    };
    result_reserve(result, 50, 2, 0);
    fixture_add_steps(result);
    result->ranks[0]   = (struct result_rank){.host            = "dgx-01",
                                              .threads         = 2,
                                              .median_seconds  = 6.95,
                                              .allocated_bytes = 7,
                                              .processors      = 64,
                                              .foreign         = 0.25};
    result->ranks[1]   = (struct result_rank){.rank            = 1,
                                              .host            = "dgx-02",
                                              .threads         = 2,
                                              .median_seconds  = 7.0,
                                              .processors      = 64,
                                              .foreign         = NAN,
                                              .compute_seconds = 6.5,
                                              .excess          = 0.0625,
                                              .excess_low      = NAN};
    result->rank_count = 2;
    fixture_add_communication_time(result);
    result->compute_times       = memory_allocate(2 * sizeof(*result->compute_times));
    result->compute_times[0]    = (struct result_compute_time){0, 1, 10, 1, 6.25, NAN};
    result->compute_times[1]    = (struct result_compute_time){1, 63, 10, 1, 6.5, 0.0625};
    result->compute_time_count  = 2;
    result->communications      = memory_allocate(sizeof(*result->communications));
    result->communications[0]   = (struct result_communication){.kind       = "all_gather",
                                                                .axes       = "fsdp",
                                                                .format     = "bf16",
                                                                .elements   = 855654400,
                                                                .group_size = 64,
                                                                .count      = 160,
                                                                .bytes      = 2.7e11};
    result->communication_count = 1;
    result->kinds               = memory_allocate(sizeof(*result->kinds));
    result->kinds[0]            = (struct result_kind){.kind = "gemm", .count = 1683};
    result->kind_count          = 1;
    fixture_add_trace(result);
    result_add_entry(&result->config, &result->config_count, "model.preset", "llama2-70b");
    result_add_entry(&result->environment, &result->environment_count, "kernel", "Linux 6.1");
    result->deviations = memory_allocate(sizeof(*result->deviations));
    result->deviations[0] =
        (struct result_deviation){.name = "NCCL_IB_HCA", .value = "mlx5_1", .count = 1, .ranks = "1", .host = "dgx-02"};
    result->deviation_count = 1;
    result_derive(result);
}

void fixture_poison(struct result *result)
{
    strcpy(result->config_name, "</script><b>\"&'\x1b[31m");
    strcpy(result->config[0].value, "a\nb\xff"
                                    "c\x01\\");
    strcpy(result->deviations[0].value, "<script>\x1b[31m");
    strcpy(result->ranks[0].host, "=cmd(\"x\"),\n<i>");
}

char *fixture_render(report_writer *write, const struct result *result)
{
    char  *text  = NULL;
    size_t bytes = 0;
    FILE  *file  = open_memstream(&text, &bytes);
    write(result, file);
    fclose(file);
    return text;
}

json_t *fixture_json(const struct result *result)
{
    char        *text = fixture_render(report_write_json, result);
    json_error_t error;
    json_t      *document = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (document == NULL) {
        FATAL(EXIT_INTERNAL, "%s in %s", error.text, text);
    }
    free(text);
    return document;
}

// Sets the values of a healthy device.
static void observe(struct observation *observation, int64_t rank)
{
    observation_init(observation, "");
    observation->rank             = rank;
    observation->samples          = 40;
    observation->sampling_seconds = 0.0625;
    observation->energy_joules    = 8000;
    text_copy(observation->energy_source, sizeof(observation->energy_source), "counter");
    text_copy(observation->name, sizeof(observation->name), "NVIDIA H100 80GB HBM3");
    text_copy(observation->driver, sizeof(observation->driver), "580.65.06");
    snprintf(observation->uuid, sizeof(observation->uuid), "GPU-%" PRId64, rank);
    snprintf(observation->pci, sizeof(observation->pci), "00000000:%02" PRIX64 ":00.0", rank + 1);

    observation->gauges[GAUGE_SM_CLOCK]    = (struct gauge_values){345, 1740, 1755, 1980, 1980};
    observation->gauges[GAUGE_POWER]       = (struct gauge_values){90, 650, 690, 699, 300};
    observation->gauges[GAUGE_POWER_LIMIT] = (struct gauge_values){700, 700, 700, 700, 700};
    observation->gauges[GAUGE_TEMPERATURE] = (struct gauge_values){31, 60, 66, 71, 64};
    for (int throttle = 0; throttle < THROTTLE_COUNT; throttle++) {
        observation->throttles[throttle] = (struct throttle_values){0, 0, 0};
    }
    for (int counter = 0; counter < COUNTER_PAGES_SINGLE; counter++) {
        observation->counters[counter] = (struct counter_values){0, 0, 0};
    }
    observation->counters[COUNTER_LINKS]        = (struct counter_values){18, 18, 0};
    observation->counters[COUNTER_LINKS_ACTIVE] = (struct counter_values){18, 18, 0};
}

void fixture_observe(struct result *result, int64_t ranks)
{
    result->mesh.world        = ranks;
    result->peak              = NAN;    // unknown: a few ranks cannot compute these steps at a real peak
    result->ranks             = memory_resize(result->ranks, (size_t)ranks * sizeof(*result->ranks));
    result->observations      = memory_resize(result->observations, (size_t)ranks * sizeof(*result->observations));
    result->rank_count        = ranks;
    result->observation_count = ranks;
    for (int64_t rank = 0; rank < ranks; rank++) {
        result->ranks[rank] = (struct result_rank){.rank = rank, .local_rank = rank % 2, .median_seconds = 7.0};
        snprintf(result->ranks[rank].host, sizeof(result->ranks[rank].host), "dgx-%02" PRId64, rank / 2 + 1);
        observe(&result->observations[rank], rank);
    }
    result_derive(result);
}
