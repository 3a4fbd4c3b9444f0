// SPDX-License-Identifier: MIT
// Defines the options of [hardware], reads configs/hardware/collectives.csv, and finds the installed profile of a
// device.
#define _GNU_SOURCE    // strsep
#include "gswbench/hardware.h"

#include <stdlib.h>
#include <string.h>

#include "gswbench/input.h"
#include "gswbench/text.h"
#include "internal.h"

// clang-format off
#define PEAK_OPTION(NAME, name) \
    {"peak_" #name, OPTION_QUANTITY, OPTION_FIELD(hardware_config, peak[RATE_##NAME]), "0", 0, 1e18, NULL, \
     "dense " #NAME " FLOP/s per device; 0: unknown, no MFU"},

const struct option hardware_options[] = {
    TEXT_OPTION    (hardware_config, profile, "none", "hardware profile to read first: configs/hardware/NAME.ini, or a path with a /; none: no hardware"),
    TEXT_OPTION    (hardware_config, device, "", "device name as its driver reports it; these peaks apply to runs on this device only; empty: none"),
    INTEGER_OPTION (hardware_config, gpus_per_node, "8", 1, 1024, "devices per node"),
    INTEGER_OPTION (hardware_config, link_domain, "0", 0, 65536, "devices that node_bandwidth connects, if more than a node, as NVLink in a rack; 0: gpus_per_node"),
    QUANTITY_OPTION(hardware_config, memory_gb, "0", 0, 1e6, "memory per device in GB (1e9 bytes); 0: unknown"),
    RATES(PEAK_OPTION)
    INTEGER_OPTION (hardware_config, multiprocessors, "0", 0, 4096, "streaming multiprocessors (SMs) per device; 0: unknown"),
    QUANTITY_OPTION(hardware_config, memory_bandwidth, "0", 0, 1e15, "memory bandwidth per device in bytes/s; 0: unknown"),
    QUANTITY_OPTION(hardware_config, node_bandwidth, "0", 0, 1e15, "bytes/s per device within its node or link_domain, one direction; 0: unknown"),
    QUANTITY_OPTION(hardware_config, network_bandwidth, "0", 0, 1e15, "bytes/s per device to other nodes, one direction; 0: unknown"),
    QUANTITY_OPTION(hardware_config, storage_bandwidth, "0", 0, 1e15, "bytes/s of a checkpoint, written or read by all ranks together; 0: unknown"),
    REAL_OPTION    (hardware_config, gpu_hour_dollars, "0", 0, 1e6, "dollars for an hour of a device: runs and predictions show dollars per million tokens; 0: unknown"),
    QUANTITY_OPTION(hardware_config, power_share, "1", 0.25, 1, "share of its rated power that a device may draw; sustained GEMM and attention rates scale with the cube root of (share - 0.2) / 0.8"),
    QUANTITY_OPTION(hardware_config, gemm_efficiency, "0.72 prior 5%", 0.01, 1, "share of the operands' peak that full GEMM tiles reach at sustained power"),
    QUANTITY_OPTION(hardware_config, gemm_efficiency_fp8, "0.70 prior 6%", 0.01, 1, "share of the operands' peak that full GEMM tiles reach at sustained power, for operands of 8 bits"),
    QUANTITY_OPTION(hardware_config, gemm_efficiency_fp4, "0.45 prior 15%", 0.01, 1, "share of the operands' peak that full GEMM tiles reach at sustained power, for operands of 4 bits"),
    QUANTITY_OPTION(hardware_config, gemm_prologue, "145 prior 20%", 0, 65536, "cost of prologue and epilogue of a tile, as steps along k"),
    QUANTITY_OPTION(hardware_config, gemm_prologue_fp8, "350 prior 20%", 0, 65536, "cost of prologue and epilogue of a tile, as steps along k, for operands of 8 bits"),
    QUANTITY_OPTION(hardware_config, gemm_prologue_fp4, "500 prior 30%", 0, 65536, "cost of prologue and epilogue of a tile, as steps along k, for operands of 4 bits"),
    QUANTITY_OPTION(hardware_config, gemm_accumulate, "256 prior 50%", 0, 65536, "cost of accumulating a tile into its output, as steps along k"),
    QUANTITY_OPTION(hardware_config, gemm_smoothing, "0.95 prior 10%", 0, 1, "share of the last wave's idle SMs that a GEMM still uses"),
    QUANTITY_OPTION(hardware_config, gemm_smoothing_fp8, "0.9 prior 15%", 0, 1, "share of the last wave's idle SMs that a GEMM still uses, for operands of 8 bits or less"),
    QUANTITY_OPTION(hardware_config, gemm_gap_fp8, "5e-6 prior 30%", 0, 1, "seconds between a GEMM with operands of 8 bits or less and the kernel before it"),
    QUANTITY_OPTION(hardware_config, gemm_tile_traffic, "0", 0, 16, "time that loading the operands of a 128 x 128 tile adds, relative to its products"),
    QUANTITY_OPTION(hardware_config, gemm_memory_exposed, "0", 0, 1, "share of the shorter of tile time and memory time that a GEMM does not overlap with the longer"),
    QUANTITY_OPTION(hardware_config, gemm_split_accumulation, "1", 1, 4, "time of an FP8 GEMM that adds partial sums in fp32 outside the tensor cores, over one with fast accumulation"),
    QUANTITY_OPTION(hardware_config, gemm_mxfp8, "1.05 prior 3%", 1, 4, "time of an MXFP8 GEMM, over an FP8 GEMM with one scale per operand"),
    QUANTITY_OPTION(hardware_config, attention_forward, "0.596 prior 8%", 0.01, 1, "share of the peak that attention over long sequences reaches, forward pass"),
    QUANTITY_OPTION(hardware_config, attention_backward, "0.475 prior 8%", 0.01, 1, "share of the peak that attention over long sequences reaches, backward pass"),
    QUANTITY_OPTION(hardware_config, attention_half_length, "512 prior 50%", 0, 65536, "keys at which attention reaches half of its share of the peak"),
    QUANTITY_OPTION(hardware_config, attention_heads_64, "0.8 prior 10%", 0.01, 10, "rate of attention with heads of 64, relative to heads of 128"),
    QUANTITY_OPTION(hardware_config, attention_heads_192, "1.03 prior 10%", 0.01, 10, "rate of attention with heads of 192, relative to heads of 128"),
    QUANTITY_OPTION(hardware_config, attention_heads_256, "1.06 prior 10%", 0.01, 10, "rate of attention with heads of 256, relative to heads of 128"),
    QUANTITY_OPTION(hardware_config, ampere_share, "0.62 prior 5%", 0.01, 1, "share of the BF16 peak of kernels written for Ampere's tensor instructions (mma.sync)"),
    QUANTITY_OPTION(hardware_config, attention_fp8_forward, "4.1e12 prior 10%", 1, 1e18, "query-key pairs per second of FP8 attention, for all work except its GEMMs, forward pass"),
    QUANTITY_OPTION(hardware_config, attention_fp8_backward, "4.5e11 prior 25%", 1, 1e18, "query-key pairs per second of FP8 attention, for all work except its GEMMs, backward pass"),
    QUANTITY_OPTION(hardware_config, memory_efficiency, "0.80 prior 8%", 0.01, 1, "share of memory_bandwidth that memory-bound kernels reach"),
    QUANTITY_OPTION(hardware_config, general_efficiency, "0.80 prior 15%", 0.01, 1, "share of memory_bandwidth that general elementwise kernels reach, as PyTorch's without a compiler"),
    QUANTITY_OPTION(hardware_config, cast_efficiency, "0.8 prior 15%", 0.01, 1, "share of memory_bandwidth that casts to FP8 reach"),
    QUANTITY_OPTION(hardware_config, scale_efficiency, "0.8 prior 25%", 0.01, 1, "share of memory_bandwidth at which a cast's input is read to find its scale"),
    QUANTITY_OPTION(hardware_config, kernel_gap, "1e-6 prior 50%", 0, 1, "seconds between two kernels"),
    QUANTITY_OPTION(hardware_config, launch_share, "1 prior 10%", 0.1, 10, "host launch time (software.expert_launch) relative to the host of a DGX"),
    QUANTITY_OPTION(hardware_config, launch_alone, "0", 0, 1, "share of the host launch time for which the device waits even with queued work; for hosts whose cores drive the network"),
    QUANTITY_OPTION(hardware_config, node_efficiency, "0.78 prior 10%", 0.01, 1, "share of node_bandwidth that communication reaches"),
    QUANTITY_OPTION(hardware_config, exchange_efficiency, "0", 0, 1, "share of node_bandwidth that all-to-alls reach, if lower than node_efficiency; 0: node_efficiency"),
    QUANTITY_OPTION(hardware_config, network_efficiency, "0.85 prior 10%", 0.01, 1, "share of network_bandwidth that communication reaches"),
    QUANTITY_OPTION(hardware_config, channel_bandwidth, "36.7e9 prior 15%", 0, 1e15, "bytes/s of a collective per SM; 0: no limit"),
    QUANTITY_OPTION(hardware_config, nvls_efficiency, "0.85 prior 5%", 0, 1, "share of the links' rate that reductions in the NVLink switch (NVLS) reach; 0: no NVLS"),
    QUANTITY_OPTION(hardware_config, node_latency, "3.4e-6 prior 30%", 0, 1, "seconds per hop within a node"),
    QUANTITY_OPTION(hardware_config, network_latency, "14e-6 prior 30%", 0, 1, "seconds per hop between nodes"),
    QUANTITY_OPTION(hardware_config, collective_latency, "15e-6 prior 30%", 0, 1, "seconds to start a collective across nodes"),
    QUANTITY_OPTION(hardware_config, node_collective_latency, "5e-6 prior 30%", 0, 1, "seconds to start a collective within a node"),
    TEXT_OPTION    (hardware_config, collectives, "none", "GPU of configs/hardware/collectives.csv whose measured times apply to collectives of 2, 4 or 8 ranks within a node; none: NCCL's model"),
    QUANTITY_OPTION(hardware_config, contention, "0.03 prior 100%", 0, 0.9, "seconds of compute lost per second of overlapped communication, in addition to the SMs that it uses"),
    QUANTITY_OPTION(hardware_config, jitter, "0.012 prior 40%", 0, 1, "relative standard deviation of a microbatch's time"),
    QUANTITY_OPTION(hardware_config, prediction_error, "0", 0, 100, "prediction error of models without experts on this device: one standard deviation in percent, in addition to the spread of the values"),
    QUANTITY_OPTION(hardware_config, expert_prediction_error, "0", 0, 100, "prediction error of models with experts on this device: one standard deviation in percent, in addition to the spread of the values"),
    INTEGER_OPTION (hardware_config, cores, "0", 0, 65536, "CPU cores that ranks compute on; 0: each rank has a device"),
    INTEGER_OPTION (hardware_config, core_ranks, "1", 1, 65536, "ranks that share these cores"),
    QUANTITY_OPTION(hardware_config, communication_delay, "0", 0, 1, "additional seconds per collective while all these cores compute"),
    END_OPTIONS
};
// clang-format on

int64_t hardware_context_bytes(const struct hardware_config *hardware)
{
    return hardware->cores > 0 ? 0 : (int64_t)CUDA_CONTEXT_MIB << 20;
}

bool hardware_holds(const struct hardware_config *hardware, int64_t bytes)
{
    return hardware->memory_gb.value == 0.0 || (double)bytes <= hardware->memory_gb.value * 1e9;
}

// A job that spans several NVLink domains uses the same number of nodes in each, such as 64 of 72 devices for 128
// ranks.
int64_t hardware_domain(const struct hardware_config *hardware, int64_t world)
{
    int64_t node = hardware->gpus_per_node, domain = hardware->link_domain;
    if (domain <= node || world <= node) {
        return node;
    }
    for (domain -= domain % node; domain > node && world > domain && world % domain != 0;) {
        domain -= node;
    }
    return domain;
}

// Names in collectives.csv, which has the times of collectives within a node: one row per GPU, op and number of ranks.
static const char *const collective_names[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", NULL};

// Parses a row such as "h100,2.29.2,all_gather,8,5.3,,6.1,...": GPU, NCCL version, collective, ranks, and microseconds
// by size (empty: not measured). Returns false if the row is malformed.
static bool read_row(struct collective_times *times, char *row)
{
    const char *fields[4];
    for (int i = 0; i < 4; i++) {
        fields[i] = strsep(&row, ",");
    }
    int64_t op    = row == NULL ? -1 : text_index(fields[2], collective_names);
    long    ranks = row == NULL ? 0 : strtol(fields[3], NULL, 10), group = 0;
    while (group < COLLECTIVE_GROUPS && 2L << group != ranks) {
        group++;
    }
    if (op < 0 || group == COLLECTIVE_GROUPS) {
        return false;
    }
    for (int i = 0; i < COLLECTIVE_SIZES && row != NULL; i++) {
        times->seconds[op][group][i] = 1e-6 * strtod(strsep(&row, ","), NULL);
    }
    return true;
}

void collectives_read(struct hardware_config *hardware, struct document *document)
{
    size_t bytes, length = strlen(hardware->collectives);
    bool   is_found = false;
    char  *text, *rest, *row, path[1400];
    hardware->collective_times = (struct collective_times){0};
    if (strcmp(hardware->collectives, "none") == 0) {
        return;
    }
    snprintf(path, sizeof(path), "%s/hardware/collectives.csv", config_folder());
    status result = input_load(path, FILE_BYTES_MAX, &text, &bytes);
    if (failed(&result)) {
        document_error(document, "[hardware] collectives = %s: %s: %s (collectives = none needs no file)",
                       hardware->collectives, path, result.text);
        return;
    }
    rest = arena_format(&document->arena, "%.*s", (int)bytes, text);
    free(text);
    while ((row = strsep(&rest, "\n")) != NULL) {
        if (strncmp(row, hardware->collectives, length) == 0 && row[length] == ',' && row[0] != '#') {
            is_found = true;
            if (!read_row(&hardware->collective_times, row)) {
                document_error(document, "%s: a row of %s is not GPU,NCCL,OP,RANKS,TIMES", path, hardware->collectives);
                return;
            }
        }
    }
    if (!is_found) {
        document_error(document, "[hardware] collectives = %s: %s has no such GPU", hardware->collectives, path);
    }
}

// Reads a hardware profile. Returns false if the file cannot be read or describes another device.
static bool read_hardware(struct hardware_config *hardware, const char *path, const char *device)
{
    struct text_buffer ignored  = {.text = NULL};
    struct document    document = {.errors = &ignored, .only = "hardware", .ignored = "measured"};
    struct config      config;
    config_set_defaults(&config);
    document_parse_file(&document, path);
    document_apply(&config, &document, (struct selection){.ranks = -1, .compute = -1});
    bool is_found = document.error_count == 0 && strcmp(config.hardware.device, device) == 0;
    if (is_found) {
        *hardware = config.hardware;
        collectives_read(hardware, &document);
    }
    document_free(&document);
    text_free(&ignored);
    return is_found;
}

bool config_find_hardware(struct hardware_config *hardware, const char *device)
{
    struct arena arena    = {.blocks = NULL};
    const char  *folder   = arena_format(&arena, "%s/hardware", config_folder());
    const char **names    = device[0] == '\0' ? NULL : config_names(&arena, folder);
    bool         is_found = false;
    for (int i = 0; names != NULL && names[i] != NULL && !is_found; i++) {
        is_found = read_hardware(hardware, arena_format(&arena, "%s/%s.ini", folder, names[i]), device);
        if (is_found) {
            text_copy(hardware->profile, sizeof(hardware->profile), names[i]);
        }
    }
    arena_free(&arena);
    return is_found;
}
