// SPDX-License-Identifier: MIT
// A waterfall as lines of text.
#include <math.h>

#include "gswbench/waterfall.h"

static double sum_of(const struct waterfall *waterfall)
{
    double sum = 0.0;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        sum += waterfall->seconds[part];
    }
    return sum;
}

bool waterfall_shows(const struct waterfall *waterfall, enum waterfall_part part)
{
    return fabs(waterfall->seconds[part]) >= 0.0005 * sum_of(waterfall);
}

void waterfall_print(const struct waterfall *waterfall, FILE *file)
{
    double sum = sum_of(waterfall);
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        if (waterfall_shows(waterfall, (enum waterfall_part)part)) {
            fprintf(file, "  %-13s %*.*f s %6.1f %%\n", waterfall_part_names[part], 10, sum < 1.0 ? 6 : 3,
                    waterfall->seconds[part], 100.0 * waterfall->seconds[part] / sum);
        }
    }
}
