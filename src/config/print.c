// SPDX-License-Identifier: MIT
// Prints a config as INI, and the table of options as text, Markdown and manual page.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

enum { VALUE_BYTES = OPTION_PATH_BYTES };

static const char introduction[] =
    "# Options\n"
    "\n"
    "Every key of every section of a config file. This page is printed by `gswbench options --markdown`.\n"
    "\n"
    "A config is an INI file: `[section]` lines and `key = value` lines; `;` and `#` start a comment line, ` ;` a\n"
    "comment after a value. Integers may be written 8192, 8_192, 8Ki or 8k (both 8192) or 1e6. `[ORIGIN SPREAD%]`\n"
    "is an optional origin (spec, prior, fit, measured) and spread (one standard deviation): `0.72 prior 5%`. An\n"
    "unknown key, a value out of range or a key set twice is an error. All errors of a file are reported at once.\n"
    "\n"
    "Later values win: defaults; the files that `[model] preset`, `[hardware] profile` and `[software] profile` name;\n"
    "the config; its matching `[when ...]` sections, in file order; `--set section.key=value`. A name with `/` is a\n"
    "path, relative to the file that contains it; with `--set`, relative to the current folder.\n"
    "\n"
    "    [when ranks=512 precision=fp8]    ; any of ranks, precision, gpu and variant\n"
    "    parallel.fsdp = 128\n"
    "    published.step_seconds = 5.043\n"
    "\n"
    "`gpu` is the name of a [hardware] profile. `variant` names a variant of the config, e.g. compiled. `--gpu b200`\n"
    "and `--variant compiled` select the rows of that GPU or variant.\n"
    "\n"
    "`global_batch` = `micro_batch` x replicas x `accumulation`: any two determine the third. If a file sets all\n"
    "three and `--set` changes one, the first of `accumulation`, `global_batch` and `micro_batch` without a `--set`\n"
    "is recomputed.\n"
    "\n"
    "An override of `[model]`, `[parallel]`, `[train]` or `[precision]` defines a different step, so the published\n"
    "step time and MFU are omitted. `precision.compute` alone selects the row of that precision.\n";

// Prints an option's value. Makes a relative path absolute, because it would otherwise start from the folder of the
// written file.
static void print_value(const struct option *option, const void *section, char *text, size_t bytes)
{
    char   folder[VALUE_BYTES];
    size_t length;
    option_print(option, section, text, bytes);
    if (option_names_file(option) && text[0] != '/' && strchr(text, '/') != NULL &&
        getcwd(folder, sizeof(folder)) != NULL && (length = strlen(folder)) + 1 + strlen(text) < option->size) {
        memmove(text + length + 1, text, strlen(text) + 1);
        memcpy(text, folder, length);
        text[length] = '/';
    }
}

void config_write(const struct config *config, FILE *file)
{
    char value[VALUE_BYTES];
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        fprintf(file, "%s[%s]\n", section == config_sections ? "" : "\n", section->name);
        for (const struct option *option = section->options; option->key != NULL; option++) {
            print_value(option, (const char *)config + section->offset, value, sizeof(value));
            fprintf(file, "%s = %s\n", option->key, value);
        }
    }
}

static void print_section(const struct config_section *section, const struct config *config, const struct config *plain,
                          bool is_short, FILE *file)
{
    bool is_begun = false;
    // The sections from [model] to [run] are printed in full, with defaults as comments; of others, only changed
    // options.
    bool is_in_full = section->offset <= offsetof(struct config, run);
    for (const struct option *option = section->options; option->key != NULL; option++) {
        char value[VALUE_BYTES], fallback[VALUE_BYTES], allowed[VALUE_BYTES], comment[3 * VALUE_BYTES];
        print_value(option, (const char *)config + section->offset, value, sizeof(value));
        print_value(option, (const char *)plain + section->offset, fallback, sizeof(fallback));
        bool is_plain = strcmp(value, fallback) == 0;
        if (is_plain && (is_short || !is_in_full)) {
            continue;
        }
        if (!is_begun && is_short) {
            fprintf(file, "\n[%s]\n", section->name);
        } else if (!is_begun) {
            fprintf(file, "\n# %s.\n[%s]\n", section->help, section->name);
        }
        is_begun = true;
        if (is_short) {
            fprintf(file, "%s = %s\n", option->key, value);
            continue;
        }
        option_allowed(option, allowed, sizeof(allowed));
        snprintf(comment, sizeof(comment), "%s (%s)", option->help, allowed);
        text_print_wrapped(file, comment, fprintf(file, "# "), 111, "# ");
        fprintf(file, "%s%s = %s\n", is_plain ? "; " : "", option->key, value);
    }
}

