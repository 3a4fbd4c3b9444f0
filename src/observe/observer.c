// SPDX-License-Identifier: MIT
// Observes one rank's device before, during and after the measured steps.
#include "gswbench/observe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "nvml_read.h"
#include "sampler.h"

struct observer {
    struct observation observation;
    struct nvml_device device;
    bool               is_open, is_stuck;    // stuck: a thread hangs in the driver, with the device
    double             seconds;
    double             joules;    // reading when sampling started
    struct sampler    *sampler;
};

#define KEY_OF_GAUGE(NAME, key, words, unit) [GAUGE_##NAME] = #key,
#define KEY_OF_COUNTER(NAME, key, words)     [COUNTER_##NAME] = #key,
static const char *const gauge_keys[]   = {GAUGES(KEY_OF_GAUGE)};
static const char *const counter_keys[] = {COUNTERS(KEY_OF_COUNTER)};

// Adds the reason for an unavailable value, which is null in the result.
static double note_unknown(struct observer *observer, const char *key, double value)
{
    char  *text = observer->observation.unknown;
    size_t used = strlen(text);
    if (isnan(value)) {
        snprintf(text + used, sizeof(observer->observation.unknown) - used, "%s%s: %.40s", used > 0 ? ", " : "", key,
                 observer->device.nvml.nvmlErrorString(observer->device.refusal));
    }
    observer->device.refusal = 0;
    return value;
}

struct observer *observer_open(const struct observe_setup *setup)
{
    struct observer *observer = memory_allocate(sizeof(*observer));
    status           opened   = setup->seconds > 0 ? nvml_device_open(&observer->device, setup->library, setup->device)
                                                   : fail("run.observe_seconds is 0");
    observer->is_open         = !failed(&opened);
    observer->seconds         = setup->seconds;
    observation_init(&observer->observation, opened.text);
    if (!observer->is_open) {
        return observer;
    }
    double on[THROTTLE_COUNT];
    nvml_read_names(&observer->device, &observer->observation);
    nvml_read_throttles(&observer->device, on);
    note_unknown(observer, "throttles", on[0]);
    for (int gauge = 0; gauge < GAUGE_COUNT; gauge++) {
        double value                               = nvml_read_gauge(&observer->device, (enum gauge)gauge);
        observer->observation.gauges[gauge].before = note_unknown(observer, gauge_keys[gauge], value);
    }
    for (int counter = 0; counter < COUNTER_COUNT; counter++) {
        double value                                   = nvml_read_counter(&observer->device, (enum counter)counter);
        observer->observation.counters[counter].before = note_unknown(observer, counter_keys[counter], value);
    }
    for (int throttle = 0; throttle < THROTTLE_COUNT; throttle++) {
        observer->observation.throttles[throttle].before = on[throttle];
    }
    return observer;
}

void observer_begin(struct observer *observer)
{
    if (observer->is_open) {
        observer->joules  = nvml_read_energy(&observer->device);
        observer->sampler = sampler_begin(&observer->device, observer->seconds);
    }
}

// Prefers the device's energy counter, because it includes the time between samples.
static void set_energy(struct observation *observation, double metered)
{
    if (!isnan(metered)) {
        observation->energy_joules = metered;
    }
    if (!isnan(observation->energy_joules)) {
        text_copy(observation->energy_source, sizeof(observation->energy_source), isnan(metered) ? "power" : "counter");
    }
}

static void read_after(struct observer *observer)
{
    struct observation *observation = &observer->observation;
    double              on[THROTTLE_COUNT];
    nvml_read_throttles(&observer->device, on);
    for (int throttle = 0; throttle < THROTTLE_COUNT; throttle++) {
        observation->throttles[throttle].after = on[throttle];
    }
    for (int gauge = 0; gauge < GAUGE_COUNT; gauge++) {
        observation->gauges[gauge].after = nvml_read_gauge(&observer->device, (enum gauge)gauge);
    }
    for (int i = 0; i < COUNTER_COUNT; i++) {
        struct counter_values *counter = &observation->counters[i];
        counter->after                 = nvml_read_counter(&observer->device, (enum counter)i);
        counter->growth                = counter->after - counter->before;
    }
}

void observer_end(struct observer *observer)
{
    if (observer->sampler == NULL) {
        return;
    }
    observer->is_stuck = !sampler_end(observer->sampler, &observer->observation);
    observer->sampler  = NULL;
    if (!observer->is_stuck) {
        set_energy(&observer->observation, nvml_read_energy(&observer->device) - observer->joules);
        read_after(observer);
    }
}

void observer_close(struct observer *observer, struct observation *observation)
{
    observer_end(observer);
    *observation = observer->observation;
    if (observer->is_stuck) {
        return;
    }
    if (observer->is_open && observer->device.lost != 0) {
        snprintf(observation->missing, sizeof(observation->missing), "%.150s",
                 observer->device.nvml.nvmlErrorString(observer->device.lost));
    }
    if (observer->is_open) {
        nvml_device_close(&observer->device);
    }
    free(observer);
}
