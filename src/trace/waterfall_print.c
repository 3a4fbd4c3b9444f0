// SPDX-License-Identifier: MIT
// Prints a waterfall as text.
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

void waterfall_print(const struct waterfall *waterfall, const struct waterfall *expected, FILE *file)
{
    double sum      = sum_of(waterfall);
    int    decimals = sum < 1.0 ? 6 : 3;
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        bool is_expected = expected != NULL && waterfall_shows(expected, (enum waterfall_part)part);
        if (!waterfall_shows(waterfall, (enum waterfall_part)part) && !is_expected) {
            continue;
        }
        fprintf(file, "  %-13s %*.*f s %6.1f %%", waterfall_part_names[part], 10, decimals, waterfall->seconds[part],
                100.0 * waterfall->seconds[part] / sum);
        if (expected != NULL) {
            fprintf(file, "  expected %*.*f s %+*.*f s", 10, decimals, expected->seconds[part], 10, decimals,
                    waterfall->seconds[part] - expected->seconds[part]);
        }
        fputc('\n', file);
    }
}
