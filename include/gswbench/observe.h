// SPDX-License-Identifier: MIT
// Observes a rank's device beside the steps, by the management library of its driver: NVIDIA's NVML, opened when the
// program runs. It asks the driver only, from threads that enqueue nothing.
#ifndef GSWBENCH_OBSERVE_H
#define GSWBENCH_OBSERVE_H

#include "gswbench/observation.h"

#define OBSERVE_LIBRARY "libnvidia-ml.so.1"

struct observe_setup {
    const char *library;    // its file name: OBSERVE_LIBRARY
    const char *device;     // its UUID
    double      seconds;    // between two samples; 0: nothing is observed
};

struct observer;

// Takes down what the device is and its state before the run. Never fails: an observation says what it lacks.
struct observer *observer_open(const struct observe_setup *setup);

// From before the first measured step to after the last: a thread takes samples.
void observer_begin(struct observer *observer);
void observer_end(struct observer *observer);

// Hands over what was observed, and frees.
void observer_close(struct observer *observer, struct observation *observation);

#endif
