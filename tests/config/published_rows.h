// SPDX-License-Identifier: MIT
// Published step times and MFU, row by row, with the published digits.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct published_row {
    const char *config;
    int64_t     ranks;
    const char *precision, *step_seconds, *mfu_percent;
    const char *derived_percent;    // MFU implied by the step time, if it differs from the published one; else NULL
};

// clang-format off
static const struct published_row published_rows[] = {
    // NVIDIA/dgxc-benchmarking v25.01.1, maxtext/README_70b.md
    {"llama2-70b-fsdp", 64, "bf16", "6.999", "52.59", NULL},
    {"llama2-70b-fsdp", 64, "fp8", "4.324", "42.54", NULL},
    {"llama2-70b-fsdp", 128, "bf16", "7.072", "52.04", NULL},
    {"llama2-70b-fsdp", 128, "fp8", "4.556", "40.37", NULL},
    {"llama2-70b-fsdp", 256, "bf16", "7.153", "51.45", NULL},
    {"llama2-70b-fsdp", 256, "fp8", "4.959", "37.09", NULL},
    {"llama2-70b-fsdp", 512, "bf16", "7.091", "51.90", NULL},
    {"llama2-70b-fsdp", 512, "fp8", "5.043", "36.47", NULL},
    {"llama2-70b-fsdp", 1024, "bf16", "7.084", "51.95", NULL},
    {"llama2-70b-fsdp", 1024, "fp8", "5.062", "36.34", NULL},
    {"llama2-70b-fsdp", 2048, "bf16", "7.066", "52.09", NULL},
    {"llama2-70b-fsdp", 2048, "fp8", "4.93", "37.31", NULL},
    // NVIDIA/dgxc-benchmarking v24.11.1, grok1/README_314b.md.
    // The MFU of 1,024 GPUs in BF16 does not match its step time.
    {"grok1-314b", 8, "bf16", "24.03", "45.4", NULL},
    {"grok1-314b", 8, "fp8", "19.89", "27.4", NULL},
    {"grok1-314b", 16, "bf16", "21.52", "44.9", NULL},
    {"grok1-314b", 16, "fp8", "17.08", "28.3", NULL},
    {"grok1-314b", 32, "bf16", "10.64", "45.4", NULL},
    {"grok1-314b", 32, "fp8", "8.3", "29.1", NULL},
    {"grok1-314b", 64, "bf16", "20.64", "44.5", NULL},
    {"grok1-314b", 64, "fp8", "16.21", "28.3", NULL},
    {"grok1-314b", 128, "bf16", "20.64", "43.0", NULL},
    {"grok1-314b", 128, "fp8", "16.48", "26.9", NULL},
    {"grok1-314b", 256, "bf16", "20.7", "42.1", NULL},
    {"grok1-314b", 256, "fp8", "16.55", "26.3", NULL},
    {"grok1-314b", 512, "bf16", "20.83", "41.5", NULL},
    {"grok1-314b", 512, "fp8", "16.69", "25.9", NULL},
    {"grok1-314b", 1024, "bf16", "21", "41.1", "41.2"},
    {"grok1-314b", 1024, "fp8", "16.89", "25.6", NULL},
    {"grok1-314b", 2048, "bf16", "21.09", "41.0", NULL},
    {"grok1-314b", 2048, "fp8", "17.04", "25.3", NULL},
    // NVIDIA/dgxc-benchmarking v25.01.1, nemotron/README_340b.md
    {"nemotron4-340b", 128, "bf16", "4.61", "55.38", NULL},
    {"nemotron4-340b", 128, "fp8", "3.16", "40.38", NULL},
    {"nemotron4-340b", 256, "bf16", "4.67", "54.67", NULL},
    {"nemotron4-340b", 256, "fp8", "3.21", "39.75", NULL},
    {"nemotron4-340b", 512, "bf16", "4.7", "54.32", NULL},
    {"nemotron4-340b", 512, "fp8", "3.26", "39.14", NULL},
    {"nemotron4-340b", 1024, "bf16", "4.73", "53.98", NULL},
    {"nemotron4-340b", 1024, "fp8", "3.34", "38.20", NULL},
    {"nemotron4-340b", 2048, "bf16", "4.84", "52.75", NULL},
    {"nemotron4-340b", 2048, "fp8", "3.49", "36.56", NULL},
    // NVIDIA/dgxc-benchmarking v25.04, llama3.1/README.md
    {"llama3.1-8b", 8, "bf16", "12.27", "62.47", NULL},
    {"llama3.1-8b", 8, "fp8", "9.33", "41.07", NULL},
    {"llama3.1-8b", 16, "bf16", "12.3", "62.31", NULL},
    {"llama3.1-8b", 16, "fp8", "9.36", "40.94", NULL},
    {"llama3.1-8b", 32, "bf16", "12.32", "62.21", NULL},
    {"llama3.1-8b", 32, "fp8", "9.43", "40.64", NULL},
    {"llama3.1-8b", 64, "bf16", "12.33", "62.16", NULL},
    {"llama3.1-8b", 64, "fp8", "9.48", "40.42", NULL},
    {"llama3.1-8b", 128, "bf16", "12.33", "62.16", NULL},
    {"llama3.1-8b", 128, "fp8", "9.54", "40.17", NULL},
    {"llama3.1-70b", 64, "bf16", "14.66", "54.32", NULL},
    {"llama3.1-70b", 64, "fp8", "9.86", "40.38", NULL},
    {"llama3.1-70b", 128, "bf16", "14.67", "54.29", NULL},
    {"llama3.1-70b", 128, "fp8", "9.95", "40.02", NULL},
    {"llama3.1-70b", 256, "bf16", "14.68", "54.25", NULL},
    {"llama3.1-70b", 256, "fp8", "10", "39.82", NULL},
    {"llama3.1-70b", 512, "bf16", "14.67", "54.29", NULL},
    {"llama3.1-70b", 512, "fp8", "10.07", "39.54", NULL},
    {"llama3.1-70b", 1024, "bf16", "14.65", "54.36", NULL},
    {"llama3.1-70b", 1024, "fp8", "10.08", "39.50", NULL},
    {"llama3.1-70b", 2048, "bf16", "14.66", "54.32", NULL},
    {"llama3.1-70b", 2048, "fp8", "10.15", "39.23", NULL},
    {"llama3.1-405b", 32, "bf16", "5.4", "55.23", NULL},
    {"llama3.1-405b", 32, "fp8", "3.53", "42.24", NULL},
    {"llama3.1-405b", 64, "bf16", "10.1", "52.52", NULL},
    {"llama3.1-405b", 64, "fp8", "6.32", "41.97", NULL},
    {"llama3.1-405b", 128, "bf16", "19.62", "55.31", NULL},
    {"llama3.1-405b", 128, "fp8", "12.18", "44.55", NULL},
    {"llama3.1-405b", 512, "bf16", "19.78", "55.47", NULL},
    {"llama3.1-405b", 512, "fp8", "12.37", "44.35", NULL},
    {"llama3.1-405b", 1024, "bf16", "19.84", "55.31", NULL},
    {"llama3.1-405b", 1024, "fp8", "12.42", "44.17", NULL},
    {"llama3.1-405b", 2048, "bf16", "19.87", "55.22", NULL},
    {"llama3.1-405b", 2048, "fp8", "12.56", "43.68", NULL},
    // pytorch/torchtitan, docs/performance.md of December 2024, states whole tokens/s/GPU. The step time is derived
    // from that, so its MFU may differ.
    {"torchtitan-llama3-8b", 64, "bf16", "2.821", "56.8", NULL},
    {"torchtitan-llama3-8b-selective-op", 64, "bf16", "2.755", "58.2", NULL},
    {"torchtitan-llama3-70b", 64, "bf16", "24.749", "51.7", NULL},
    {"torchtitan-llama3.1-405b", 128, "bf16", "18.789", "29.0", "28.9"},
    {"torchtitan-llama3.1-405b", 128, "fp8", "11.571", "23.46", "23.48"},
    {"torchtitan-llama3.1-405b-async-tp", 128, "fp8", "11.07", "24.52", "24.54"},
    // KempnerInstitute/KempnerForge, benchmarks/mfu_scaling of April 2026: 10,471 tokens per second on one H200.
    {"kempnerforge-llama3-8b", 1, "bf16", "3.129", "57.8", NULL},
};
// clang-format on
enum { PUBLISHED_ROWS = sizeof(published_rows) / sizeof(published_rows[0]) };

static inline const struct published_row *published_row_find(const char *config, int64_t ranks, const char *precision)
{
    for (int i = 0; i < PUBLISHED_ROWS; i++) {
        const struct published_row *row = &published_rows[i];
        if (strcmp(row->config, config) == 0 && row->ranks == ranks && strcmp(row->precision, precision) == 0) {
            return row;
        }
    }
    return NULL;
}
