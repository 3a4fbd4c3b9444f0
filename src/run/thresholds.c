// SPDX-License-Identifier: MIT
// User thresholds: run.fail_above = step=13, run.fail_below = mfu=0.5,tokens=60000. Each is a limit on the median step
// time, from which the others follow.
#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/number.h"
#include "gswbench/text.h"

// is_below: a minimum, of a figure that falls as the step time grows.
static const struct figure {
    const char *name;
    bool        is_below;
    double      most;    // largest valid limit; 0: none
} figures[] = {{"step", false, 0.0}, {"mfu", true, 1.0}, {"tokens", true, 0.0}};
enum { FIGURES = sizeof(figures) / sizeof(figures[0]), LIST_BYTES = 112 };

struct demand {
    const struct figure *figure;
    double               limit;
};

// Splits the next word off a comma-separated list; false at its end.
static bool next_word(char **list, const char **word)
{
    *word     = *list;
    char *end = strchr(*list, ',');
    bool  has = **list != '\0';
    *list     = end != NULL ? end + 1 : *list + strlen(*list);
    if (end != NULL) {
        *end = '\0';
    }
    return has;
}

static status read_demand(struct demand *demand, const char *option, bool is_below, const char *word)
{
    const char *equals = strchr(word, '=');
    size_t      length = equals != NULL ? (size_t)(equals - word) : 0;
    for (int i = 0; i < FIGURES; i++) {
        const struct figure *figure = &figures[i];
        if (length == strlen(figure->name) && strncmp(word, figure->name, length) == 0 &&
            figure->is_below == is_below && number_parse_real(equals + 1, &demand->limit) && demand->limit > 0.0 &&
            (figure->most == 0.0 || demand->limit <= figure->most)) {
            demand->figure = figure;
            return OK;
        }
    }
    return fail("[run] %s = %s: expected %s", option, word,
                is_below ? "mfu=SHARE (0 to 1, not percent) or tokens=NUMBER (per second), or both with a comma"
                         : "step=SECONDS; use fail_below for mfu and tokens");
}

// Median step time that just meets the threshold; NaN if the run has no such figure.
static double step_of(const struct demand *demand, const struct result *result)
{
    const struct result_figures *now = &result->figures;
    double has = strcmp(demand->figure->name, "mfu") == 0 ? now->utilization[now->convention] : now->tokens_per_second;
    return demand->figure->is_below ? now->step.median * has / demand->limit : demand->limit;
}

// Uses the confidence interval of the median if there is one.
static int judge(const struct demand *demand, const struct result *result, bool is_forced, FILE *file)
{
    const struct statistics *step  = &result->figures.step;
    double                   limit = step_of(demand, result);
    double low = isnan(step->low) ? step->median : step->low, high = isnan(step->low) ? step->median : step->high;
    if (result->verdict != VERDICT_VALID && !(is_forced && result_is_right(result))) {
        fprintf(file, "threshold: %s %g: undecided, since the run is %s%s\n", demand->figure->name, demand->limit,
                result_verdict_names[result->verdict], result_is_right(result) ? " (--force applies it anyway)" : "");
        return EXIT_UNDECIDED;
    }
    if (isnan(limit)) {
        fprintf(file, "threshold: %s %g: undecided, since the run has no such value\n", demand->figure->name,
                demand->limit);
        return EXIT_UNDECIDED;
    }
    int code = low > limit ? EXIT_GATE : high > limit ? EXIT_UNDECIDED : EXIT_VALID;
    fprintf(file, "threshold: %s %s %g: %s: median step %.6g s, limit %.6g s\n", demand->figure->name,
            demand->figure->is_below ? ">=" : "<=", demand->limit,
            code == EXIT_VALID  ? "met"
            : code == EXIT_GATE ? "failed"
                                : "undecided, since the limit is inside the 95 % CI of the median",
            step->median, limit);
    return code;
}

typedef status visit_demand(const struct demand *demand, void *context);

static status visit(const struct run_config *run, visit_demand *each, void *context)
{
    const struct {
        const char *option, *list;
        bool        is_below;
    } options[] = {{"fail_above", run->fail_above, false}, {"fail_below", run->fail_below, true}};
    for (int i = 0; i < 2; i++) {
        char        text[LIST_BYTES], *rest = text;
        const char *word;
        text_copy(text, sizeof(text), options[i].list);
        while (next_word(&rest, &word)) {
            struct demand demand;
            TRY(read_demand(&demand, options[i].option, options[i].is_below, word));
            TRY(each(&demand, context));
        }
    }
    return OK;
}

static status accept_any(const struct demand *demand, void *context)
{
    (void)demand, (void)context;
    return OK;
}

status thresholds_check(const struct run_config *run)
{
    return visit(run, accept_any, NULL);
}

struct judging {
    const struct result *result;
    bool                 is_forced;
    FILE                *file;
    int                  code;
};

// A missed threshold takes precedence over an inconclusive one.
static status judge_one(const struct demand *demand, void *context)
{
    struct judging *judging = context;
    int             code    = judge(demand, judging->result, judging->is_forced, judging->file);
    judging->code           = judging->code == EXIT_GATE || code == EXIT_VALID ? judging->code : code;
    return OK;
}

int thresholds_judge(const struct result *result, const struct run_config *run, bool is_forced, FILE *file)
{
    struct judging judging = {.result = result, .is_forced = is_forced, .file = file};
    visit(run, judge_one, &judging);
    return judging.code;
}
