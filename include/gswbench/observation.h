// SPDX-License-Identifier: MIT
// What the management library of a device's driver says of it: before the first step, while the measured steps run, and
// after the last. What it did not say is NaN, never 0.
#ifndef GSWBENCH_OBSERVATION_H
#define GSWBENCH_OBSERVATION_H

#include <stddef.h>
#include <stdint.h>

// Texts by which a device is known: its key in JSON, which is its field, its room, and its words.
#define OBSERVATION_NAMES(ROW)                                                                                         \
    ROW(name, 96, "GPU")                                                                                               \
    ROW(uuid, 96, "UUID")                                                                                              \
    ROW(pci, 32, "PCI bus id")                                                                                         \
    ROW(driver, 80, "driver")                                                                                          \
    ROW(vbios, 32, "VBIOS")

// A gauge has a value at every moment: NAME, key, words, unit. Units are in the key, too.
#define GAUGES(ROW)                                                                                                    \
    ROW(SM_CLOCK, sm_clock_mhz, "SM clock", "MHz")                                                                     \
    ROW(MEMORY_CLOCK, memory_clock_mhz, "memory clock", "MHz")                                                         \
    ROW(POWER, power_w, "power", "W")                                                                                  \
    ROW(POWER_LIMIT, power_limit_w, "power limit", "W")                                                                \
    ROW(TEMPERATURE, temperature_c, "temperature", "C")                                                                \
    ROW(UTILIZATION, utilization_percent, "utilization", "%")

// A counter grows, or is a flag that is raised: NAME, key, words. ECC errors count since the driver was loaded, or
// ever.
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

// Why the driver holds clocks below what they could be: NAME, key, bit of the library, words.
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
    double before, minimum, median, maximum, after;    // minimum to maximum: of the samples
};
struct counter_values {
    double before, after, growth;
};
struct throttle_values {
    double before, samples, after;    // samples: how many showed it; the others 0 or 1
};

#define OBSERVATION_NAME_FIELD(key, bytes, words) char key[bytes];
struct observation {
    int64_t rank;
    char    missing[200];     // why nothing was observed; or, with samples, why they ended before the run; "": complete
    char    unknown[1024];    // what the library did not say before the run, by key: "power_w: Not Supported, ..."
    OBSERVATION_NAMES(OBSERVATION_NAME_FIELD)

    int64_t samples;             // taken while the measured steps ran
    double  sampling_seconds;    // what taking them cost a thread of the host, all together

    struct gauge_values    gauges[GAUGE_COUNT];
    struct counter_values  counters[COUNTER_COUNT];
    struct throttle_values throttles[THROTTLE_COUNT];

    double energy_joules;        // over the measured steps and what lies between them
    char   energy_source[16];    // "counter", "power" (the samples of power, added up); "": not known
};

// As long as nothing is known, and why.
void observation_init(struct observation *observation, const char *missing);

#endif
