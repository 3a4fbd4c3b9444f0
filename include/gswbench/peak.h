// SPDX-License-Identifier: MIT
// The peak of a device: what the model's FLOPs are set against. Only the profiles of configs/hardware and
// [hardware] define it, by the name of the device; a device that none of them names has no peak.
#ifndef GSWBENCH_PEAK_H
#define GSWBENCH_PEAK_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/format.h"
#include "gswbench/hardware.h"
#include "gswbench/model.h"

struct peak {
    double flops;          // dense FLOP/s of one device; NaN: not known
    char   source[160];    // where it is from, or why there is none
};

// Of the machine of [hardware], for GEMMs of that class.
struct peak peak_of_hardware(const struct hardware_config *hardware, enum rate rate);

// Of devices that ran, by their names: each has the peak of [hardware] where that names it, else of the installed
// profile that does. Where these differ there is none.
enum { DEVICE_NAME_BYTES = 64 };
struct peak peak_of_devices(const char (*names)[DEVICE_NAME_BYTES], int count, const struct hardware_config *hardware,
                            enum rate rate);

// What the published table is set against where GEMMs are of that class; NaN: there is no table.
double peak_of_table(const struct published_config *published, enum rate rate);

// What a convention is set against: the published one takes its table's peak where that is the device's to 1 % (989.5
// for 989 TFLOP/s), so that its MFU compares digit for digit, and all others the device's.
double peak_for_convention(enum flop_convention convention, double device, double table);

// Model FLOPs over those that the peak allows in the time; NaN where it is above 1, which no device reaches: what was
// counted was not executed.
double peak_share(double ideal_seconds, double seconds);

#endif
