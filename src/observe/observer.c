// SPDX-License-Identifier: MIT
// One rank's device: before, while and after the measured steps.
#include "gswbench/observe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "nvml_read.h"
#include "sampler.h"

struct observer {
    struct observation observation;
    struct nvml_device device;
    bool               is_open, is_stuck;    // stuck: a thread waits in the driver for ever, with the device
    double             seconds;
    double             joules;    // when sampling began
    struct sampler    *sampler;
};

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
    for (int gauge = 0; gauge < GAUGE_COUNT; gauge++) {
        observer->observation.gauges[gauge].before = nvml_read_gauge(&observer->device, (enum gauge)gauge);
    }
    for (int counter = 0; counter < COUNTER_COUNT; counter++) {
        observer->observation.counters[counter].before = nvml_read_counter(&observer->device, (enum counter)counter);
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

// The device's own meter, where it has one, knows what lies between samples.
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
