// SPDX-License-Identifier: MIT
// Prints configs and options: the effective config as INI, the option table as text and Markdown.
#include "gswbench/config.h"

enum { VALUE_BYTES = 512 };

void config_write(const struct config *config, FILE *file)
{
    char value[VALUE_BYTES];
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        fprintf(file, "%s[%s]\n", section == config_sections ? "" : "\n", section->name);
        for (const struct option *option = section->options; option->key != NULL; option++) {
            option_print(option, (const char *)config + section->offset, value, sizeof(value));
            fprintf(file, "%s = %s\n", option->key, value);
        }
    }
}

static void print_text(const struct config_section *section, FILE *file)
{
    fprintf(file, "[%s]  %s\n", section->name, section->help);
    for (const struct option *option = section->options; option->key != NULL; option++) {
        char allowed[VALUE_BYTES];
        option_allowed(option, allowed, sizeof(allowed));
        fprintf(file, "  %s = %s\n      %s\n      %s\n", option->key, option->fallback, option->help, allowed);
    }
    fputc('\n', file);
}

static void print_markdown(const struct config_section *section, FILE *file)
{
    fprintf(file, "\n## [%s]\n\nHolds %s.\n\n| key | default | allowed | meaning |\n|---|---|---|---|\n", section->name,
            section->help);
    for (const struct option *option = section->options; option->key != NULL; option++) {
        char allowed[VALUE_BYTES];
        option_allowed(option, allowed, sizeof(allowed));
        const char *quote = option->fallback[0] == '\0' ? "" : "`";
        fprintf(file, "| `%s` | %s%s%s | %s | %s |\n", option->key, quote, option->fallback, quote, allowed,
                option->help);
    }
}

void config_print_options(FILE *file, bool markdown)
{
    if (markdown) {
        fputs("# Options\n\nEvery key of every section of a config file. This page is printed by "
              "`gswbench options --markdown`.\n",
              file);
    }
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        markdown ? print_markdown(section, file) : print_text(section, file);
    }
}
