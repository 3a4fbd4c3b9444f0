// SPDX-License-Identifier: MIT
// Compares costs of forward attention with measured times, for numbers of heads to which no value was fitted.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/statistics.h"
#include "round_machine.h"
#include "shipped_machine.h"

enum { ROWS_MOST = 600 };
struct measured_row {
    char                   profile[16];
    struct attention_shape shape;
    double                 us;
};

static int read_rows(struct measured_row rows[ROWS_MOST])
{
    char  line[256];
    int   count = 0;
    FILE *file  = fopen(GSWBENCH_SOURCE_DIR "/tests/predict/attention_times.csv", "r");
    cr_assert_not_null(file);
    while (count < ROWS_MOST && fgets(line, sizeof(line), file) != NULL) {
        struct measured_row    *row   = &rows[count];
        struct attention_shape *shape = &row->shape;
        *row                          = (struct measured_row){.shape = {.causal = true}};
        count +=
            sscanf(line, "%15[^,],%ld,%ld,%ld,%ld,%ld,%ld,%ld,%lf", row->profile, &shape->head_dim, &shape->value_dim,
                   &shape->window, &shape->heads, &shape->kv_heads, &shape->batch, &shape->sequence, &row->us) == 9;
    }
    fclose(file);
    return count;
}

// Measurements on Blackwell include a kernel of TensorRT-LLM for rotary embedding and the KV cache. Returns its time to
// read and write Q, K and V.
static double cache_us(const struct hardware_config *hardware, const struct attention_shape *shape)
{
    double numbers = (double)(shape->batch * shape->sequence * (shape->heads + 2 * shape->kv_heads) * shape->head_dim);
    return hardware->peak[RATE_FP4].value > 0.0
               ? 1e6 * 4.0 * numbers / (hardware->memory_efficiency.value * hardware->memory_bandwidth.value)
               : 0.0;
}

// Appends the ratio of predicted to measured time of each row of the profile. Measured times include extra_us of
// launches.
static int compare_rows(double *ratios, const char *profile, double extra_us)
{
    static struct measured_row rows[ROWS_MOST];
    struct config              config  = read_machine(profile);
    struct machine             machine = {.hardware = &config.hardware, .software = &config.software};
    struct tensor              tensor  = {.format = FORMAT_BF16};
    struct plan                plan    = {.tensors = &tensor};
    int                        count = read_rows(rows), found = 0;
    config.hardware.kernel_gap.value = 0.0;
    for (int i = 0; i < count; i++) {
        if (strcmp(rows[i].profile, profile) == 0) {
            struct op op    = {.kind = OP_ATTENTION_FORWARD, .shape.attention = rows[i].shape};
            double    us    = 1e6 * predict_cost_op(&machine, &plan, &op).seconds;
            ratios[found++] = (us + extra_us + cache_us(&config.hardware, &rows[i].shape)) / rows[i].us;
        }
    }
    return found;
}

// Predictions are divided by the median ratio of each GPU, which accounts for its clocks and kernels.
Test(attention_times, are_predicted_for_other_heads_after_one_factor)
{
    static const struct {
        const char *profile;
        int         rows;
        double      extra_us, median, ninth;
    } cases[] = {{"a100-80gb", 32, 43, 0.082, 0.17}, {"h100-sxm", 92, 19, 0.098, 0.25}, {"h200", 80, 19, 0.067, 0.19},
                 {"b200", 80, 30, 0.086, 0.29},      {"gb200", 80, 30, 0.083, 0.27},    {"b300", 64, 30, 0.058, 0.21},
                 {"gb300", 80, 30, 0.065, 0.27}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double ratios[ROWS_MOST];
        int    count = compare_rows(ratios, cases[i].profile, cases[i].extra_us);
        cr_assert_eq(count, cases[i].rows, "%s: %d", cases[i].profile, count);
        statistics_sort(ratios, count);
        double factor = ratios[count / 2];
        for (int j = 0; j < count; j++) {
            ratios[j] = fabs(ratios[j] / factor - 1.0);
        }
        statistics_sort(ratios, count);
        cr_expect_lt(ratios[count / 2], cases[i].median, "%s: median %g", cases[i].profile, ratios[count / 2]);
        cr_expect_lt(ratios[count * 9 / 10], cases[i].ninth, "%s: 90th percentile %g", cases[i].profile,
                     ratios[count * 9 / 10]);
    }
}