void config_write_commented(const struct config *config, bool is_short, FILE *file)
{
    struct text_buffer ignored  = {.text = NULL};
    struct document    document = {.errors = &ignored};
    struct config     *copy     = memory_allocate(sizeof(*copy));
    struct config     *plain    = memory_allocate(sizeof(*plain));
    *copy                       = *config;
    config_set_defaults(plain);
    // The file gets the values of the model's preset, so it must not name the preset.
    option_set(option_find(model_options, "preset"), &copy->model, plain->model.preset);
    if (copy->run.warmup == run_warmup(copy->run.steps)) {
        copy->run.warmup = plain->run.warmup;
    }
    // The file has no published result, but its MFU counts FLOPs by the convention of the published one.
    copy->published = plain->published;
    memcpy(&copy->published.convention, &config->published.convention,
           offsetof(struct published_config, step_seconds) - offsetof(struct published_config, convention));
    document_override(&document, arena_format(&document.arena, "hardware.profile=%s", config->hardware.profile));
    document_override(&document, arena_format(&document.arena, "software.profile=%s", config->software.profile));
    preset_apply_all(plain, &document, (struct selection){.ranks = -1, .compute = -1});
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        print_section(section, copy, plain, is_short, file);
    }
    free(copy);
    free(plain);
    document_free(&document);
    text_free(&ignored);
}

static void print_text(const struct config_section *section, FILE *file)
{
    static const char margin[] = "      ";
    fprintf(file, "[%s]  %s\n", section->name, section->help);
    for (const struct option *option = section->options; option->key != NULL; option++) {
        char allowed[VALUE_BYTES];
        option_allowed(option, allowed, sizeof(allowed));
        int  printed = fprintf(file, "  %s = %s", option->key, option->fallback);
        bool fits    = (printed > 34 ? printed : 34) + 2 + (int)strlen(allowed) <= 80;
        if (fits) {
            fprintf(file, "%*s  %s\n", printed > 34 ? 0 : 34 - printed, "", allowed);
        } else {
            fputc('\n', file);
            text_print_wrapped(file, allowed, fprintf(file, "%s", margin), 80, margin);
        }
        text_print_wrapped(file, option->help, fprintf(file, "%s", margin), 80, margin);
    }
    fputc('\n', file);
}

static void print_markdown(const struct config_section *section, FILE *file)
{
    fprintf(file, "\n## [%s]\n\n%s.\n\n| key | default | allowed | meaning |\n|---|---|---|---|\n", section->name,
            section->help);
    for (const struct option *option = section->options; option->key != NULL; option++) {
        char allowed[VALUE_BYTES];
        option_allowed(option, allowed, sizeof(allowed));
        if (option->type == OPTION_TEXT && option->names != NULL) {    // so a new name does not change the page
            snprintf(allowed, sizeof(allowed), "one of those that `gswbench options` lists");
        }
        const char *quote = option->fallback[0] == '\0' ? "" : "`";
        fprintf(file, "| `%s` | %s%s%s | %s | %s |\n", option->key, quote, option->fallback, quote, allowed,
                option->help);
    }
}

// Prints the introduction of docs/options.md as roff: `...` in bold, and indented lines verbatim.
static void print_manual_introduction(FILE *file)
{
    fputs(".TH GSWBENCH 5 \"\" gswbench \"File Formats\"\n.SH NAME\n"
          "gswbench \\- configuration files of gswbench(1)\n.SH DESCRIPTION\n",
          file);
    bool is_bold = false;
    for (const char *line = strchr(introduction, '\n') + 2; *line != '\0'; line += strcspn(line, "\n") + 1) {
        size_t length     = strcspn(line, "\n");
        bool   is_example = strncmp(line, "    ", 4) == 0;
        fputs(length == 0 ? ".PP" : is_example ? ".nf\n" : "", file);
        for (size_t at = 0; at < length;) {
            size_t plain = strcspn(line + at, "`\n");
            text_print_roff(file, line + at, plain);
            at += plain;
            if (at < length) {
                is_bold = !is_bold;
                fputs(is_bold ? "\\fB" : "\\fR", file);
                at++;
            }
        }
        fputs(is_example ? "\n.fi\n" : "\n", file);
    }
}

static void print_manual(const struct config_section *section, FILE *file)
{
    fprintf(file, ".SH [%s]\n%s.\n", section->name, section->help);
    for (const struct option *option = section->options; option->key != NULL; option++) {
        char allowed[VALUE_BYTES], meaning[3 * VALUE_BYTES];
        option_allowed(option, allowed, sizeof(allowed));
        fprintf(file, ".TP\n\\fB%s\\fR = ", option->key);
        text_print_roff(file, option->fallback, strlen(option->fallback));
        snprintf(meaning, sizeof(meaning), "\n%s (%s).\n", option->help, allowed);
        text_print_roff(file, meaning, strlen(meaning));
    }
}

bool config_print_section(FILE *file, const char *name, const char **closest)
{
    const struct config_section *section = section_find(name);
    *closest                             = section_suggest(name);
    if (section != NULL) {
        print_text(section, file);
    }
    return section != NULL;
}

void config_print_options(FILE *file, enum options_form form)
{
    static void (*const print[])(const struct config_section *, FILE *) = {
        [OPTIONS_TEXT] = print_text, [OPTIONS_MARKDOWN] = print_markdown, [OPTIONS_MANUAL] = print_manual};
    if (form == OPTIONS_MARKDOWN) {
        fputs(introduction, file);
    } else if (form == OPTIONS_MANUAL) {
        print_manual_introduction(file);
    }
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        print[form](section, file);
    }
    if (form == OPTIONS_MANUAL) {
        fputs(".SH SEE ALSO\n.BR gswbench (1)\n", file);
    }
}
