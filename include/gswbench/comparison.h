// SPDX-License-Identifier: MIT
// Two results side by side: whether they may be compared, whether the second is faster, and where the difference is.
#ifndef GSWBENCH_COMPARISON_H
#define GSWBENCH_COMPARISON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/json.h"
#include "gswbench/result.h"
#include "gswbench/statistics.h"
#include "gswbench/status.h"

// A setting or a fact that is not the same in both.
struct comparison_setting {
    char name[96], first[160], second[160];    // as far as they fit
    bool is_obstacle;
};

// How far two series over the steps are apart: abs(second - first) / abs(first), NaN where no step is in both.
struct comparison_curve {
    double  largest, last;
    int64_t largest_step, last_step;
};

// Seconds of a step in both.
struct comparison_row {
    char   name[24];
    double first, second;
};

struct comparison {
    const struct result       *first, *second;
    struct statistics_change   step;    // of the step times
    struct comparison_curve    loss, gradient_norm;
    struct comparison_setting *settings;
    int64_t                    setting_count;

    // Where both have a traced step: the parts of the waterfall and "tracing", the median step less the traced one,
    // which add up to the median; and the seconds of compute ops by family, without overlap.
    struct comparison_row *parts, *families;
    int64_t                part_count, family_count;

    double pace;    // the second's peak over the first's: by how much GEMMs could speed up
};

// Both results outlive the comparison; threshold is the smallest relative change of the step time that matters.
void comparison_init(struct comparison *comparison, const struct result *first, const struct result *second,
                     double threshold);
void comparison_free(struct comparison *comparison);

// Success, or what keeps the results from being compared (EXIT_COMPARE).
status comparison_check(const struct comparison *comparison);

// Fails where the second is slower by more than the threshold, with which the comparison was made (EXIT_GATE), and
// where that cannot be told (EXIT_UNDECIDED).
status comparison_gate(const struct comparison *comparison, double threshold);

void comparison_write_text(const struct comparison *comparison, FILE *file);
bool comparison_write_json(const struct comparison *comparison, FILE *file);

extern const struct json_field comparison_fields[];

#endif
