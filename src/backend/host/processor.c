// SPDX-License-Identifier: MIT
// Checks that this processor has the instructions that the host backend was compiled for. This file itself is compiled
// for any processor, like all code that runs before the check.
#include "processor.h"

#include "gswbench/backend.h"
#include "gswbench/text.h"

const char *processor_feature_name(enum processor_feature feature)
{
    static const char *const names[] = {
#define FEATURE(feature, name, ...) name,
        PROCESSOR_FEATURES(FEATURE)
#undef FEATURE
    };
    return names[feature];
}

#if defined(__x86_64__)
#include <cpuid.h>

// Returns the register sets that Linux saves on a context switch. AVX needs bits 1 and 2, AVX-512 also bits 5 to 7.
static uint64_t kept_registers(void)
{
    uint32_t low = 0, high = 0, a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE) != 0) {
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    }
    return (uint64_t)high << 32 | low;
}

uint64_t processor_features(void)
{
    static const struct {
        uint32_t leaf, subleaf;
        int      place, bit;
    } features[] = {
#define FEATURE(feature, name, leaf, subleaf, place, bit) {leaf, subleaf, place, bit},
        PROCESSOR_FEATURES(FEATURE)
#undef FEATURE
    };
    uint64_t kept = kept_registers(), has = 0;
    for (int i = 0; i < PROCESSOR_FEATURE_COUNT; i++) {
        uint32_t found[4]  = {0};
        uint64_t registers = i >= PROCESSOR_AVX512F ? 0xe6 : i >= PROCESSOR_AVX ? 0x6 : 0;
        __get_cpuid_count(features[i].leaf, features[i].subleaf, &found[CPUID_EAX], &found[CPUID_EBX],
                          &found[CPUID_ECX], &found[CPUID_EDX]);
        if ((kept & registers) == registers && (found[features[i].place] >> features[i].bit & 1) != 0) {
            has |= UINT64_C(1) << i;
        }
    }
    return has;
}

#else

uint64_t processor_features(void)
{
    return UINT64_MAX;
}

#endif

status backend_check_processor(void)
{
    uint64_t missing = processor_needs.features & ~processor_features();
    char     names[600];
    size_t   length = 0;
    for (int i = 0; i < PROCESSOR_FEATURE_COUNT; i++) {
        if ((missing >> i & 1) != 0) {
            length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s", length > 0 ? ", " : "",
                                       processor_feature_name((enum processor_feature)i));
        }
    }
    return missing == 0
               ? OK
               : fail_as(EXIT_LAUNCH,
                         "this gswbench was compiled for a processor with instructions that this one lacks (%s): build "
                         "it on this kind of host, or for any with cmake -D GSWBENCH_NATIVE=OFF",
                         names);
}
