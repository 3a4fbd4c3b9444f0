// SPDX-License-Identifier: MIT
// The values of healthy devices.
#include "observation_fixture.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"

static void observe(struct observation *observation, int64_t rank)
{
    observation_init(observation, "");
    observation->rank             = rank;
    observation->samples          = 40;
    observation->sampling_seconds = 0.0625;
    observation->energy_joules    = 8000;
    text_copy(observation->energy_source, sizeof(observation->energy_source), "counter");
    text_copy(observation->name, sizeof(observation->name), "NVIDIA H100 80GB HBM3");
    text_copy(observation->driver, sizeof(observation->driver), "580.65.06");
    snprintf(observation->uuid, sizeof(observation->uuid), "GPU-%" PRId64, rank);
    snprintf(observation->pci, sizeof(observation->pci), "00000000:%02" PRIX64 ":00.0", rank + 1);

    observation->gauges[GAUGE_SM_CLOCK]    = (struct gauge_values){345, 1740, 1755, 1980, 1980};
    observation->gauges[GAUGE_POWER]       = (struct gauge_values){90, 650, 690, 699, 300};
    observation->gauges[GAUGE_POWER_LIMIT] = (struct gauge_values){700, 700, 700, 700, 700};
    observation->gauges[GAUGE_TEMPERATURE] = (struct gauge_values){31, 60, 66, 71, 64};
    for (int throttle = 0; throttle < THROTTLE_COUNT; throttle++) {
        observation->throttles[throttle] = (struct throttle_values){0, 0, 0};
    }
    for (int counter = 0; counter < COUNTER_PAGES_SINGLE; counter++) {
        observation->counters[counter] = (struct counter_values){0, 0, 0};
    }
    observation->counters[COUNTER_LINKS]        = (struct counter_values){18, 18, 0};
    observation->counters[COUNTER_LINKS_ACTIVE] = (struct counter_values){18, 18, 0};
}

void fixture_observe(struct result *result, int64_t ranks)
{
    result->mesh.world        = ranks;
    result->peak              = NAN;    // unknown: a few ranks cannot compute these steps at a real peak
    result->ranks             = memory_resize(result->ranks, (size_t)ranks * sizeof(*result->ranks));
    result->observations      = memory_resize(result->observations, (size_t)ranks * sizeof(*result->observations));
    result->rank_count        = ranks;
    result->observation_count = ranks;
    for (int64_t rank = 0; rank < ranks; rank++) {
        result->ranks[rank] = (struct result_rank){.rank = rank, .local_rank = rank % 2, .median_seconds = 7.0};
        snprintf(result->ranks[rank].host, sizeof(result->ranks[rank].host), "dgx-%02" PRId64, rank / 2 + 1);
        observe(&result->observations[rank], rank);
    }
    result_derive(result);
}
