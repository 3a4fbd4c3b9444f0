// SPDX-License-Identifier: MIT
// Observes one rank's device before, during and after the measured steps. A thread samples gauges and throttle reasons
// at even intervals. The thread uses at most 1 % of a core: after a slow reading the next reading is delayed. Its
// memory is bounded: in a long run, medians are computed from every second sample, or every fourth, and so on.
#include "gswbench/observe.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/fatal.h"
#include "gswbench/statistics.h"
#include "gswbench/text.h"
#include "nvml.h"

enum { KEPT_MAX = 4096, PAUSE = 99, PATIENCE_SECONDS = 5 };    // PAUSE: minimum pause / duration of a reading

struct series {
    double  minimum, maximum;
    double  kept[KEPT_MAX];
    int64_t count, seen, stride;    // values kept and seen; every stride-th value is kept
};

struct sampler {
    struct nvml_device *device;
    double              seconds;

    pthread_t       thread;
    pthread_mutex_t mutex;    // protects is_closing and has_ended; the thread owns all other fields until it ends
    pthread_cond_t  change;
    bool            is_closing, has_ended;

    struct series series[GAUGE_COUNT];
    double        throttled[THROTTLE_COUNT];
    int64_t       samples;
    double        cost;
    double        power, power_since, joules;    // latest power (W) and its time; energy up to this time
};

static void keep(struct series *series, double value)
{
    if (isnan(value)) {
        return;
    }
    series->minimum = series->seen == 0 ? value : fmin(series->minimum, value);
    series->maximum = series->seen == 0 ? value : fmax(series->maximum, value);
    if (series->count == KEPT_MAX) {
        for (int64_t i = 0; i < KEPT_MAX / 2; i++) {
            series->kept[i] = series->kept[2 * i];
        }
        series->count = KEPT_MAX / 2;
        series->stride *= 2;
    }
    if (series->seen++ % series->stride == 0) {
        series->kept[series->count++] = value;
    }
}

// Adds the energy since the previous reading: elapsed time times the power of that reading. The first reading also
// covers the time before it.
static void add_energy(struct sampler *sampler, double power, double now)
{
    sampler->power = sampler->samples > 0 ? sampler->power : power;
    sampler->joules += sampler->power * (now - sampler->power_since);
    sampler->power       = power;
    sampler->power_since = now;
}

static void take(struct sampler *sampler)
{
    double gauges[GAUGE_COUNT], throttles[THROTTLE_COUNT], begin = clock_seconds();
    for (int gauge = 0; gauge < GAUGE_COUNT; gauge++) {
        gauges[gauge] = nvml_read_gauge(sampler->device, (enum gauge)gauge);
    }
    nvml_read_throttles(sampler->device, throttles);
    sampler->cost += clock_seconds() - begin;
    if (sampler->device->lost != 0) {
        return;
    }
    add_energy(sampler, gauges[GAUGE_POWER], begin);
    for (int gauge = 0; gauge < GAUGE_COUNT; gauge++) {
        keep(&sampler->series[gauge], gauges[gauge]);
    }
    for (int throttle = 0; throttle < THROTTLE_COUNT; throttle++) {
        sampler->throttled[throttle] += throttles[throttle];
    }
    sampler->samples++;
}

// Waits until *is_so is true. Returns false on timeout.
static bool wait_until(struct sampler *sampler, const bool *is_so, double seconds)
{
    while (!*is_so && clock_wait(&sampler->change, &sampler->mutex, seconds)) {
    }
    return *is_so;
}

static void *take_samples(void *argument)
{
    struct sampler *sampler = argument;
    double          next    = clock_seconds();
    bool            is_over = false;
    while (!is_over) {
        double before = clock_seconds();
        take(sampler);
        double now = clock_seconds();
        next       = fmax(next + sampler->seconds, now + PAUSE * (now - before));
        pthread_mutex_lock(&sampler->mutex);
        is_over = wait_until(sampler, &sampler->is_closing, next) || sampler->device->lost != 0;
        pthread_mutex_unlock(&sampler->mutex);
    }
    pthread_mutex_lock(&sampler->mutex);
    sampler->has_ended = true;
    pthread_cond_broadcast(&sampler->change);
    pthread_mutex_unlock(&sampler->mutex);
    return NULL;
}

