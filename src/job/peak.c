// SPDX-License-Identifier: MIT
// Looks up peak FLOP/s by hardware profile and by device name.
#include "gswbench/peak.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/config.h"

struct peak peak_of_hardware(const struct hardware_config *hardware, enum rate rate)
{
    bool        is_known = hardware->peak[rate].value > 0.0;
    struct peak peak     = {.flops = is_known ? hardware->peak[rate].value : NAN};
    snprintf(peak.source, sizeof(peak.source), "hardware profile %.110s%s %s", hardware->profile,
             is_known ? "," : " has no peak for", rate_names[rate]);
    return peak;
}

static struct peak peak_of_device(const char *name, const struct hardware_config *hardware, enum rate rate)
{
    struct hardware_config installed;
    struct peak            none = {.flops = NAN};
    if (strcmp(name, hardware->device) == 0) {
        return peak_of_hardware(hardware, rate);
    }
    if (config_find_hardware(&installed, name)) {
        return peak_of_hardware(&installed, rate);
    }
    snprintf(none.source, sizeof(none.source), "no hardware profile for device %.63s: set [hardware] device and peaks",
             name);
    return none;
}

struct peak peak_of_devices(const char (*names)[DEVICE_NAME_BYTES], int count, const struct hardware_config *hardware,
                            enum rate rate)
{
    struct peak first = peak_of_device(names[0], hardware, rate);
    for (int i = 1; i < count && !isnan(first.flops); i++) {
        struct peak other = peak_of_device(names[i], hardware, rate);
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

double peak_published(const struct published_config *published, enum rate rate)
{
    return published->peak[rate] > 0.0 ? published->peak[rate] : NAN;
}

double peak_for_convention(enum flop_convention convention, double device, double published)
{
    return convention == FLOPS_PUBLISHED && fabs(published / device - 1.0) < 0.01 ? published : device;
}

double peak_share(double ideal_seconds, double seconds)
{
    return ideal_seconds <= seconds ? ideal_seconds / seconds : NAN;
}
