// SPDX-License-Identifier: MIT
// Lists the instruction sets that the compiler may use for the host backend (-march=native). Columns: name in the
// compiler's macro (AVX2: __AVX2__), name for messages (mostly as in /proc/cpuinfo), then leaf, subleaf, register and
// bit of cpuid.
#pragma once

#include <stdint.h>

enum cpuid_register { CPUID_EAX, CPUID_EBX, CPUID_ECX, CPUID_EDX };

// clang-format off
#define PROCESSOR_FEATURES(FEATURE)                                                                                   \
    FEATURE(SSE3,        "sse3",             1, 0, CPUID_ECX, 0)          FEATURE(SSSE3,     "ssse3",     1, 0, CPUID_ECX, 9)   \
    FEATURE(SSE4_1,      "sse4.1",           1, 0, CPUID_ECX, 19)         FEATURE(SSE4_2,    "sse4.2",    1, 0, CPUID_ECX, 20)  \
    FEATURE(POPCNT,      "popcnt",           1, 0, CPUID_ECX, 23)         FEATURE(MOVBE,     "movbe",     1, 0, CPUID_ECX, 22)  \
    FEATURE(AES,         "aes",              1, 0, CPUID_ECX, 25)         FEATURE(PCLMUL,    "pclmulqdq", 1, 0, CPUID_ECX, 1)   \
    FEATURE(LZCNT,       "lzcnt",            0x80000001, 0, CPUID_ECX, 5) FEATURE(SSE4A,     "sse4a",     0x80000001, 0, CPUID_ECX, 6) \
    FEATURE(BMI,         "bmi1",             7, 0, CPUID_EBX, 3)          FEATURE(BMI2,      "bmi2",      7, 0, CPUID_EBX, 8)   \
    FEATURE(ADX,         "adx",              7, 0, CPUID_EBX, 19)         FEATURE(SHA,       "sha_ni",    7, 0, CPUID_EBX, 29)  \
    FEATURE(GFNI,        "gfni",             7, 0, CPUID_ECX, 8)          FEATURE(AVX,       "avx",       1, 0, CPUID_ECX, 28)  \
    FEATURE(F16C,        "f16c",             1, 0, CPUID_ECX, 29)         FEATURE(FMA,       "fma",       1, 0, CPUID_ECX, 12)  \
    FEATURE(AVX2,        "avx2",             7, 0, CPUID_EBX, 5)          FEATURE(VAES,      "vaes",      7, 0, CPUID_ECX, 9)   \
    FEATURE(VPCLMULQDQ,  "vpclmulqdq",       7, 0, CPUID_ECX, 10)         FEATURE(AVXVNNI,   "avx_vnni",  7, 1, CPUID_EAX, 4)   \
    FEATURE(AVX512F,     "avx512f",          7, 0, CPUID_EBX, 16)         FEATURE(AVX512DQ,  "avx512dq",  7, 0, CPUID_EBX, 17)  \
    FEATURE(AVX512IFMA,  "avx512ifma",       7, 0, CPUID_EBX, 21)         FEATURE(AVX512CD,  "avx512cd",  7, 0, CPUID_EBX, 28)  \
    FEATURE(AVX512BW,    "avx512bw",         7, 0, CPUID_EBX, 30)         FEATURE(AVX512VL,  "avx512vl",  7, 0, CPUID_EBX, 31)  \
    FEATURE(AVX512VBMI,  "avx512vbmi",       7, 0, CPUID_ECX, 1)          FEATURE(AVX512VBMI2, "avx512_vbmi2", 7, 0, CPUID_ECX, 6) \
    FEATURE(AVX512VNNI,  "avx512_vnni",      7, 0, CPUID_ECX, 11)         FEATURE(AVX512BITALG, "avx512_bitalg", 7, 0, CPUID_ECX, 12) \
    FEATURE(AVX512VPOPCNTDQ, "avx512_vpopcntdq", 7, 0, CPUID_ECX, 14)     FEATURE(AVX512BF16, "avx512_bf16", 7, 1, CPUID_EAX, 5) \
    FEATURE(AVX512FP16,  "avx512_fp16",      7, 0, CPUID_EDX, 23)
// clang-format on

enum processor_feature {
#define FEATURE(name, ...) PROCESSOR_##name,
    PROCESSOR_FEATURES(FEATURE)
#undef FEATURE
        PROCESSOR_FEATURE_COUNT
};

// The instruction sets that the host backend was compiled for (defined in host.c). A test finds this struct in the
// program file by its mark.
struct processor_needs {
    char     mark[24];
    uint64_t features;    // 1 << PROCESSOR_...
};
extern const struct processor_needs processor_needs;

// Returns the instruction sets that the processor has and the Linux kernel supports.
uint64_t    processor_features(void);
const char *processor_feature_name(enum processor_feature feature);
