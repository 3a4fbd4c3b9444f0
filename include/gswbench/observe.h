// SPDX-License-Identifier: MIT
// Declares the monitor of a rank's device. During the run it queries the driver's management library (NVML), which is
// loaded at run time. It enqueues no device work.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/plan.h"

// Device state is read before the first step, during the measured steps, and after the last. Unavailable values are
// NaN, never 0.

// Identity of a device, one row per value: field name and JSON key, bytes, label.
#define OBSERVATION_NAMES(ROW)                                                                                         \
    ROW(name, 96, "GPU")                                                                                               \
    ROW(uuid, 96, "UUID")                                                                                              \
    ROW(pci, 32, "PCI bus id")                                                                                         \
    ROW(driver, 80, "driver")                                                                                          \
    ROW(vbios, 32, "VBIOS")

// A gauge is an instantaneous value. A row has NAME, JSON key (with the unit), label, unit.
#define GAUGES(ROW)                                                                                                    \
    ROW(SM_CLOCK, sm_clock_mhz, "SM clock", "MHz")                                                                     \
    ROW(MEMORY_CLOCK, memory_clock_mhz, "memory clock", "MHz")                                                         \
    ROW(POWER, power_w, "power", "W")                                                                                  \
    ROW(POWER_LIMIT, power_limit_w, "power limit", "W")                                                                \
    ROW(TEMPERATURE, temperature_c, "temperature", "C")                                                                \
    ROW(UTILIZATION, utilization_percent, "utilization", "%")

// A counter is a number of events or of parts (such as NVLinks), or a flag (0 or 1). A row has NAME, JSON key, label.
// ECC counts start when the driver is loaded; counts with "ever" cover the device's lifetime.
#define COUNTERS(ROW)                                                                                                  \
    ROW(ECC_CORRECTED, ecc_corrected, "ECC errors corrected")                                                          \
    ROW(ECC_UNCORRECTED, ecc_uncorrected, "ECC errors not corrected")                                                  \
    ROW(ECC_CORRECTED_EVER, ecc_corrected_ever, "ECC errors corrected, ever")                                          \
    ROW(ECC_UNCORRECTED_EVER, ecc_uncorrected_ever, "ECC errors not corrected, ever")                                  \
    ROW(ROWS_CORRECTED, rows_remapped_corrected, "memory rows remapped for corrected errors")                          \
    ROW(ROWS_UNCORRECTED, rows_remapped_uncorrected, "memory rows remapped for uncorrected errors")                    \
    ROW(ROWS_PENDING, row_remap_pending, "a memory row waits for a reset to be remapped")                              \
    ROW(ROWS_FAILED, row_remap_failed, "a memory row could not be remapped")                                           \
    ROW(PAGES_SINGLE, pages_retired_single, "memory pages retired for single-bit errors")                              \
    ROW(PAGES_DOUBLE, pages_retired_double, "memory pages retired for double-bit errors")                              \
    ROW(LINKS, nvlinks, "NVLinks")                                                                                     \
    ROW(LINKS_ACTIVE, nvlinks_active, "NVLinks active")                                                                \
    ROW(LINK_REPLAYS, nvlink_replays, "NVLink replays")                                                                \
    ROW(LINK_RECOVERIES, nvlink_recoveries, "NVLink recoveries")                                                       \
    ROW(LINK_CRC, nvlink_crc_errors, "NVLink CRC errors")

// Reasons for throttled clocks. A row has NAME, JSON key, bit of the reason in NVML, label.
#define THROTTLES(ROW)                                                                                                 \
    ROW(IDLE, gpu_idle, 0x1, "idle")                                                                                   \
    ROW(CLOCKS_SETTING, clocks_setting, 0x2, "application clocks")                                                     \
    ROW(POWER_CAP, sw_power_cap, 0x4, "power cap")                                                                     \
    ROW(HARDWARE, hw_slowdown, 0x8, "hardware slowdown")                                                               \
    ROW(SYNC_BOOST, sync_boost, 0x10, "sync boost")                                                                    \
    ROW(THERMAL, sw_thermal_slowdown, 0x20, "software thermal slowdown")                                               \
    ROW(HARDWARE_THERMAL, hw_thermal_slowdown, 0x40, "hardware thermal slowdown")                                      \
    ROW(POWER_BRAKE, hw_power_brake, 0x80, "hardware power brake")                                                     \
    ROW(DISPLAY, display_clocks, 0x100, "display clocks")

