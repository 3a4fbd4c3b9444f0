// SPDX-License-Identifier: MIT
// Sampling thread. Memory is bounded: in a long run, medians are over every second sample, or every fourth, and so on.
#include "sampler.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/fatal.h"
#include "gswbench/statistics.h"

enum { KEPT_MAX = 4096, PAUSES = 99, PATIENCE_SECONDS = 5 };

struct series {
    double  minimum, maximum;
    double  kept[KEPT_MAX];
    int64_t count, seen, stride;    // one of stride values is kept
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
    double        power, power_since, joules;    // latest power and its time; energy up to it
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

// A power reading counts until the next one; the first also counts from the start.
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

// Returns false on timeout.
static bool wait_until(struct sampler *sampler, const bool *is_so, double seconds)
{
    struct timespec until = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (!*is_so && pthread_cond_timedwait(&sampler->change, &sampler->mutex, &until) == 0) {
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
        next       = fmax(next + sampler->seconds, now + PAUSES * (now - before));
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

struct sampler *sampler_begin(struct nvml_device *device, double seconds)
{
    struct sampler    *sampler = memory_allocate(sizeof(*sampler));
    pthread_condattr_t monotonic;
    sampler->device      = device;
    sampler->seconds     = seconds;
    sampler->power_since = clock_seconds();
    for (int gauge = 0; gauge < GAUGE_COUNT; gauge++) {
        sampler->series[gauge].stride = 1;
    }
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&sampler->mutex, NULL);
    pthread_cond_init(&sampler->change, &monotonic);
    pthread_condattr_destroy(&monotonic);
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

bool sampler_end(struct sampler *sampler, struct observation *observation)
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
