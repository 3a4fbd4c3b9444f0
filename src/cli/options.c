// SPDX-License-Identifier: MIT
// gswbench options: lists every option; prints the manual pages and completion scripts, which use the same tables.
#include <stdbool.h>
#include <string.h>

#include "internal.h"

struct options_arguments {
    bool        markdown;
    const char *manual, *completion;
};

static const struct flag flags[] = {
    SWITCH_FLAG(options_arguments, markdown, "--markdown", "print Markdown, as in docs/options.md"),
    TEXT_FLAG(options_arguments, manual, "--man", "1|5", "print a manual page: 1: commands and flags, 5: options"),
    TEXT_FLAG(options_arguments, completion, "--completion", "bash|zsh", "print a shell completion script"),
    END_FLAGS,
};

static status unknown(const char *flag, const char *value, const char *allowed)
{
    return fail_as(EXIT_USAGE, "%s %s: allowed are %s", flag, value, allowed);
}

static status run(const void *arguments, struct text_buffer *errors)
{
    (void)errors;
    const struct options_arguments *options = arguments;
    if (options->completion != NULL) {
        return completion_print(options->completion, stdout)
                   ? OK
                   : unknown("--completion", options->completion, "bash, zsh");
    }
    if (options->manual == NULL) {
        config_print_options(stdout, options->markdown ? OPTIONS_MARKDOWN : OPTIONS_TEXT);
    } else if (strcmp(options->manual, "1") == 0) {
        manual_print(stdout);
    } else if (strcmp(options->manual, "5") == 0) {
        config_print_options(stdout, OPTIONS_MANUAL);
    } else {
        return unknown("--man", options->manual, "1, 5");
    }
    return OK;
}

const struct command command_options = {
    .name    = "options",
    .help    = "print every config option: default, allowed values, meaning",
    .example = "gswbench options | less",
    .flags   = flags,
    .bytes   = sizeof(struct options_arguments),
    .run     = run,
};