static struct sampler *sampler_begin(struct nvml_device *device, double seconds)
{
    struct sampler *sampler = memory_allocate(sizeof(*sampler));
    sampler->device         = device;
    sampler->seconds        = seconds;
    sampler->power_since    = clock_seconds();
    for (int gauge = 0; gauge < GAUGE_COUNT; gauge++) {
        sampler->series[gauge].stride = 1;
    }
    pthread_mutex_init(&sampler->mutex, NULL);
    clock_open_condition(&sampler->change);
    if (pthread_create(&sampler->thread, NULL, take_samples, sampler) != 0) {
        FATAL(EXIT_LAUNCH, "cannot start the thread that observes the device");
    }
    return sampler;
}

static void report(const struct sampler *sampler, struct observation *observation)
{
    observation->samples          = sampler->samples;
    observation->sampling_seconds = sampler->cost;
    for (int gauge = 0; gauge < GAUGE_COUNT; gauge++) {
        const struct series *series = &sampler->series[gauge];
        struct gauge_values *values = &observation->gauges[gauge];
        values->minimum             = series->seen > 0 ? series->minimum : NAN;
        values->median              = statistics_median(series->kept, series->count);
        values->maximum             = series->seen > 0 ? series->maximum : NAN;
    }
    for (int throttle = 0; throttle < THROTTLE_COUNT; throttle++) {
        observation->throttles[throttle].samples = sampler->samples > 0 ? sampler->throttled[throttle] : NAN;
    }
}

// Stops the thread and adds its samples to the observation. Returns false if the driver does not answer in time; the
// thread then continues, and keeps the sampler and the device.
static bool sampler_end(struct sampler *sampler, struct observation *observation)
{
    double now = clock_seconds();
    pthread_mutex_lock(&sampler->mutex);
    sampler->is_closing = true;
    pthread_cond_broadcast(&sampler->change);
    bool has_ended = wait_until(sampler, &sampler->has_ended, now + PATIENCE_SECONDS);
    pthread_mutex_unlock(&sampler->mutex);
    if (!has_ended) {
        pthread_detach(sampler->thread);
        snprintf(observation->missing, sizeof(observation->missing), "the driver did not answer in %d s",
                 PATIENCE_SECONDS);
        return false;
    }
    pthread_join(sampler->thread, NULL);
    report(sampler, observation);
    if (sampler->samples > 0 && sampler->device->lost == 0) {
        add_energy(sampler, sampler->power, now);
        observation->energy_joules = sampler->joules;
    }
    pthread_cond_destroy(&sampler->change);
    pthread_mutex_destroy(&sampler->mutex);
    free(sampler);
    return true;
}

void observation_init(struct observation *observation, const char *missing)
{
    *observation = (struct observation){.sampling_seconds = NAN, .energy_joules = NAN};
    text_copy(observation->missing, sizeof(observation->missing), missing);
    for (int gauge = 0; gauge < GAUGE_COUNT; gauge++) {
        observation->gauges[gauge] = (struct gauge_values){NAN, NAN, NAN, NAN, NAN};
    }
    for (int counter = 0; counter < COUNTER_COUNT; counter++) {
        observation->counters[counter] = (struct counter_values){NAN, NAN, NAN};
    }
    for (int throttle = 0; throttle < THROTTLE_COUNT; throttle++) {
        observation->throttles[throttle] = (struct throttle_values){NAN, NAN, NAN};
    }
}

struct observer {
    struct observation observation;
    struct nvml_device device;
    bool               is_open, is_stuck;    // is_stuck: a thread hangs in a driver call and still uses the device
    double             seconds;
    double             joules;    // the device's energy counter when sampling started
    struct sampler    *sampler;
};

#define KEY_OF_GAUGE(NAME, key, words, unit) [GAUGE_##NAME] = #key,
#define KEY_OF_COUNTER(NAME, key, words)     [COUNTER_##NAME] = #key,
static const char *const gauge_keys[]   = {GAUGES(KEY_OF_GAUGE)};
static const char *const counter_keys[] = {COUNTERS(KEY_OF_COUNTER)};

// If the value is NaN, which becomes null in the result, records why it is unavailable. Returns the value.
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

// Sets the energy from the device's counter (metered; NaN: none), or else from power samples, which miss changes
// between two samples.
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
