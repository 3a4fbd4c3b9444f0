// SPDX-License-Identifier: MIT
// Initialises an observation without data.
#include "gswbench/observation.h"

#include <math.h>

#include "gswbench/text.h"

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
