// SPDX-License-Identifier: MIT
// Published numbers of the shipped configurations. A row has the model, layout and batch of a job, and the published
// step time and MFU.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Numbers are strings with the digits that were published. An empty string means that nothing was published.
struct published_row {
    const char *config;
    int64_t     ranks;
    const char *precision;
    int64_t     layers;
    const char *billions;    // parameters in billions
    const char *layout;
    int64_t     global_batch;
    const char *flops;                         // per sequence, by the published convention
    const char *step_seconds, *mfu_percent;    // NULL: not published
    const char *derived_percent;    // MFU implied by the step time if it differs from the published MFU, else NULL
};

// clang-format off
#define FIGURES(config, ranks, layers, billions, layout, batch, flops, bf16_seconds, bf16_mfu, fp8_seconds, fp8_mfu) \
    {config, ranks, "bf16", layers, billions, layout, batch, flops, bf16_seconds, bf16_mfu, NULL}, \
    {config, ranks, "fp8", layers, billions, layout, batch, flops, fp8_seconds, fp8_mfu, NULL}

static const struct published_row published_rows[] = {
    // NVIDIA/dgxc-benchmarking v25.01.1, maxtext/README_70b.md
    FIGURES("llama2-70b-fsdp", 64, 80, "68.977", "fsdp 64", 128, "1.82e+15", "6.999", "52.59", "4.324", "42.54"),
    FIGURES("llama2-70b-fsdp", 128, 80, "68.977", "fsdp 128", 256, "1.82e+15", "7.072", "52.04", "4.556", "40.37"),
    FIGURES("llama2-70b-fsdp", 256, 80, "68.977", "fsdp 256", 512, "1.82e+15", "7.153", "51.45", "4.959", "37.09"),
    FIGURES("llama2-70b-fsdp", 512, 80, "68.977", "fsdp 128 dp 4", 1024, "1.82e+15", "7.091", "51.90", "5.043", "36.47"),
    FIGURES("llama2-70b-fsdp", 1024, 80, "68.977", "fsdp 128 dp 8", 2048, "1.82e+15", "7.084", "51.95", "5.062", "36.34"),
    FIGURES("llama2-70b-fsdp", 2048, 80, "68.977", "fsdp 128 dp 16", 4096, "1.82e+15", "7.066", "52.09", "4.93", "37.31"),
    // NVIDIA/dgxc-benchmarking v24.11.1, grok1/README_314b.md.
    // The published MFU of 1,024 GPUs in BF16 does not match the published step time.
    FIGURES("grok1-314b", 8, 2, "11.4", "dp 2 tp 4 ep 2 zero 1", 1024, "8.4306e+13", "24.03", "45.4", "19.89", "27.4"),
    FIGURES("grok1-314b", 16, 4, "21.3", "dp 4 tp 4 ep 4 zero 1", 1024, "1.4925e+14", "21.52", "44.9", "17.08", "28.3"),
    FIGURES("grok1-314b", 32, 4, "21.3", "dp 8 tp 4 ep 8 zero 1", 1024, "1.4925e+14", "10.64", "45.4", "8.3", "29.1"),
    FIGURES("grok1-314b", 64, 8, "40.9", "dp 8 tp 4 cp 2 ep 8 zero 1", 1024, "5.6815e+14", "20.64", "44.5", "16.21", "28.3"),
    FIGURES("grok1-314b", 128, 16, "80.3", "dp 8 tp 4 cp 2 ep 8 pp 2 vp 8 zero 1", 1024, "1.0976e+15", "20.64", "43.0", "16.48", "26.9"),
    FIGURES("grok1-314b", 256, 32, "159.0", "dp 8 tp 4 cp 2 ep 8 pp 4 vp 8 zero 1", 1024, "2.1564e+15", "20.7", "42.1", "16.55", "26.3"),
    FIGURES("grok1-314b", 512, 64, "316.5", "dp 8 tp 4 cp 2 ep 8 pp 8 vp 8 zero 1", 1024, "4.27405e+15", "20.83", "41.5", "16.69", "25.9"),
    {"grok1-314b", 1024, "bf16", 64, "316.5", "dp 16 tp 4 cp 2 ep 8 pp 8 vp 8 zero 1", 2048, "4.27405e+15", "21", "41.1", "41.2"},
    {"grok1-314b", 1024, "fp8", 64, "316.5", "dp 16 tp 4 cp 2 ep 8 pp 8 vp 8 zero 1", 2048, "4.27405e+15", "16.89", "25.6", NULL},
    FIGURES("grok1-314b", 2048, 64, "316.5", "dp 32 tp 4 cp 2 ep 8 pp 8 vp 8 zero 1", 4096, "4.27405e+15", "21.09", "41.0", "17.04", "25.3"),
    // NVIDIA/dgxc-benchmarking v25.01.1, nemotron/README_340b.md
    FIGURES("nemotron4-340b", 128, 96, "341.03", "dp 2 tp 8 pp 8 vp 12 zero 1", 32, "1.01e+16", "4.61", "55.38", "3.16", "40.38"),
    FIGURES("nemotron4-340b", 256, 96, "341.03", "dp 4 tp 8 pp 8 vp 12 zero 1", 64, "1.01e+16", "4.67", "54.67", "3.21", "39.75"),
    FIGURES("nemotron4-340b", 512, 96, "341.03", "dp 8 tp 8 pp 8 vp 12 zero 1", 128, "1.01e+16", "4.7", "54.32", "3.26", "39.14"),
    FIGURES("nemotron4-340b", 1024, 96, "341.03", "dp 16 tp 8 pp 8 vp 12 zero 1", 256, "1.01e+16", "4.73", "53.98", "3.34", "38.20"),
    FIGURES("nemotron4-340b", 2048, 96, "341.03", "dp 32 tp 8 pp 8 vp 12 zero 1", 512, "1.01e+16", "4.84", "52.75", "3.49", "36.56"),
    // NVIDIA/dgxc-benchmarking v25.04, llama3.1/README.md
    FIGURES("llama3.1-8b", 8, 32, "8.030", "dp 4 cp 2 zero 1", 128, "4.74e+14", "12.27", "62.47", "9.33", "41.07"),
    FIGURES("llama3.1-8b", 16, 32, "8.030", "dp 8 cp 2 zero 1", 256, "4.74e+14", "12.3", "62.31", "9.36", "40.94"),
    FIGURES("llama3.1-8b", 32, 32, "8.030", "dp 16 cp 2 zero 1", 512, "4.74e+14", "12.32", "62.21", "9.43", "40.64"),
    FIGURES("llama3.1-8b", 64, 32, "8.030", "dp 32 cp 2 zero 1", 1024, "4.74e+14", "12.33", "62.16", "9.48", "40.42"),
    FIGURES("llama3.1-8b", 128, 32, "8.030", "dp 64 cp 2 zero 1", 2048, "4.74e+14", "12.33", "62.16", "9.54", "40.17"),
    {"llama3.1-70b", 64, "bf16", 80, "70.554", "dp 2 tp 4 cp 2 pp 4 vp 5 zero 1", 128, "3.94e+15", "14.66", "54.32", NULL},
    {"llama3.1-70b", 64, "fp8", 80, "70.554", "dp 2 tp 4 pp 8 vp 5 zero 1", 128, "3.94e+15", "9.86", "40.38", NULL},
    {"llama3.1-70b", 128, "bf16", 80, "70.554", "dp 4 tp 4 cp 2 pp 4 vp 5 zero 1", 256, "3.94e+15", "14.67", "54.29", NULL},
    {"llama3.1-70b", 128, "fp8", 80, "70.554", "dp 4 tp 4 pp 8 vp 5 zero 1", 256, "3.94e+15", "9.95", "40.02", NULL},
    {"llama3.1-70b", 256, "bf16", 80, "70.554", "dp 8 tp 4 cp 2 pp 4 vp 5 zero 1", 512, "3.94e+15", "14.68", "54.25", NULL},
    {"llama3.1-70b", 256, "fp8", 80, "70.554", "dp 8 tp 4 pp 8 vp 5 zero 1", 512, "3.94e+15", "10", "39.82", NULL},
    {"llama3.1-70b", 512, "bf16", 80, "70.554", "dp 16 tp 4 cp 2 pp 4 vp 5 zero 1", 1024, "3.94e+15", "14.67", "54.29", NULL},
    {"llama3.1-70b", 512, "fp8", 80, "70.554", "dp 16 tp 4 pp 8 vp 5 zero 1", 1024, "3.94e+15", "10.07", "39.54", NULL},
    {"llama3.1-70b", 1024, "bf16", 80, "70.554", "dp 32 tp 4 cp 2 pp 4 vp 5 zero 1", 2048, "3.94e+15", "14.65", "54.36", NULL},
    {"llama3.1-70b", 1024, "fp8", 80, "70.554", "dp 32 tp 4 pp 8 vp 5 zero 1", 2048, "3.94e+15", "10.08", "39.50", NULL},
    {"llama3.1-70b", 2048, "bf16", 80, "70.554", "dp 64 tp 4 cp 2 pp 4 vp 5 zero 1", 4096, "3.94e+15", "14.66", "54.32", NULL},
    {"llama3.1-70b", 2048, "fp8", 80, "70.554", "dp 64 tp 4 pp 8 vp 5 zero 1", 4096, "3.94e+15", "10.15", "39.23", NULL},
    FIGURES("llama3.1-405b", 32, 8, "29.7", "dp 2 tp 8 cp 2 zero 1", 64, "1.4755e+15", "5.4", "55.23", "3.53", "42.24"),
    FIGURES("llama3.1-405b", 64, 30, "99.8", "tp 8 cp 2 pp 4 vp 8 zero 1", 64, "5.2490e+15", "10.1", "52.52", "6.32", "41.97"),
    FIGURES("llama3.1-405b", 128, 62, "201.8", "dp 2 tp 8 cp 2 pp 4 vp 8 zero 1", 128, "1.0738e+16", "19.62", "55.31", "12.18", "44.55"),
    FIGURES("llama3.1-405b", 512, 126, "405.853", "dp 4 tp 8 cp 2 pp 8 vp 8 zero 1", 256, "2.1715e+16", "19.78", "55.47", "12.37", "44.35"),
    FIGURES("llama3.1-405b", 1024, 126, "405.853", "dp 8 tp 8 cp 2 pp 8 vp 8 zero 1", 512, "2.1715e+16", "19.84", "55.31", "12.42", "44.17"),
    FIGURES("llama3.1-405b", 2048, 126, "405.853", "dp 16 tp 8 cp 2 pp 8 vp 8 zero 1", 1024, "2.1715e+16", "19.87", "55.22", "12.56", "43.68"),
    // pytorch/torchtitan, docs/performance.md of December 2024, publishes whole tokens/s/GPU. The step time is derived
    // from these rounded numbers, so its MFU may differ from the published one.
    {"torchtitan-llama3-8b", 64, "bf16", 32, "8.030261248", "fsdp 64", 64, "5.002565e+14", "2.821", "56.8", NULL},
    {"torchtitan-llama3-8b-selective-op", 64, "bf16", 32, "8.030261248", "fsdp 64", 64, "5.002565e+14", "2.755", "58.2", NULL},
    {"torchtitan-llama3-70b", 64, "bf16", 80, "70.553706496", "fsdp 64", 64, "3.995621e+15", "24.749", "51.7", NULL},
    {"torchtitan-llama3.1-405b", 128, "bf16", 126, "405.853", "fsdp 16 tp 8", 32, "2.1507682e+16", "18.789", "29.0", "28.9"},
    {"torchtitan-llama3.1-405b", 128, "fp8", 126, "405.853", "fsdp 16 tp 8", 32, "2.1507682e+16", "11.571", "23.46", "23.48"},
    {"torchtitan-llama3.1-405b-async-tp", 128, "fp8", 126, "405.853", "fsdp 16 tp 8", 32, "2.1507682e+16", "11.07", "24.52", "24.54"},
    // KempnerInstitute/KempnerForge, benchmarks/mfu_scaling of April 2026: 10,471 tokens per second on one H200.
    {"kempnerforge-llama3-8b", 1, "bf16", 32, "8.030261248", "one rank", 8, "2.237400e+14", "3.129", "57.8", NULL},
    // These configurations are shipped without a published step time.
    {"mixtral-8x7b", 1, "bf16", 32, "46.703", "one rank", 1, "", NULL, NULL, NULL},
    {"qwen3-30b-a3b", 1, "bf16", 48, "30.532", "one rank", 1, "", NULL, NULL, NULL},
    {"tiny-geglu", 1, "bf16", 3, "0.000558", "one rank", 8, "", NULL, NULL, NULL},
    {"tiny-llama", 1, "bf16", 4, "0.000870", "one rank", 8, "", NULL, NULL, NULL},
    {"tiny-nemotron", 1, "bf16", 3, "0.000404", "one rank", 8, "", NULL, NULL, NULL},
};
// clang-format on
enum { PUBLISHED_ROWS = sizeof(published_rows) / sizeof(published_rows[0]) };
