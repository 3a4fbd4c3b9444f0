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
#define FIGURES(config, ranks, bf16_seconds, bf16_mfu, fp8_seconds, fp8_mfu) \
    {config, ranks, "bf16", bf16_seconds, bf16_mfu, NULL}, {config, ranks, "fp8", fp8_seconds, fp8_mfu, NULL}

static const struct published_row published_rows[] = {
    // NVIDIA/dgxc-benchmarking v25.01.1, maxtext/README_70b.md
    FIGURES("llama2-70b-fsdp", 64, "6.999", "52.59", "4.324", "42.54"),
    FIGURES("llama2-70b-fsdp", 128, "7.072", "52.04", "4.556", "40.37"),
    FIGURES("llama2-70b-fsdp", 256, "7.153", "51.45", "4.959", "37.09"),
    FIGURES("llama2-70b-fsdp", 512, "7.091", "51.90", "5.043", "36.47"),
    FIGURES("llama2-70b-fsdp", 1024, "7.084", "51.95", "5.062", "36.34"),
    FIGURES("llama2-70b-fsdp", 2048, "7.066", "52.09", "4.93", "37.31"),
    // NVIDIA/dgxc-benchmarking v24.11.1, grok1/README_314b.md.
    // The MFU of 1,024 GPUs in BF16 does not match its step time.
    FIGURES("grok1-314b", 8, "24.03", "45.4", "19.89", "27.4"),
    FIGURES("grok1-314b", 16, "21.52", "44.9", "17.08", "28.3"),
    FIGURES("grok1-314b", 32, "10.64", "45.4", "8.3", "29.1"),
    FIGURES("grok1-314b", 64, "20.64", "44.5", "16.21", "28.3"),
    FIGURES("grok1-314b", 128, "20.64", "43.0", "16.48", "26.9"),
    FIGURES("grok1-314b", 256, "20.7", "42.1", "16.55", "26.3"),
    FIGURES("grok1-314b", 512, "20.83", "41.5", "16.69", "25.9"),
    {"grok1-314b", 1024, "bf16", "21", "41.1", "41.2"},
    {"grok1-314b", 1024, "fp8", "16.89", "25.6", NULL},
    FIGURES("grok1-314b", 2048, "21.09", "41.0", "17.04", "25.3"),
    // NVIDIA/dgxc-benchmarking v25.01.1, nemotron/README_340b.md
    FIGURES("nemotron4-340b", 128, "4.61", "55.38", "3.16", "40.38"),
    FIGURES("nemotron4-340b", 256, "4.67", "54.67", "3.21", "39.75"),
    FIGURES("nemotron4-340b", 512, "4.7", "54.32", "3.26", "39.14"),
    FIGURES("nemotron4-340b", 1024, "4.73", "53.98", "3.34", "38.20"),
    FIGURES("nemotron4-340b", 2048, "4.84", "52.75", "3.49", "36.56"),
    // NVIDIA/dgxc-benchmarking v25.04, llama3.1/README.md
    FIGURES("llama3.1-8b", 8, "12.27", "62.47", "9.33", "41.07"),
    FIGURES("llama3.1-8b", 16, "12.3", "62.31", "9.36", "40.94"),
    FIGURES("llama3.1-8b", 32, "12.32", "62.21", "9.43", "40.64"),
    FIGURES("llama3.1-8b", 64, "12.33", "62.16", "9.48", "40.42"),
    FIGURES("llama3.1-8b", 128, "12.33", "62.16", "9.54", "40.17"),
    FIGURES("llama3.1-70b", 64, "14.66", "54.32", "9.86", "40.38"),
    FIGURES("llama3.1-70b", 128, "14.67", "54.29", "9.95", "40.02"),
    FIGURES("llama3.1-70b", 256, "14.68", "54.25", "10", "39.82"),
    FIGURES("llama3.1-70b", 512, "14.67", "54.29", "10.07", "39.54"),
    FIGURES("llama3.1-70b", 1024, "14.65", "54.36", "10.08", "39.50"),
    FIGURES("llama3.1-70b", 2048, "14.66", "54.32", "10.15", "39.23"),
    FIGURES("llama3.1-405b", 32, "5.4", "55.23", "3.53", "42.24"),
    FIGURES("llama3.1-405b", 64, "10.1", "52.52", "6.32", "41.97"),
    FIGURES("llama3.1-405b", 128, "19.62", "55.31", "12.18", "44.55"),
    FIGURES("llama3.1-405b", 512, "19.78", "55.47", "12.37", "44.35"),
    FIGURES("llama3.1-405b", 1024, "19.84", "55.31", "12.42", "44.17"),
    FIGURES("llama3.1-405b", 2048, "19.87", "55.22", "12.56", "43.68"),
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