#define GAUGE_VALUE(NAME, ...)    GAUGE_##NAME,
#define COUNTER_VALUE(NAME, ...)  COUNTER_##NAME,
#define THROTTLE_VALUE(NAME, ...) THROTTLE_##NAME,
enum gauge { GAUGES(GAUGE_VALUE) GAUGE_COUNT };
enum counter { COUNTERS(COUNTER_VALUE) COUNTER_COUNT };
enum throttle { THROTTLES(THROTTLE_VALUE) THROTTLE_COUNT };

struct gauge_values {
    double before, minimum, median, maximum, after;    // minimum, median and maximum are over the samples
};
struct counter_values {
    double before, after, growth;
};
struct throttle_values {
    double before, samples, after;    // before and after: 0 or 1; samples: number of throttled samples
};

#define OBSERVATION_NAME_FIELD(key, bytes, words) char key[bytes];
struct observation {
    int64_t rank;
    char    missing[200];     // why nothing was observed, or why sampling stopped early; "": complete
    char    unknown[1024];    // values that were unavailable before the run: "power_w: Not Supported, ..."
    OBSERVATION_NAMES(OBSERVATION_NAME_FIELD)

    int64_t samples;             // number of samples during the measured steps
    double  sampling_seconds;    // total time of the sampling thread in the driver

    struct gauge_values    gauges[GAUGE_COUNT];
    struct counter_values  counters[COUNTER_COUNT];
    struct throttle_values throttles[THROTTLE_COUNT];

    double energy_joules;        // over the measured steps and the time between them
    char   energy_source[16];    // "counter" of the device, or "power" (integral of power samples); "": unknown
};

// Sets all values to unknown. missing: the reason.
void observation_init(struct observation *observation, const char *missing);

#define OBSERVE_LIBRARY "libnvidia-ml.so.1"

struct observe_setup {
    const char *library;    // file name: OBSERVE_LIBRARY
    const char *device;     // UUID
    double      seconds;    // time between two samples; 0: no monitoring
};

struct observer;

// Reads the device's identity and its state before the run. Never fails; observation.missing says why data is missing.
struct observer *observer_open(const struct observe_setup *setup);

// Start and stop the sampling thread. Call them before and after the measured steps.
void observer_begin(struct observer *observer);
void observer_end(struct observer *observer);

// Returns the observation and frees the observer.
void observer_close(struct observer *observer, struct observation *observation);

// The following functions mark a step with NVTX ranges for profilers, in the domain gswbench. On each issuing thread
// the ranges nest: step, phase, layer, op.

// The outermost ranges, on the thread that runs steps: one step, the capture of a CUDA graph, or the steps that
// [profile] selects.
enum range_kind { RANGE_STEP, RANGE_CAPTURE, RANGE_PROFILE, RANGE_COUNT };

struct ranges;

// Prepares all names and payloads, so that a step only passes pointers. Returns NULL if no profiler is attached or the
// build lacks NVTX. is_one_thread: one thread issues all ops in the order of the plan. Otherwise each stream has its
// own thread, and the thread that runs steps issues the compute ops. The plan must outlive the ranges.
struct ranges *ranges_open(const struct plan *plan, bool is_one_thread);
void           ranges_close(struct ranges *ranges);

// Push and pop an outer range; they do nothing if ranges is NULL. step: index of the step, or of the first step in the
// range.
void ranges_begin(struct ranges *ranges, enum range_kind range, int64_t step);
void ranges_end(struct ranges *ranges);

// Call before and after an op on its issuing thread; `ranges` is a struct ranges. Both functions also open and close
// the ranges of phases and layers, when two successive ops of the thread have different phases or layers.
void ranges_begin_op(const void *ranges, const struct op *op);
void ranges_end_op(const void *ranges, const struct op *op);
