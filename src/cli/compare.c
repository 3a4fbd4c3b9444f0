// SPDX-License-Identifier: MIT
// gswbench compare: compares results with the first one.
#include <stdlib.h>
#include <string.h>

#include "gswbench/comparison.h"
#include "gswbench/number.h"
#include "gswbench/output.h"
#include "gswbench/show.h"
#include "internal.h"

const struct flag compare_flags[] = {
    OPERANDS(words, "FIRST SECOND...",
             "folders of runs, predictions or repeats, or result.json files; each is compared with the first"),
    TEXT_FLAG(fail_on, "--fail-on", "slower:PERCENT%",
              "exit 6 if the second is slower by more than this, 15 if undecidable; default threshold 1 %, without "
              "exit code"),
    SWITCH_FLAG(force, "--force", "compare different jobs anyway, and mark the result"),
    TEXT_FLAG(page, "-o", "FILE", "write an HTML page, e.g. comparison.html"),
    SWITCH_FLAG(json, "--json", "print JSON"),
    END_FLAGS,
};

// Parses --fail-on. *threshold: the smallest relative change that counts; 1 % without --fail-on.
static status read_threshold(const char *fail_on, double *threshold)
{
    static const char word[] = "slower:";
    *threshold               = 1;
    if (fail_on != NULL && (strncmp(fail_on, word, strlen(word)) != 0 ||
                            !number_parse_percent(fail_on + strlen(word), threshold) || *threshold < 0)) {
        return fail_as(EXIT_USAGE, "--fail-on %s: expected slower:2%%", fail_on);
    }
    *threshold /= 100;
    return OK;
}

// Returns the most severe status of the comparisons.
static status gate_all(const struct comparison *list, int64_t count, double threshold)
{
    status gravest = OK;
    for (int64_t i = 0; i < count; i++) {
        status own = comparison_gate(&list[i], threshold);
        if (failed(&own) && count > 1) {
            own = fail_as(own.exit_code, "%s: %s", list[i].second->run_id, own.text);
        }
        gravest = !failed(&gravest) || own.exit_code == EXIT_GATE ? own : gravest;
    }
    return gravest;
}

static status show_comparisons(const struct comparison *list, int64_t count, const struct arguments *chosen)
{
    for (int64_t i = 0; i < count && !chosen->force; i++) {
        TRY(comparison_check(&list[i]));
    }
    if (chosen->page != NULL) {
        struct text_stream page;
        text_stream_open(&page);
        comparison_write_html(list, count, page.file);
        TRY(output_save(&page, "%s", chosen->page));
    }
    if (!chosen->json) {
        comparison_write_text(list, count, stdout);
        if (chosen->page != NULL) {
            show_path("files: ", chosen->page, "");
        }
    } else {
        comparison_write_json(list, count, stdout);    // main reports errors of stdout
    }
    return OK;
}

static status compare_sides(const struct comparison_side *sides, int64_t count, const struct arguments *chosen,
                            double threshold)
{
    struct comparison *list = memory_allocate((size_t)count * sizeof(*list));
    for (int64_t i = 0; i < count; i++) {
        comparison_init(&list[i], sides[0].result, sides[i + 1].result, threshold);
        list[i].repeats[0] = sides[0].repeats;
        list[i].repeats[1] = sides[i + 1].repeats;
    }
    status shown = show_comparisons(list, count, chosen);
    if (!failed(&shown) && chosen->fail_on != NULL) {
        shown = gate_all(list, count, threshold);
    }
    for (int64_t i = 0; i < count; i++) {
        comparison_free(&list[i]);
    }
    free(list);
    return shown;
}

status command_compare(const struct arguments *chosen)
{
    int    count = chosen->words.count;
    double threshold;
    TRY(read_threshold(chosen->fail_on, &threshold));
    if (count < 2) {
        return fail_as(EXIT_USAGE, "compare needs two or more folders or result.json files, but %d are given", count);
    }
    struct comparison_side *sides   = memory_allocate((size_t)count * sizeof(*sides));
    status                  outcome = OK;
    for (int i = 0; i < count && !failed(&outcome); i++) {
        outcome = comparison_read_side(&sides[i], chosen->words.items[i]);
    }
    outcome = failed(&outcome) ? outcome : compare_sides(sides, count - 1, chosen, threshold);
    for (int i = 0; i < count; i++) {
        comparison_free_side(&sides[i]);
    }
    free(sides);
    return outcome;
}
