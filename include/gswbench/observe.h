// SPDX-License-Identifier: MIT
// Monitors a rank's device during the run with the driver's management library (NVML), loaded at run time. Only queries
// the driver, and enqueues no device work.
#pragma once

#include "gswbench/observation.h"

#define OBSERVE_LIBRARY "libnvidia-ml.so.1"

struct observe_setup {
    const char *library;    // file name: OBSERVE_LIBRARY
    const char *device;     // UUID
    double      seconds;    // between two samples; 0: no monitoring
};

struct observer;

// Reads the device's identity and its state before the run. Never fails; observation.missing says why data is missing.
struct observer *observer_open(const struct observe_setup *setup);

// Start and stop a sampling thread, around the measured steps.
void observer_begin(struct observer *observer);
void observer_end(struct observer *observer);

// Returns the observation and frees the observer.
void observer_close(struct observer *observer, struct observation *observation);
