// SPDX-License-Identifier: MIT
// Reads and judges the thresholds of a run: run.fail_above = step=13, run.fail_below = mfu=0.5,tokens=60000. MFU and
// tokens/s follow from the step time, so each threshold becomes a limit on the median step time.
#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/number.h"

// Figures that can have a threshold. is_below: the threshold is a minimum, because the figure falls as the step time
// grows.
static const struct figure {
    const char *name;
    bool        is_below;
    double      maximum;    // largest valid threshold; 0: none
} figures[] = {{"step", false, 0.0}, {"mfu", true, 1.0}, {"tokens", true, 0.0}};
enum { FIGURES = sizeof(figures) / sizeof(figures[0]), LIST_BYTES = 112, THRESHOLDS_MAX = LIST_BYTES };

struct threshold {
    const struct figure *figure;
    double               limit;
};

static status read_threshold(struct threshold *threshold, const char *option, bool is_below, const char *word)
{
    const char *equals = strchr(word, '=');
    size_t      length = equals != NULL ? (size_t)(equals - word) : 0;
    for (int i = 0; i < FIGURES; i++) {
        const struct figure *figure = &figures[i];
        if (length == strlen(figure->name) && strncmp(word, figure->name, length) == 0 &&
            figure->is_below == is_below && number_parse_real(equals + 1, &threshold->limit) &&
            threshold->limit > 0.0 && (figure->maximum == 0.0 || threshold->limit <= figure->maximum)) {
            threshold->figure = figure;
            return OK;
        }
    }
    return fail("[run] %s = %s: expected %s", option, word,
                is_below ? "mfu=SHARE (0 to 1, not percent) or tokens=NUMBER (per second), or both with a comma"
                         : "step=SECONDS; use fail_below for mfu and tokens");
}

// Returns the median step time that just meets the threshold; NaN if the run does not have the figure.
static double find_step_limit(const struct threshold *threshold, const struct result *result)
{
    const struct result_figures *now = &result->figures;
    double                       has =
        strcmp(threshold->figure->name, "mfu") == 0 ? now->utilization[now->convention] : now->tokens_per_second;
    return threshold->figure->is_below ? now->step.median * has / threshold->limit : threshold->limit;
}

// Judges a threshold, and prints the verdict. The whole confidence interval of the median must be on one side of the
// limit; without an interval the median decides.
static int judge(const struct threshold *threshold, const struct result *result, bool is_forced, FILE *file)
{
    const struct statistics *step  = &result->figures.step;
    double                   limit = find_step_limit(threshold, result);
    double low = isnan(step->low) ? step->median : step->low, high = isnan(step->low) ? step->median : step->high;
    if (result->verdict != VERDICT_VALID && !(is_forced && result_is_right(result))) {
        fprintf(file, "threshold: %s %g: undecided, since the run is %s%s\n", threshold->figure->name, threshold->limit,
                result_verdict_names[result->verdict], result_is_right(result) ? " (--force applies it anyway)" : "");
        return EXIT_UNDECIDED;
    }
    if (isnan(limit)) {
        fprintf(file, "threshold: %s %g: undecided, since the run has no such value\n", threshold->figure->name,
                threshold->limit);
        return EXIT_UNDECIDED;
    }
    int code = low > limit ? EXIT_GATE : high > limit ? EXIT_UNDECIDED : EXIT_VALID;
    fprintf(file, "threshold: %s %s %g: %s: median step %.6g s, limit %.6g s\n", threshold->figure->name,
            threshold->figure->is_below ? ">=" : "<=", threshold->limit,
            code == EXIT_VALID  ? "met"
            : code == EXIT_GATE ? "failed"
                                : "undecided, since the limit is inside the 95 % CI of the median",
            step->median, limit);
    return code;
}

// Reads the thresholds of fail_above and fail_below into thresholds [THRESHOLDS_MAX].
static status read_thresholds(struct threshold *thresholds, int *count, const struct run_config *run)
{
    const struct {
        const char *option, *list;
        bool        is_below;
    } options[] = {{"fail_above", run->fail_above, false}, {"fail_below", run->fail_below, true}};
    *count      = 0;
    for (int i = 0; i < 2; i++) {
        char text[LIST_BYTES];
        text_copy(text, sizeof(text), options[i].list);
        for (char *word = text, *next; *word != '\0'; word = next) {
            char *end = word + strcspn(word, ",");
            next      = end + (*end == ',');
            *end      = '\0';
            TRY(read_threshold(&thresholds[(*count)++], options[i].option, options[i].is_below, word));
        }
    }
    return OK;
}

status thresholds_check(const struct run_config *run)
{
    struct threshold thresholds[THRESHOLDS_MAX];
    int              count;
    return read_thresholds(thresholds, &count, run);
}

// A missed threshold decides the exit code even if another threshold cannot be decided.
int thresholds_judge(const struct result *result, const struct run_config *run, bool is_forced, FILE *file)
{
    struct threshold thresholds[THRESHOLDS_MAX];
    int              count, code = EXIT_VALID;
    status           read = read_thresholds(thresholds, &count, run);
    for (int i = 0; i < count && !failed(&read); i++) {
        int one = judge(&thresholds[i], result, is_forced, file);
        code    = code == EXIT_GATE || one == EXIT_VALID ? code : one;
    }
    return code;
}
