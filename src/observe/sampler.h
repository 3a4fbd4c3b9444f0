// SPDX-License-Identifier: MIT
// A thread that samples a device's gauges and throttle reasons at even intervals. It uses at most 1 % of a core: after
// a slow reading the next one is delayed.
#ifndef GSWBENCH_OBSERVE_SAMPLER_H
#define GSWBENCH_OBSERVE_SAMPLER_H

#include "nvml_read.h"

struct sampler;
struct sampler *sampler_begin(struct nvml_device *device, double seconds);

// Stops the thread and adds its samples. Returns false if the driver does not answer in time; the thread then keeps the
// sampler and the device.
bool sampler_end(struct sampler *sampler, struct observation *observation);

#endif
