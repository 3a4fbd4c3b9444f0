// SPDX-License-Identifier: MIT
// Looks up peaks by machine and by device.
#include "gswbench/peak.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/config.h"

struct peak peak_of_machine(const struct hardware_config *hardware, int64_t compute)
{
    const double flops[]  = {[COMPUTE_BF16] = hardware->peak_bf16.value, [COMPUTE_FP8] = hardware->peak_fp8.value};
    bool         is_known = flops[compute] > 0.0;
    struct peak  peak     = {.flops = is_known ? flops[compute] : NAN};
    snprintf(peak.source, sizeof(peak.source), "hardware profile %s%s %s", hardware->profile,
             is_known ? "," : " has no peak for", precision_compute_names[compute]);
    return peak;
}

static struct peak peak_of_device(const char *name, const struct hardware_config *hardware, int64_t compute)
{
    struct hardware_config installed;
    struct peak            none = {.flops = NAN};
    if (strcmp(name, hardware->device) == 0) {
        return peak_of_machine(hardware, compute);
    }
    if (config_find_machine(&installed, name)) {
        return peak_of_machine(&installed, compute);
    }
    snprintf(none.source, sizeof(none.source),
             "no hardware profile has the device %.63s: set [hardware] device and peaks", name);
    return none;
}

struct peak peak_of_devices(const char (*names)[DEVICE_NAME_BYTES], int count, const struct hardware_config *hardware,
                            int64_t compute)
{
    struct peak first = peak_of_device(names[0], hardware, compute);
    for (int i = 1; i < count && !isnan(first.flops); i++) {
        struct peak other = peak_of_device(names[i], hardware, compute);
        if (isnan(other.flops)) {
            return other;
        }
        if (other.flops != first.flops) {
            first.flops = NAN;
            snprintf(first.source, sizeof(first.source), "%.63s and %.63s have different peaks", names[0], names[i]);
        }
    }
    return first;
}

double peak_of_table(const struct published_config *published, int64_t compute)
{
    const double flops[] = {[COMPUTE_BF16] = published->peak_bf16, [COMPUTE_FP8] = published->peak_fp8};
    return flops[compute] > 0.0 ? flops[compute] : NAN;
}

double peak_for_convention(enum flop_convention convention, double device, double table)
{
    return convention == FLOPS_PUBLISHED && fabs(table / device - 1.0) < 0.01 ? table : device;
}

double peak_share(double ideal_seconds, double seconds)
{
    return ideal_seconds <= seconds ? ideal_seconds / seconds : NAN;
}
