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

// Seconds of a step in both, the second's for the first's tokens.
struct comparison_row {
    char   name[24];
    double first, second;
};

// Runs of one configuration that stand for a side: how many, and their medians' spread over their median; NaN: one run.
struct comparison_repeats {
    int64_t runs;
    double  spread;
};

struct comparison {
    const struct result       *first, *second;
    struct comparison_repeats  repeats[2];
    double                     work;    // tokens a device in a step of the second over those in one of the first
    struct statistics_change   step;    // of the step times, the second's over the work
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

// One result for runs of one configuration: that with the middle median, whose step then is that of them all, with an
// interval and a noise that cover each one's.
struct result *comparison_join(struct result *runs, int64_t count, struct comparison_repeats *repeats);

// Success, or what keeps the results from being compared (EXIT_COMPARE).
status comparison_check(const struct comparison *comparison);

// Fails where the second is slower by more than the threshold, with which the comparison was made (EXIT_GATE), and
// where that cannot be told (EXIT_UNDECIDED).
status comparison_gate(const struct comparison *comparison, double threshold);

// What the second is called among several: the settings that it changes, as far as they fit; returns text.
const char *comparison_name(const struct comparison *comparison, char *text, size_t bytes);

// Of one comparison, or of several with the same first, of which a table has a line each.
void comparison_write_text(const struct comparison *list, int64_t count, FILE *file);
bool comparison_write_json(const struct comparison *list, int64_t count, FILE *file);
void comparison_write_html(const struct comparison *list, int64_t count, FILE *file);

extern const struct json_field comparison_fields[], comparisons_fields[];

#endif
