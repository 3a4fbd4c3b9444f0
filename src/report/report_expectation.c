// SPDX-License-Identifier: MIT
// The predicted step time next to the measured one, and the part that explains the difference.
#include <math.h>

#include "internal.h"

// Seconds by which a part exceeds its prediction. The traced step is not a measured one, so its parts are scaled to the
// median step.
static double find_excess(const struct result *result, int part)
{
    double share = result->trace.waterfall.seconds[part] / result->trace.step_seconds;
    return share * result->figures.step.median - result->expectation.waterfall.seconds[part];
}

// Returns the part that contributes most to the difference, in its direction; WATERFALL_PARTS if none contributes a
// tenth.
static int find_part(const struct result *result, double difference)
{
    int    most  = WATERFALL_PARTS;
    double least = fabs(difference) / 10.0;
    for (int part = 0; part < WATERFALL_PARTS && result->trace.source[0] != '\0'; part++) {
        double excess = copysign(1.0, difference) * find_excess(result, part);
        if (excess > least) {
            most  = part;
            least = excess;
        }
    }
    return most;
}

// "12.480 s +- 2.4 % (h100-sxm, 98 % of its computing measured)"
static void write_expected(const struct result_expectation *expectation, FILE *file)
{
    char seconds[32], profile[128];
    fprintf(file, "%s s +- %.1f %% (%s", report_seconds(seconds, sizeof(seconds), expectation->step_seconds),
            expectation->percent, report_safe(profile, sizeof(profile), expectation->profile));
    if (expectation->measured_share > 0.0) {
        fprintf(file, ", %.0f %% of its compute time measured", 100.0 * expectation->measured_share);
    }
    fprintf(file, ")");
}

void report_write_expectation(const struct result *result, FILE *file)
{
    const struct result_expectation *expectation = &result->expectation;
    double                           median      = result->figures.step.median;
    char                             text[160];
    if (result_is_predicted(result)) {
        return;
    }
    if (expectation->profile[0] == '\0') {
        if (expectation->reason[0] != '\0') {
            fprintf(file, "expected: unknown (%s)\n", report_safe(text, sizeof(text), expectation->reason));
        }
        return;
    }
    fprintf(file, "expected: ");
    write_expected(expectation, file);
    if (!isnan(median)) {
        double difference = median - expectation->step_seconds;
        int    part       = find_part(result, difference);
        fprintf(file, ", measured %s s", report_seconds(text, sizeof(text), median));
        fprintf(file, ": %+.1f %%", 100.0 * difference / expectation->step_seconds);
        if (part < WATERFALL_PARTS) {
            fprintf(file, ", of which %s %+.*f s", waterfall_part_names[part], median < 1.0 ? 6 : 3,
                    find_excess(result, part));
        }
    }
    fputc('\n', file);
}

const struct waterfall *report_expected_parts(const struct result *result)
{
    bool is_other = result->expectation.profile[0] != '\0' && !result_is_predicted(result);
    return is_other ? &result->expectation.waterfall : NULL;
}
