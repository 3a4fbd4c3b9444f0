// SPDX-License-Identifier: MIT
// Values of one device, read by NVML. What it does not give is NaN, for whatever reason: each reading may fail alone.
#ifndef GSWBENCH_OBSERVE_NVML_READ_H
#define GSWBENCH_OBSERVE_NVML_READ_H

#include <stdatomic.h>
#include <stdint.h>

#include "gswbench/observation.h"
#include "nvml_library.h"

struct nvml_device {
    struct nvml           nvml;
    struct nvmlDevice_st *handle;
    unsigned    refusal;    // the first code that is none of success since this was cleared; 0: there was none
    atomic_uint lost;       // the code that says that the device is gone, after which nothing is asked; 0: it is not
};

// Fails where the library, the driver or the device is not there.
status nvml_device_open(struct nvml_device *device, const char *library, const char *uuid);
void   nvml_device_close(struct nvml_device *device);

void   nvml_read_names(struct nvml_device *device, struct observation *observation);
double nvml_read_gauge(struct nvml_device *device, enum gauge gauge);
double nvml_read_counter(struct nvml_device *device, enum counter counter);
double nvml_read_energy(struct nvml_device *device);    // joules since the driver was loaded

// Whether each throttle is on, as 0 or 1.
void nvml_read_throttles(struct nvml_device *device, double on[THROTTLE_COUNT]);

#endif
