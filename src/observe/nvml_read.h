// SPDX-License-Identifier: MIT
// Reads values of one device with NVML. Each reading may fail separately, and is then NaN.
#ifndef GSWBENCH_OBSERVE_NVML_READ_H
#define GSWBENCH_OBSERVE_NVML_READ_H

#include <stdatomic.h>
#include <stdint.h>

#include "gswbench/observation.h"
#include "nvml_library.h"

struct nvml_device {
    struct nvml           nvml;
    struct nvmlDevice_st *handle;
    unsigned              refusal;    // first error since it was cleared; 0: none
    atomic_uint           lost;    // error code that means the device is lost; no more calls are made then; 0: not lost
};

// Fails if the library, the driver or the device is missing.
status nvml_device_open(struct nvml_device *device, const char *library, const char *uuid);
void   nvml_device_close(struct nvml_device *device);

void   nvml_read_names(struct nvml_device *device, struct observation *observation);
double nvml_read_gauge(struct nvml_device *device, enum gauge gauge);
double nvml_read_counter(struct nvml_device *device, enum counter counter);
double nvml_read_energy(struct nvml_device *device);    // J since the driver was loaded

// on: 0 or 1.
void nvml_read_throttles(struct nvml_device *device, double on[THROTTLE_COUNT]);

#endif
