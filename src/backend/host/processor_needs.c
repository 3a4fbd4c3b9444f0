// SPDX-License-Identifier: MIT
// Lists the instructions that the compiler may use in the host backend, by its macros. It is compiled with the
// backend's flags and contains data only.
#include "processor.h"

const struct processor_needs processor_needs = {.mark     = "gswbench processor:",
                                                .features = 0
#ifdef __SSE3__
                                                            | UINT64_C(1) << PROCESSOR_SSE3
#endif
#ifdef __SSSE3__
                                                            | UINT64_C(1) << PROCESSOR_SSSE3
#endif
#ifdef __SSE4_1__
                                                            | UINT64_C(1) << PROCESSOR_SSE4_1
#endif
#ifdef __SSE4_2__
                                                            | UINT64_C(1) << PROCESSOR_SSE4_2
#endif
#ifdef __POPCNT__
                                                            | UINT64_C(1) << PROCESSOR_POPCNT
#endif
#ifdef __MOVBE__
                                                            | UINT64_C(1) << PROCESSOR_MOVBE
#endif
#ifdef __AES__
                                                            | UINT64_C(1) << PROCESSOR_AES
#endif
#ifdef __PCLMUL__
                                                            | UINT64_C(1) << PROCESSOR_PCLMUL
#endif
#ifdef __LZCNT__
                                                            | UINT64_C(1) << PROCESSOR_LZCNT
#endif
#ifdef __SSE4A__
                                                            | UINT64_C(1) << PROCESSOR_SSE4A
#endif
#ifdef __BMI__
                                                            | UINT64_C(1) << PROCESSOR_BMI
#endif
#ifdef __BMI2__
                                                            | UINT64_C(1) << PROCESSOR_BMI2
#endif
#ifdef __ADX__
                                                            | UINT64_C(1) << PROCESSOR_ADX
#endif
#ifdef __SHA__
                                                            | UINT64_C(1) << PROCESSOR_SHA
#endif
#ifdef __GFNI__
                                                            | UINT64_C(1) << PROCESSOR_GFNI
#endif
#ifdef __AVX__
                                                            | UINT64_C(1) << PROCESSOR_AVX
#endif
#ifdef __F16C__
                                                            | UINT64_C(1) << PROCESSOR_F16C
#endif
#ifdef __FMA__
                                                            | UINT64_C(1) << PROCESSOR_FMA
#endif
#ifdef __AVX2__
                                                            | UINT64_C(1) << PROCESSOR_AVX2
#endif
#ifdef __VAES__
                                                            | UINT64_C(1) << PROCESSOR_VAES
#endif
#ifdef __VPCLMULQDQ__
                                                            | UINT64_C(1) << PROCESSOR_VPCLMULQDQ
#endif
#ifdef __AVXVNNI__
                                                            | UINT64_C(1) << PROCESSOR_AVXVNNI
#endif
#ifdef __AVX512F__
                                                            | UINT64_C(1) << PROCESSOR_AVX512F
#endif
#ifdef __AVX512DQ__
                                                            | UINT64_C(1) << PROCESSOR_AVX512DQ
#endif
#ifdef __AVX512IFMA__
                                                            | UINT64_C(1) << PROCESSOR_AVX512IFMA
#endif
#ifdef __AVX512CD__
                                                            | UINT64_C(1) << PROCESSOR_AVX512CD
#endif
#ifdef __AVX512BW__
                                                            | UINT64_C(1) << PROCESSOR_AVX512BW
#endif
#ifdef __AVX512VL__
                                                            | UINT64_C(1) << PROCESSOR_AVX512VL
#endif
#ifdef __AVX512VBMI__
                                                            | UINT64_C(1) << PROCESSOR_AVX512VBMI
#endif
#ifdef __AVX512VBMI2__
                                                            | UINT64_C(1) << PROCESSOR_AVX512VBMI2
#endif
#ifdef __AVX512VNNI__
                                                            | UINT64_C(1) << PROCESSOR_AVX512VNNI
#endif
#ifdef __AVX512BITALG__
                                                            | UINT64_C(1) << PROCESSOR_AVX512BITALG
#endif
#ifdef __AVX512VPOPCNTDQ__
                                                            | UINT64_C(1) << PROCESSOR_AVX512VPOPCNTDQ
#endif
#ifdef __AVX512BF16__
                                                            | UINT64_C(1) << PROCESSOR_AVX512BF16
#endif
#ifdef __AVX512FP16__
                                                            | UINT64_C(1) << PROCESSOR_AVX512FP16
#endif
};
