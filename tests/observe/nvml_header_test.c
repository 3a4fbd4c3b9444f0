// SPDX-License-Identifier: MIT
// Compiles only if gswbench's own declarations of NVML functions, structs and constants match nvml.h.
#include <nvml.h>

#include <criterion/criterion.h>
#include <stddef.h>

#include "gswbench/observe.h"
#include "observe/nvml.h"

#define SAME_FUNCTION(function, parameters)                                                                            \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&function), __typeof__(((struct nvml *)0)->function)),      \
                   #function);
NVML_FUNCTIONS(SAME_FUNCTION, SAME_FUNCTION)

#define SAME_NUMBER(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME_NUMBER(NVML_CODE_SUCCESS, NVML_SUCCESS);
SAME_NUMBER(NVML_CODE_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME_NUMBER(NVML_CODE_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME_NUMBER(NVML_CODE_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME_NUMBER(NVML_CODE_RESET_REQUIRED, NVML_ERROR_RESET_REQUIRED);
SAME_NUMBER(NVML_SM, NVML_CLOCK_SM);
SAME_NUMBER(NVML_MEMORY, NVML_CLOCK_MEM);
SAME_NUMBER(NVML_DIE, NVML_TEMPERATURE_GPU);
SAME_NUMBER(NVML_CORRECTED, NVML_MEMORY_ERROR_TYPE_CORRECTED);
SAME_NUMBER(NVML_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
SAME_NUMBER(NVML_SINCE_LOAD, NVML_VOLATILE_ECC);
SAME_NUMBER(NVML_EVER, NVML_AGGREGATE_ECC);
SAME_NUMBER(NVML_SINGLE_BIT, NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS);
SAME_NUMBER(NVML_DOUBLE_BIT, NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR);
SAME_NUMBER(NVML_REPLAY, NVML_NVLINK_ERROR_DL_REPLAY);
SAME_NUMBER(NVML_RECOVERY, NVML_NVLINK_ERROR_DL_RECOVERY);
SAME_NUMBER(NVML_CRC_FLIT, NVML_NVLINK_ERROR_DL_CRC_FLIT);
SAME_NUMBER(NVML_CRC_DATA, NVML_NVLINK_ERROR_DL_CRC_DATA);
SAME_NUMBER(NVML_ACTIVE, NVML_FEATURE_ENABLED);

#define SAME_PLACE(ours, field, theirs, their_field)                                                                   \
    _Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field) &&                                    \
                       sizeof(((struct ours *)0)->field) == sizeof(((theirs *)0)->their_field),                        \
                   #their_field)
_Static_assert(sizeof(struct nvml_pci) == sizeof(nvmlPciInfo_t), "nvmlPciInfo_t");
SAME_PLACE(nvml_pci, legacy_id, nvmlPciInfo_t, busIdLegacy);
SAME_PLACE(nvml_pci, id, nvmlPciInfo_t, busId);
_Static_assert(sizeof(struct nvml_utilization) == sizeof(nvmlUtilization_t), "nvmlUtilization_t");
SAME_PLACE(nvml_utilization, gpu, nvmlUtilization_t, gpu);

// Each throttle reason has the same bit in gswbench's table as in nvml.h.
Test(nvml_header, has_the_bits_of_throttles)
{
#define SAME_BIT(NAME, key, bit, words) [THROTTLE_##NAME] = (bit),
    static const unsigned long long bits[]                = {THROTTLES(SAME_BIT)};
    cr_expect_eq(bits[THROTTLE_IDLE], nvmlClocksEventReasonGpuIdle);
    cr_expect_eq(bits[THROTTLE_CLOCKS_SETTING], nvmlClocksEventReasonApplicationsClocksSetting);
    cr_expect_eq(bits[THROTTLE_POWER_CAP], nvmlClocksEventReasonSwPowerCap);
    cr_expect_eq(bits[THROTTLE_HARDWARE], nvmlClocksThrottleReasonHwSlowdown);
    cr_expect_eq(bits[THROTTLE_SYNC_BOOST], nvmlClocksEventReasonSyncBoost);
    cr_expect_eq(bits[THROTTLE_THERMAL], nvmlClocksEventReasonSwThermalSlowdown);
    cr_expect_eq(bits[THROTTLE_HARDWARE_THERMAL], nvmlClocksThrottleReasonHwThermalSlowdown);
    cr_expect_eq(bits[THROTTLE_POWER_BRAKE], nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
    cr_expect_eq(bits[THROTTLE_DISPLAY], nvmlClocksEventReasonDisplayClockSetting);
}
