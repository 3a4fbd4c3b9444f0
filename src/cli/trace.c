// SPDX-License-Identifier: MIT
// gswbench report --trace: kernel times of another program's trace by part, next to a predicted step.
#include <math.h>

#include "gswbench/kernel_trace.h"
#include "gswbench/predict.h"
#include "gswbench/show.h"
#include "internal.h"

// Adds the ops of the stage that computes longest, as if they were kernels of a trace.
static void collect(void *context, const struct predict_view *view)
{
    struct kernel_trace *trace = context;
    for (int32_t i = 0; i < view->plan->op_count && view->is_busiest; i++) {
        kernel_trace_add(trace, &(struct kernel){.begin = 1e6 * view->times[i].begin,
                                                 .end   = 1e6 * view->times[i].end,
                                                 .part  = kernel_part_of_op(view->plan, &view->plan->ops[i])});
    }
}

static status predict_parts(struct kernel_sums *sums, const struct arguments *chosen, struct text_buffer *errors)
{
    struct kernel_trace trace     = {.has_begin = true};
    struct predict_row  row       = {.explanation = {.visit = collect, .context = &trace}};
    status              predicted = job_read(&row.job, &chosen->config, errors);
    if (!failed(&predicted)) {
        predict_row_compute(&row, false);
        predicted = row.support;
    }
    kernel_trace_sum(sums, &trace);
    kernel_trace_free(&trace);
    text_free(&row.warnings);
    return predicted;
}

static status show(struct shown_trace *shown, const struct arguments *chosen, struct text_buffer *errors)
{
    struct kernel_sums predicted;
    if (chosen->config.name != NULL) {
        TRY(predict_parts(&predicted, chosen, errors));
        shown->predicted = &predicted;
    }
    kernel_trace_sum(&shown->traced, shown->trace);
    (chosen->json ? show_trace_json : show_trace)(shown);
    return OK;
}

status trace_print(const struct arguments *chosen, struct text_buffer *errors)
{
    struct kernel_trace trace;
    struct shown_trace  shown = {.path = chosen->words.items[0], .trace = &trace};
    if (chosen->words.count != 1) {
        return fail_as(EXIT_USAGE, "--trace reads one trace, but %d are given", chosen->words.count);
    }
    if (chosen->config.name != NULL && chosen->config.ranks == 0) {
        return fail_as(EXIT_USAGE, "--config: give --ranks as well");
    }
    status read = kernel_trace_read(&trace, chosen->words.items[0]);
    read        = failed(&read) ? read : show(&shown, chosen, errors);
    kernel_trace_free(&trace);
    return read;
}
