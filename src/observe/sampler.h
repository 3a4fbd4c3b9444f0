// SPDX-License-Identifier: MIT
// A thread that reads a device's gauges and throttles in even intervals. It takes a hundredth of a core at most: where
// a reading is slow, the next one comes later.
#ifndef GSWBENCH_OBSERVE_SAMPLER_H
#define GSWBENCH_OBSERVE_SAMPLER_H

#include "nvml_read.h"

struct sampler;
struct sampler *sampler_begin(struct nvml_device *device, double seconds);

// Ends the thread and adds what it saw. False: the driver has not answered for so long that the thread is left to
// itself, and the device with it.
bool sampler_end(struct sampler *sampler, struct observation *observation);

#endif
