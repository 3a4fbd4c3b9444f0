// SPDX-License-Identifier: MIT
// gswbench report: shows a result.json again, in any of the formats of a result.
#include <stdlib.h>

#include "gswbench/report.h"
#include "internal.h"

struct report_arguments {
    struct text_list paths;
    const char      *format;
    bool             recovers;
};

static const struct flag flags[] = {
    OPERANDS(report_arguments, paths, "DIR|FILE", "the folder of a run, or its result.json"),
    TEXT_FLAG(report_arguments, format, "--format", REPORT_FORMAT_NAMES, "text when not given; all go to stdout"),
    SWITCH_FLAG(report_arguments, recovers, "--recover",
                "make a partial result of the steps that a run finished before it died, and write it into its folder"),
    END_FLAGS,
};

static status run(const void *arguments, struct text_buffer *errors)
{
    (void)errors;
    const struct report_arguments *chosen = arguments;
    const struct report_format    *format = report_find_format(chosen->format != NULL ? chosen->format : "text");
    if (chosen->paths.count != 1) {
        return fail_as(EXIT_USAGE, "report takes one folder or result.json, not %d", chosen->paths.count);
    }
    if (format == NULL) {
        return fail_as(EXIT_USAGE, "--format %s: %s", chosen->format, REPORT_FORMAT_NAMES);
    }
    struct result *result = memory_allocate(sizeof(*result));
    const char    *path   = chosen->paths.items[0];
    status read = chosen->recovers ? report_recover(result, path, "the run died") : cli_read_result(result, path);
    if (!failed(&read)) {
        read = report_print(format->write, result);
    }
    result_free(result);
    free(result);
    return read;
}

const struct command command_report = {
    .name  = "report",
    .help  = "show a result again: as text, a page, tables or JSON",
    .flags = flags,
    .bytes = sizeof(struct report_arguments),
    .run   = run,
};
