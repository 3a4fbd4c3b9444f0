// SPDX-License-Identifier: MIT
// gswbench compare: two results side by side.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/comparison.h"
#include "gswbench/number.h"
#include "internal.h"

struct compare_arguments {
    struct text_list paths;
    const char      *fail_on;
    bool             force, json;
};

static const struct flag flags[] = {
    OPERANDS(compare_arguments, paths, "FIRST SECOND", "two results: folders of runs, or their result.json"),
    TEXT_FLAG(compare_arguments, fail_on, "--fail-on", "slower:PERCENT%",
              "exit code 6 when the second is slower by more than that, 15 when that cannot be told; without it, 1% "
              "counts as a change"),
    SWITCH_FLAG(compare_arguments, force, "--force", "compares what is not comparable, and marks it"),
    SWITCH_FLAG(compare_arguments, json, "--json", "prints JSON"),
    END_FLAGS,
};

// The smallest relative change that matters.
static status read_threshold(const char *fail_on, double *threshold)
{
    static const char word[] = "slower:";
    char              number[32];
    *threshold = 0.01;
    if (fail_on == NULL) {
        return OK;
    }
    size_t length = strlen(fail_on);
    if (strncmp(fail_on, word, strlen(word)) != 0 || fail_on[length - 1] != '%' ||
        !text_copy(number, sizeof(number), fail_on + strlen(word))) {
        return fail_as(EXIT_USAGE, "--fail-on %s: slower:2%% is the form", fail_on);
    }
    number[strlen(number) - 1] = '\0';
    if (!number_parse_real(number, threshold) || *threshold < 0) {
        return fail_as(EXIT_USAGE, "--fail-on %s: slower:2%% is the form", fail_on);
    }
    *threshold /= 100;
    return OK;
}

static status judge(const struct comparison *comparison, const struct compare_arguments *chosen, double threshold)
{
    if (!chosen->force) {
        TRY(comparison_check(comparison));
    }
    if (!chosen->json) {
        comparison_write_text(comparison, stdout);
    } else if (!comparison_write_json(comparison, stdout)) {
        return OK;    // main sees what is wrong with stdout
    }
    return chosen->fail_on != NULL ? comparison_gate(comparison, threshold) : OK;
}

static status run(const void *arguments, struct text_buffer *errors)
{
    (void)errors;
    const struct compare_arguments *chosen = arguments;
    double                          threshold;
    TRY(read_threshold(chosen->fail_on, &threshold));
    if (chosen->paths.count != 2) {
        return fail_as(EXIT_USAGE, "compare takes two folders or result.json, not %d", chosen->paths.count);
    }
    struct result *results = memory_allocate(2 * sizeof(*results));
    status         outcome = cli_read_result(&results[0], chosen->paths.items[0]);
    if (!failed(&outcome)) {
        outcome = cli_read_result(&results[1], chosen->paths.items[1]);
    }
    if (!failed(&outcome)) {
        struct comparison comparison;
        comparison_init(&comparison, &results[0], &results[1], threshold);
        outcome = judge(&comparison, chosen, threshold);
        comparison_free(&comparison);
    }
    result_free(&results[0]);
    result_free(&results[1]);
    free(results);
    return outcome;
}

const struct command command_compare = {
    .name  = "compare",
    .help  = "compare two results: which is faster, by how much, and where the difference is",
    .flags = flags,
    .bytes = sizeof(struct compare_arguments),
    .run   = run,
};
