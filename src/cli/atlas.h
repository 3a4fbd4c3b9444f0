// SPDX-License-Identifier: MIT
// The published rows of all configurations with their predictions, as the command collects and its page shows them.
#ifndef GSWBENCH_CLI_ATLAS_H
#define GSWBENCH_CLI_ATLAS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/predict.h"

struct atlas_effect {
    const char *section, *key;
    double      value, spread_percent, step_percent;    // the step's for that spread
};

struct atlas_row {
    char    config[128], variant[40], source[128];
    char    gpu[112], precision[8], software[112], layout[128];
    int64_t ranks;
    double  published_seconds, predicted_seconds, error_percent;
    double  range_percent;    // NaN: not asked for
    // The rank's that holds most, as the publisher counts: published (0: it is not), predicted, percent.
    double published_memory, predicted_memory, memory_error;
    bool   memory_is_reserved;
    bool   fitted, has_experts;
    // Of its values on the step, where a range was asked for; shown is for JSON, which wants a pointer.
    struct atlas_effect effects[PREDICT_EFFECTS_MAX], *effects_shown;
    int64_t             effect_count;
};

struct atlas {
    struct atlas_row *rows;
    int64_t           count, capacity;
};

// How rows are grouped in a table: each way is a text of a row.
enum atlas_key { ATLAS_CONFIG, ATLAS_GPU, ATLAS_PRECISION, ATLAS_SOFTWARE, ATLAS_ALL, ATLAS_KEYS };
extern const char *const atlas_key_names[ATLAS_KEYS];

// How far the predictions of the rows are off that have this value of the key and are fitted to, or are not.
struct atlas_sum {
    const char *value;
    int         rows, within;        // within: off by 10 % at most
    int         ranged, inside;      // with a range, and off by no more than it leaves with a chance of 80 %
    double      mean, size, most;    // percent: signed, without sign, the largest
};
const char *atlas_value(const struct atlas_row *row, enum atlas_key key);

// The same of the memory of rows whose publishers say it. NaN percent: none does.
struct atlas_sum atlas_sum_up_memory(const struct atlas *atlas, const char *config);

// The sums of the key's values, sorted by them; the caller frees the list.
struct atlas_sum *atlas_sum_up(const struct atlas *atlas, enum atlas_key key, bool fitted, int *count);

// atlas_page.c: docs/atlas.md.
void atlas_write_page(const struct atlas *atlas, FILE *file);

// atlas_plot.c: docs/atlas.svg.
void atlas_write_plot(const struct atlas *atlas, FILE *file);

#endif
