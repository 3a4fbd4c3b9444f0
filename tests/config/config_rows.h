// SPDX-License-Identifier: MIT
// Rows of the shipped configurations: model, layout and batch of each, as published.
#pragma once

#include <stdint.h>

// Numbers are strings with the published digits; an empty one was not published.
struct row {
    const char *config;
    int64_t     ranks;
    const char *precision;
    int64_t     layers;
    const char *billions;    // parameters
    const char *layout;
    int64_t     global_batch;
    const char *flops;    // per sequence, by the published convention
};

// clang-format off
#define SAME_ROWS(config, ranks, ...) {config, ranks, "bf16", __VA_ARGS__}, {config, ranks, "fp8", __VA_ARGS__}

static const struct row rows[] = {
    {"kempnerforge-llama3-8b", 1, "bf16", 32, "8.030261248", "one rank", 8, "2.237400e+14"},
    SAME_ROWS("llama2-70b-fsdp", 64, 80, "68.977", "fsdp 64", 128, "1.82e+15"),
    SAME_ROWS("llama2-70b-fsdp", 128, 80, "68.977", "fsdp 128", 256, "1.82e+15"),
    SAME_ROWS("llama2-70b-fsdp", 256, 80, "68.977", "fsdp 256", 512, "1.82e+15"),
    SAME_ROWS("llama2-70b-fsdp", 512, 80, "68.977", "fsdp 128 dp 4", 1024, "1.82e+15"),
    SAME_ROWS("llama2-70b-fsdp", 1024, 80, "68.977", "fsdp 128 dp 8", 2048, "1.82e+15"),
    SAME_ROWS("llama2-70b-fsdp", 2048, 80, "68.977", "fsdp 128 dp 16", 4096, "1.82e+15"),
    SAME_ROWS("grok1-314b", 8, 2, "11.4", "dp 2 tp 4 ep 2 zero 1", 1024, "8.4306e+13"),
    SAME_ROWS("grok1-314b", 16, 4, "21.3", "dp 4 tp 4 ep 4 zero 1", 1024, "1.4925e+14"),
    SAME_ROWS("grok1-314b", 32, 4, "21.3", "dp 8 tp 4 ep 8 zero 1", 1024, "1.4925e+14"),
    SAME_ROWS("grok1-314b", 64, 8, "40.9", "dp 8 tp 4 cp 2 ep 8 zero 1", 1024, "5.6815e+14"),
    SAME_ROWS("grok1-314b", 128, 16, "80.3", "dp 8 tp 4 cp 2 ep 8 pp 2 vp 8 zero 1", 1024, "1.0976e+15"),
    SAME_ROWS("grok1-314b", 256, 32, "159.0", "dp 8 tp 4 cp 2 ep 8 pp 4 vp 8 zero 1", 1024, "2.1564e+15"),
    SAME_ROWS("grok1-314b", 512, 64, "316.5", "dp 8 tp 4 cp 2 ep 8 pp 8 vp 8 zero 1", 1024, "4.27405e+15"),
    SAME_ROWS("grok1-314b", 1024, 64, "316.5", "dp 16 tp 4 cp 2 ep 8 pp 8 vp 8 zero 1", 2048, "4.27405e+15"),
    SAME_ROWS("grok1-314b", 2048, 64, "316.5", "dp 32 tp 4 cp 2 ep 8 pp 8 vp 8 zero 1", 4096, "4.27405e+15"),
    SAME_ROWS("nemotron4-340b", 128, 96, "341.03", "dp 2 tp 8 pp 8 vp 12 zero 1", 32, "1.01e+16"),
    SAME_ROWS("nemotron4-340b", 256, 96, "341.03", "dp 4 tp 8 pp 8 vp 12 zero 1", 64, "1.01e+16"),
    SAME_ROWS("nemotron4-340b", 512, 96, "341.03", "dp 8 tp 8 pp 8 vp 12 zero 1", 128, "1.01e+16"),
    SAME_ROWS("nemotron4-340b", 1024, 96, "341.03", "dp 16 tp 8 pp 8 vp 12 zero 1", 256, "1.01e+16"),
    SAME_ROWS("nemotron4-340b", 2048, 96, "341.03", "dp 32 tp 8 pp 8 vp 12 zero 1", 512, "1.01e+16"),
    SAME_ROWS("llama3.1-8b", 8, 32, "8.030", "dp 4 cp 2 zero 1", 128, "4.74e+14"),
    SAME_ROWS("llama3.1-8b", 16, 32, "8.030", "dp 8 cp 2 zero 1", 256, "4.74e+14"),
    SAME_ROWS("llama3.1-8b", 32, 32, "8.030", "dp 16 cp 2 zero 1", 512, "4.74e+14"),
    SAME_ROWS("llama3.1-8b", 64, 32, "8.030", "dp 32 cp 2 zero 1", 1024, "4.74e+14"),
    SAME_ROWS("llama3.1-8b", 128, 32, "8.030", "dp 64 cp 2 zero 1", 2048, "4.74e+14"),
    {"llama3.1-70b", 64, "bf16", 80, "70.554", "dp 2 tp 4 cp 2 pp 4 vp 5 zero 1", 128, "3.94e+15"},
    {"llama3.1-70b", 64, "fp8", 80, "70.554", "dp 2 tp 4 pp 8 vp 5 zero 1", 128, "3.94e+15"},
    {"llama3.1-70b", 128, "bf16", 80, "70.554", "dp 4 tp 4 cp 2 pp 4 vp 5 zero 1", 256, "3.94e+15"},
    {"llama3.1-70b", 128, "fp8", 80, "70.554", "dp 4 tp 4 pp 8 vp 5 zero 1", 256, "3.94e+15"},
    {"llama3.1-70b", 256, "bf16", 80, "70.554", "dp 8 tp 4 cp 2 pp 4 vp 5 zero 1", 512, "3.94e+15"},
    {"llama3.1-70b", 256, "fp8", 80, "70.554", "dp 8 tp 4 pp 8 vp 5 zero 1", 512, "3.94e+15"},
    {"llama3.1-70b", 512, "bf16", 80, "70.554", "dp 16 tp 4 cp 2 pp 4 vp 5 zero 1", 1024, "3.94e+15"},
    {"llama3.1-70b", 512, "fp8", 80, "70.554", "dp 16 tp 4 pp 8 vp 5 zero 1", 1024, "3.94e+15"},
    {"llama3.1-70b", 1024, "bf16", 80, "70.554", "dp 32 tp 4 cp 2 pp 4 vp 5 zero 1", 2048, "3.94e+15"},
    {"llama3.1-70b", 1024, "fp8", 80, "70.554", "dp 32 tp 4 pp 8 vp 5 zero 1", 2048, "3.94e+15"},
    {"llama3.1-70b", 2048, "bf16", 80, "70.554", "dp 64 tp 4 cp 2 pp 4 vp 5 zero 1", 4096, "3.94e+15"},
    {"llama3.1-70b", 2048, "fp8", 80, "70.554", "dp 64 tp 4 pp 8 vp 5 zero 1", 4096, "3.94e+15"},
    SAME_ROWS("llama3.1-405b", 32, 8, "29.7", "dp 2 tp 8 cp 2 zero 1", 64, "1.4755e+15"),
    SAME_ROWS("llama3.1-405b", 64, 30, "99.8", "tp 8 cp 2 pp 4 vp 8 zero 1", 64, "5.2490e+15"),
    SAME_ROWS("llama3.1-405b", 128, 62, "201.8", "dp 2 tp 8 cp 2 pp 4 vp 8 zero 1", 128, "1.0738e+16"),
    SAME_ROWS("llama3.1-405b", 512, 126, "405.853", "dp 4 tp 8 cp 2 pp 8 vp 8 zero 1", 256, "2.1715e+16"),
    SAME_ROWS("llama3.1-405b", 1024, 126, "405.853", "dp 8 tp 8 cp 2 pp 8 vp 8 zero 1", 512, "2.1715e+16"),
    SAME_ROWS("llama3.1-405b", 2048, 126, "405.853", "dp 16 tp 8 cp 2 pp 8 vp 8 zero 1", 1024, "2.1715e+16"),
    {"mixtral-8x7b", 1, "bf16", 32, "46.703", "one rank", 1, ""},
    {"qwen3-30b-a3b", 1, "bf16", 48, "30.532", "one rank", 1, ""},
    {"tiny-geglu", 1, "bf16", 3, "0.000558", "one rank", 8, ""},
    {"tiny-llama", 1, "bf16", 4, "0.000870", "one rank", 8, ""},
    {"tiny-nemotron", 1, "bf16", 3, "0.000404", "one rank", 8, ""},
    {"torchtitan-llama3-70b", 64, "bf16", 80, "70.553706496", "fsdp 64", 64, "3.995621e+15"},
    {"torchtitan-llama3-8b", 64, "bf16", 32, "8.030261248", "fsdp 64", 64, "5.002565e+14"},
    {"torchtitan-llama3-8b-selective-op", 64, "bf16", 32, "8.030261248", "fsdp 64", 64, "5.002565e+14"},
    SAME_ROWS("torchtitan-llama3.1-405b", 128, 126, "405.853", "fsdp 16 tp 8", 32, "2.1507682e+16"),
    {"torchtitan-llama3.1-405b-async-tp", 128, "fp8", 126, "405.853", "fsdp 16 tp 8", 32, "2.1507682e+16"},
};
// clang-format on
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
