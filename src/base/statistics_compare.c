// SPDX-License-Identifier: MIT
// Compares the median step times of two runs. Ambiguous if the medians differ less than the steps of one run.
#include "gswbench/statistics.h"

#include <math.h>
#include <stddef.h>

// Required distance of two medians, in standard errors.
static const double errors_apart = 3.5;

const char *const statistics_change_names[] = {[CHANGE_SAME]      = "same",
                                               [CHANGE_FASTER]    = "faster",
                                               [CHANGE_SLOWER]    = "slower",
                                               [CHANGE_AMBIGUOUS] = "ambiguous",
                                               [CHANGE_COUNT]     = NULL};

void statistics_compare(struct statistics_change *change, const struct statistics *first,
                        const struct statistics *second, double threshold)
{
    int64_t count    = first->count < second->count ? first->count : second->count;
    double  errors   = errors_apart * hypot(first->error, second->error);
    double  noise    = fmax(3 * fmax(first->wander, second->wander), errors);
    double  swing    = fmax(first->swing, second->swing);
    double  margin   = fmax(threshold, fmax(noise, swing));
    double  relative = second->median / first->median - 1;
    *change          = (struct statistics_change){.speedup  = first->median / second->median,
                                                  .low      = first->low / second->high,
                                                  .high     = first->high / second->low,
                                                  .relative = relative,
                                                  .margin   = margin,
                                                  .swings   = margin > fmax(threshold, noise),
                                                  .is_short = count < CHANGE_COUNT_MIN,
                                                  .verdict  = CHANGE_AMBIGUOUS};
    if (change->is_short) {
        return;
    }
    if (relative > margin && change->high < 1) {
        change->verdict = CHANGE_SLOWER;
    } else if (relative < 1 / (1 + margin) - 1 && change->low > 1) {
        change->verdict = CHANGE_FASTER;
    } else if (noise <= threshold && 1 / change->low <= 1 + threshold && 1 / change->high >= 1 - threshold) {
        change->verdict = CHANGE_SAME;
    }
}
