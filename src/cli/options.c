// SPDX-License-Identifier: MIT
// gswbench options: every option of the configuration, as a table.
#include <stdbool.h>

#include "internal.h"

struct options_arguments {
    bool markdown;
};

static const struct flag flags[] = {
    SWITCH_FLAG(options_arguments, markdown, "--markdown", "prints Markdown, as in docs/options.md"),
    END_FLAGS,
};

static status run(const void *arguments, struct text_buffer *errors)
{
    (void)errors;
    const struct options_arguments *options = arguments;
    config_print_options(stdout, options->markdown);
    return OK;
}

const struct command command_options = {
    .name  = "options",
    .help  = "print every option of a configuration file: default, range, meaning",
    .flags = flags,
    .bytes = sizeof(struct options_arguments),
    .run   = run,
};
