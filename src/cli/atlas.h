// SPDX-License-Identifier: MIT
// Published rows with their predictions, as collected by the command and shown on its page.
#ifndef GSWBENCH_CLI_ATLAS_H
#define GSWBENCH_CLI_ATLAS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gswbench/predict.h"

struct atlas_effect {
    const char *section, *key;
    double      value, spread_percent, step_percent;    // step_percent: change of the step for one spread
};

struct atlas_row {
    char    config[128], variant[40], source[128];
    char    gpu[112], precision[8], software[112], layout[128];
    int64_t ranks;
    double  published_seconds, predicted_seconds, error_percent;
    double  range_percent;    // NaN: not requested
    // Memory of the rank that holds most, counted as the publisher counts it: published (0: unknown), predicted, error
    // in percent.
    double published_memory, predicted_memory, memory_error;
    bool   memory_is_reserved;
    bool   fitted, has_experts;
    // Effect of each value on the step, if ranges were requested. effects_shown is the pointer that JSON needs.
    struct atlas_effect effects[PREDICT_EFFECTS_MAX], *effects_shown;
    int64_t             effect_count;
};

struct atlas {
    struct atlas_row *rows;
    int64_t           count, capacity;
};

// Ways to group rows: each key is a text of a row.
enum atlas_key { ATLAS_CONFIG, ATLAS_GPU, ATLAS_PRECISION, ATLAS_SOFTWARE, ATLAS_ALL, ATLAS_KEYS };
extern const char *const atlas_key_names[ATLAS_KEYS];

// Prediction errors of the fitted or of the other rows that have this value of the key.
struct atlas_sum {
    const char *value;
    int         rows, within;        // within: error of at most 10 %
    int         ranged, inside;      // ranged: has an error range; inside: error within its 80 % range
    double      mean, size, most;    // percent: mean with sign, mean absolute, maximum absolute
};
const char *atlas_value(const struct atlas_row *row, enum atlas_key key);

// The same for the memory of rows with published memory. Percentages are NaN without such a row.
struct atlas_sum atlas_sum_up_memory(const struct atlas *atlas, const char *config);

// Returns a sum per value of the key, sorted by value; the caller frees the array.
struct atlas_sum *atlas_sum_up(const struct atlas *atlas, enum atlas_key key, bool fitted, int *count);

// atlas_page.c: writes docs/atlas.md.
void atlas_write_page(const struct atlas *atlas, FILE *file);

// atlas_plot.c: writes docs/atlas.svg.
void atlas_write_plot(const struct atlas *atlas, FILE *file);

#endif
