// SPDX-License-Identifier: MIT
// Declares the peak FLOP/s of a device, the denominator of MFU. Only [hardware] and the profiles in configs/hardware
// define peaks, by device name; an unknown device has no peak.
#pragma once

#include "gswbench/format.h"
#include "gswbench/hardware.h"
#include "gswbench/model.h"

struct peak {
    double flops;          // dense FLOP/s per device; NaN: unknown
    char   source[160];    // where the value comes from, or why it is unknown
};

// Returns the peak of [hardware] for GEMMs at this rate (the precision of their operands).
struct peak peak_of_hardware(const struct hardware_config *hardware, enum rate rate);

// Returns the peak of the devices that ran the job, by name. If [hardware] describes the device, its peak is used, else
// the peak of the installed profile that names the device. NaN if the devices have different peaks.
enum { DEVICE_NAME_BYTES = 64 };
struct peak peak_of_devices(const char (*names)[DEVICE_NAME_BYTES], int count, const struct hardware_config *hardware,
                            enum rate rate);

// Returns the peak FLOP/s for GEMMs at this rate that the publication used for its MFU; NaN: not known.
double peak_published(const struct published_config *published, enum rate rate);

// Returns the peak for a FLOP convention. FLOPS_PUBLISHED uses the publication's peak if it is within 1 % of the peak
// of the device, such as 989 for 989.5 TFLOP/s. Runs with equal step times then have equal MFU. All other conventions
// use the device's peak.
double peak_for_convention(enum flop_convention convention, double device, double published);

// Returns MFU: the time at peak divided by the measured time. Returns NaN if it exceeds 1, which no device reaches; the
// convention then counts FLOPs that were not executed.
double peak_share(double ideal_seconds, double seconds);
