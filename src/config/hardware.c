// SPDX-License-Identifier: MIT
// The [hardware] options, and the installed profile of a device.
#include "gswbench/hardware.h"

#include <stdlib.h>
#include <string.h>

#include "internal.h"

// clang-format off
#define PEAK_OPTION(NAME, name) \
    {"peak_" #name, OPTION_QUANTITY, OPTION_FIELD(hardware_config, peak[RATE_##NAME]), "0", 0, 1e18, NULL, \
     "dense " #NAME " FLOP/s of a device; 0: unknown, and no MFU"},

const struct option hardware_options[] = {
    TEXT_OPTION    (hardware_config, profile, "none", "hardware read first, from configs/hardware/NAME.ini, or a file whose name has a /; none: no hardware"),
    TEXT_OPTION    (hardware_config, device, "", "device, as its driver names it: only a run on that device is compared with these peaks; empty: none"),
    INTEGER_OPTION (hardware_config, gpus_per_node, "8", 1, 1024, "devices of a node"),
    INTEGER_OPTION (hardware_config, link_domain, "0", 0, 65536, "devices that node_bandwidth connects, where that are more than a node has, as NVLink does in a rack; 0: those of a node"),
    QUANTITY_OPTION(hardware_config, memory_gb, "0", 0, 1e6, "memory of a device in GB (1e9 bytes); 0: unknown"),
    RATES(PEAK_OPTION)
    INTEGER_OPTION (hardware_config, multiprocessors, "0", 0, 4096, "streaming multiprocessors of a device; 0: unknown"),
    QUANTITY_OPTION(hardware_config, memory_bandwidth, "0", 0, 1e15, "bytes/s of a device's memory; 0: unknown"),
    QUANTITY_OPTION(hardware_config, node_bandwidth, "0", 0, 1e15, "bytes/s of a device to the others of its node or link_domain, in one direction; 0: unknown"),
    QUANTITY_OPTION(hardware_config, network_bandwidth, "0", 0, 1e15, "bytes/s of a device to other nodes, in one direction; 0: unknown"),
    QUANTITY_OPTION(hardware_config, storage_bandwidth, "0", 0, 1e15, "bytes/s of a checkpoint that all ranks together write, or read; 0: unknown"),
    QUANTITY_OPTION(hardware_config, power_share, "1", 0.1, 1, "share of its rated power that a device may draw; what multiplies runs at the cube root of it"),
    QUANTITY_OPTION(hardware_config, gemm_efficiency, "0.72 prior 5%", 0.01, 1, "share of the peak of its operands that full tiles of a GEMM reach at sustained power"),
    QUANTITY_OPTION(hardware_config, gemm_efficiency_fp8, "0.70 prior 6%", 0.01, 1, "the same share for GEMMs of operands in FP8 or narrower"),
    QUANTITY_OPTION(hardware_config, gemm_prologue, "256 prior 30%", 0, 65536, "cost of beginning and ending a tile, in steps along k"),
    QUANTITY_OPTION(hardware_config, gemm_prologue_fp8, "1024 prior 30%", 0, 65536, "the same for GEMMs of operands in FP8 or narrower"),
    QUANTITY_OPTION(hardware_config, gemm_accumulate, "256 prior 50%", 0, 65536, "cost of adding a tile to its output, in steps along k"),
    QUANTITY_OPTION(hardware_config, gemm_smoothing, "0.5 prior 50%", 0, 1, "share of the last wave's idle multiprocessors that a GEMM puts to use"),
    QUANTITY_OPTION(hardware_config, attention_forward, "0.596 prior 8%", 0.01, 1, "share of the peak that attention over long sequences reaches"),
    QUANTITY_OPTION(hardware_config, attention_backward, "0.475 prior 8%", 0.01, 1, "the same for its backward pass"),
    QUANTITY_OPTION(hardware_config, attention_half_length, "512 prior 50%", 0, 65536, "keys at which attention reaches half of that share"),
    QUANTITY_OPTION(hardware_config, attention_fp8_forward, "4.1e12 prior 10%", 1, 1e18, "pairs of a query and a key a second that attention in FP8 computes, beside its products"),
    QUANTITY_OPTION(hardware_config, attention_fp8_backward, "4.5e11 prior 25%", 1, 1e18, "the same for its backward pass"),
    QUANTITY_OPTION(hardware_config, memory_efficiency, "0.80 prior 8%", 0.01, 1, "share of memory_bandwidth that streaming kernels reach"),
    QUANTITY_OPTION(hardware_config, kernel_gap, "4e-6 prior 50%", 0, 1, "seconds between two kernels"),
    QUANTITY_OPTION(hardware_config, launch_share, "1 prior 10%", 0.1, 10, "seconds that the host takes to launch what a program says (software.expert_launch), as a share of those of a DGX's host"),
    QUANTITY_OPTION(hardware_config, launch_alone, "0", 0, 1, "share of these seconds for which the device waits even where it has work: of hosts whose processors drive the network"),
    QUANTITY_OPTION(hardware_config, node_efficiency, "0.78 prior 10%", 0.01, 1, "share of node_bandwidth that transfers reach"),
    QUANTITY_OPTION(hardware_config, exchange_efficiency, "0", 0, 1, "the same for exchanges of all with all, where these reach less; 0: as others"),
    QUANTITY_OPTION(hardware_config, network_efficiency, "0.85 prior 10%", 0.01, 1, "share of network_bandwidth that transfers reach"),
    QUANTITY_OPTION(hardware_config, channel_bandwidth, "36.7e9 prior 15%", 0, 1e15, "bytes/s that a transfer moves on one multiprocessor; 0: no bound"),
    QUANTITY_OPTION(hardware_config, nvls_efficiency, "0.85 prior 5%", 0, 1, "share of the links' rate that sums in the switch of a node reach (NVLS); 0: it makes none"),
    QUANTITY_OPTION(hardware_config, node_latency, "3.4e-6 prior 30%", 0, 1, "seconds of a hop within a node"),
    QUANTITY_OPTION(hardware_config, network_latency, "14e-6 prior 30%", 0, 1, "seconds of a hop between nodes"),
    QUANTITY_OPTION(hardware_config, collective_latency, "15e-6 prior 30%", 0, 1, "seconds that starting a collective costs"),
    QUANTITY_OPTION(hardware_config, contention, "0.03 prior 100%", 0, 0.9, "seconds that compute loses for each second of transfers that overlap it, beside the multiprocessors that these take"),
    QUANTITY_OPTION(hardware_config, jitter, "0.012 prior 40%", 0, 1, "standard deviation of a microbatch's time, as a share of it"),
    QUANTITY_OPTION(hardware_config, step_overhead, "0.025 prior 40%", 0, 10, "seconds that every step takes beyond its ops"),
    INTEGER_OPTION (hardware_config, cores, "0", 0, 65536, "processor cores that ranks compute on; 0: each rank has a device"),
    INTEGER_OPTION (hardware_config, core_ranks, "1", 1, 65536, "ranks that share these cores"),
    QUANTITY_OPTION(hardware_config, transfer_delay, "0", 0, 1, "seconds that a transfer takes longer while all these cores compute"),
    END_OPTIONS
};
// clang-format on

// A job that spans link domains uses equally many nodes in each, e.g. 64 of 72 devices for 128 ranks.
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

// Returns false if the file cannot be read or describes another device.
static bool read_hardware(struct hardware_config *hardware, const char *path, const char *device)
{
    struct text_buffer ignored  = {.text = NULL};
    struct document    document = {.errors = &ignored, .only = "hardware", .ignored = "measured"};
    struct config      config;
    config_set_defaults(&config);
    document_parse_file(&document, path);
    document_apply(&config, &document, (struct selection){.ranks = -1, .compute = -1});
    bool is_found = document.error_count == 0 && strcmp(config.hardware.device, device) == 0;
    *hardware     = is_found ? config.hardware : *hardware;
    document_free(&document);
    text_free(&ignored);
    return is_found;
}

bool config_find_hardware(struct hardware_config *hardware, const char *device)
{
    struct dirent **entries;
    char            folder[1100], path[1400];
    bool            is_found = false;
    snprintf(folder, sizeof(folder), "%s/hardware", config_folder());
    int count = device[0] == '\0' ? 0 : scandir(folder, &entries, config_is_file, alphasort);
    for (int i = 0; i < count; i++) {
        const char *file = entries[i]->d_name;
        snprintf(path, sizeof(path), "%s/%s", folder, file);
        if (!is_found && read_hardware(hardware, path, device)) {
            is_found = true;
            snprintf(hardware->profile, sizeof(hardware->profile), "%.*s", (int)(strlen(file) - strlen(".ini")), file);
        }
        free(entries[i]);
    }
    if (count > 0) {
        free(entries);
    }
    return is_found;
}
