// SPDX-License-Identifier: MIT
// gswbench report: shows a result.json again, as text or as a page.
#include <stdlib.h>
#include <string.h>

#include "gswbench/report.h"
#include "internal.h"

struct report_arguments {
    struct text_list paths;
    const char      *format;
};

static const struct flag flags[] = {
    OPERANDS(report_arguments, paths, "DIR|FILE", "the folder of a run, or its result.json"),
    TEXT_FLAG(report_arguments, format, "--format", "text|html", "text when not given; both go to stdout"),
    END_FLAGS,
};

static void write_text(const struct result *result, FILE *file)
{
    report_write_header(result, file);
    for (int64_t i = 0; i < result->step_count; i++) {
        report_write_step(result, &result->steps[i], file);
    }
    report_write_result(result, file);
}

static status run(const void *arguments, struct text_buffer *errors)
{
    (void)errors;
    const struct report_arguments *chosen  = arguments;
    const bool                     is_html = chosen->format != NULL && strcmp(chosen->format, "html") == 0;
    if (chosen->paths.count != 1) {
        return fail_as(EXIT_USAGE, "report takes one folder or result.json, not %d", chosen->paths.count);
    }
    if (chosen->format != NULL && !is_html && strcmp(chosen->format, "text") != 0) {
        return fail_as(EXIT_USAGE, "--format %s: text or html", chosen->format);
    }
    struct result *result = memory_allocate(sizeof(*result));
    status         read   = cli_read_result(result, chosen->paths.items[0]);
    if (!failed(&read)) {
        read = report_print(is_html ? report_write_html : write_text, result);
    }
    result_free(result);
    free(result);
    return read;
}

const struct command command_report = {
    .name  = "report",
    .help  = "show a result again, as text or as a page",
    .flags = flags,
    .bytes = sizeof(struct report_arguments),
    .run   = run,
};
