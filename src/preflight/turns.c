// SPDX-License-Identifier: MIT
// Relative compute speed of ranks that take turns on shared cores.
#include "turns.h"

#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/statistics.h"

void turns_open(struct turns *turns, int64_t ranks, int64_t probes)
{
    *turns =
        (struct turns){.ranks = ranks, .probes = probes, .level = memory_allocate((size_t)probes * sizeof(double))};
}

void turns_close(struct turns *turns)
{
    free(turns->shares);
    free(turns->level);
    *turns = (struct turns){.ranks = 0};
}

static double *new_values(int64_t count)
{
    return memory_allocate((size_t)count * sizeof(double));
}

// Median over ranks, per probe.
static void find_medians(const struct turns *turns, const double *rates, int64_t stride, double *medians)
{
    double *alike = new_values(turns->ranks);
    for (int64_t probe = 0; probe < turns->probes; probe++) {
        for (int64_t rank = 0; rank < turns->ranks; rank++) {
            alike[rank] = rates[rank * stride + probe];
        }
        medians[probe] = statistics_median(alike, turns->ranks);
    }
    free(alike);
}

void turns_add(struct turns *turns, const double *rates, int64_t stride)
{
    int64_t rounds  = turns->rounds++;
    turns->shares   = memory_resize(turns->shares, (size_t)(turns->rounds * turns->ranks) * sizeof(*turns->shares));
    double *medians = new_values(turns->probes), *own = new_values(turns->probes);
    find_medians(turns, rates, stride, medians);
    for (int64_t rank = 0; rank < turns->ranks; rank++) {
        for (int64_t probe = 0; probe < turns->probes; probe++) {
            own[probe] = rates[rank * stride + probe] / medians[probe];
        }
        turns->shares[rounds * turns->ranks + rank] = statistics_median(own, turns->probes);
    }
    for (int64_t probe = 0; probe < turns->probes; probe++) {
        turns->level[probe] = fmax(turns->level[probe], medians[probe]);
    }
    free(medians);
    free(own);
}

// Median over rounds of the distance between the rank's ratio and value.
static double find_distance(const struct turns *turns, int64_t rank, double value)
{
    double *distances = new_values(turns->rounds);
    for (int64_t round = 0; round < turns->rounds; round++) {
        distances[round] = fabs(turns->shares[round * turns->ranks + rank] - value);
    }
    double median = statistics_median(distances, turns->rounds);
    free(distances);
    return median;
}

// Ratios are positive, so their distance from 0 is the ratio itself.
static double find_share(const struct turns *turns, int64_t rank)
{
    return find_distance(turns, rank, 0.0);
}

double turns_rate(const struct turns *turns, int64_t rank, int64_t probe)
{
    return turns->level[probe] * find_share(turns, rank);
}

// Standard error of a median of normal values, from their median absolute deviation.
double turns_error(const struct turns *turns, int64_t rank)
{
    static const double deviations = 1.4826, of_median = 1.2533;
    if (turns->rounds < 2) {
        return INFINITY;
    }
    double share = find_share(turns, rank), deviation = deviations * find_distance(turns, rank, share);
    return 100.0 * of_median * deviation / share / sqrt((double)turns->rounds);
}
