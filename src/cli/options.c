// SPDX-License-Identifier: MIT
// Runs the commands options and schema of gswbench. They print every option, the JSON Schemas, manual pages and
// completion scripts, all from the tables that the program itself uses.
#include <string.h>

#include "gswbench/calibrate.h"
#include "gswbench/comparison.h"
#include "gswbench/doctor.h"
#include "gswbench/preflight.h"
#include "gswbench/result.h"
#include "gswbench/show.h"
#include "gswbench/suite.h"
#include "internal.h"

static void print_roff(const char *text)
{
    text_print_roff(stdout, text, strlen(text));
}

static void print_flag_roff(const struct flag *flag)
{
    fputs(".TP\n\\fB", stdout);
    print_roff(flag->name);
    fputs("\\fR", stdout);
    if (flag->value != NULL) {
        fputs(" \\fI", stdout);
        print_roff(flag->value);
        fputs("\\fR", stdout);
    }
    fputc('\n', stdout);
    print_roff(flag->help);
    fputs(".\n", stdout);
}

static void print_manual(void)
{
    fputs(".TH GSWBENCH 1 \"\" gswbench \"User Commands\"\n"
          ".SH NAME\n"
          "gswbench \\- benchmark of LLM training steps\n"
          ".SH SYNOPSIS\n"
          ".B gswbench\n"
          "[\\fICOMMAND\\fR] [\\fIFLAG\\fR]...\n"
          ".SH DESCRIPTION\n"
          ".B gswbench\n"
          "runs the training step of a published or custom config on all ranks that mpirun or srun starts. It reports "
          "the\n"
          "step time, where the time goes, and how it compares with published and predicted step times. The default "
          "command is run.\n"
          ".SH COMMANDS\n",
          stdout);
    for (int i = 0; cli_commands[i].name != NULL; i++) {
        const struct command *command = &cli_commands[i];
        printf(".SS %s\n", command->name);
        print_roff(command->help);
        fputs(".\n", stdout);
        for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
            if (flag->type != FLAG_HEADING) {
                print_flag_roff(flag);
            }
        }
        fputs(".PP\nExample:\n.PP\n.nf\n", stdout);
        print_roff(command->example);
        fputs("\n.fi\n", stdout);
    }
    fputs(".SH EXIT STATUS\n"
          "0: the result is VALID.\n"
          ".I method.md\n"
          "lists the other exit codes.\n"
          ".SH FILES\n"
          "In the installation prefix,\n"
          ".I share/gswbench/configs\n"
          "contains the installed configs (GSWBENCH_CONFIGS selects another folder), and\n"
          ".I share/doc/gswbench\n"
          "the documents.\n"
          ".SH SEE ALSO\n"
          ".BR gswbench (5),\n"
          ".BR mpirun (1),\n"
          ".BR srun (1)\n",
          stdout);
}

const struct flag options_flags[] = {
    OPERANDS(words, "[SECTION]", "print these sections only"),
    SWITCH_FLAG(markdown, "--markdown", "print Markdown, as in docs/options.md"),
    TEXT_FLAG(manual, "--man", "1|5", "print a manual page: 1: commands and flags, 5: options"),
    TEXT_FLAG(completion, "--completion", "bash|zsh", "print a shell completion script"),
    END_FLAGS,
};

status command_options(const struct arguments *options)
{
    if (options->completion != NULL) {
        return completion_print(options->completion)
                   ? OK
                   : fail_as(EXIT_USAGE, "--completion %s: allowed are bash, zsh", options->completion);
    }
    for (int i = 0; i < options->words.count; i++) {
        const char *closest;
        if (!config_print_section(stdout, options->words.items[i], &closest)) {
            return fail_as(EXIT_USAGE, "there is no section %s%s%s%s", options->words.items[i],
                           closest != NULL ? ": did you mean \"" : "", closest != NULL ? closest : "",
                           closest != NULL ? "\"?" : "");
        }
    }
    if (options->words.count > 0) {
        return OK;
    }
    if (options->manual == NULL) {
        config_print_options(stdout, options->markdown ? OPTIONS_MARKDOWN : OPTIONS_TEXT);
    } else if (strcmp(options->manual, "1") == 0) {
        print_manual();
    } else if (strcmp(options->manual, "5") == 0) {
        config_print_options(stdout, OPTIONS_MANUAL);
    } else {
        return fail_as(EXIT_USAGE, "--man %s: allowed are 1, 5", options->manual);
    }
    return OK;
}

const struct flag schema_flags[] = {
    OPERANDS(words, "NAME", "print the schema of this document; default: list the names"),
    END_FLAGS,
};

static const struct document {
    const char              *name, *help;
    const struct json_field *fields;    // NULL: the schema of a result
} documents[] = {
    {"run", "result.json, run --json, report --format json", NULL},
    {"check", "check --json", show_check_fields},
    {"plan", "plan --json", show_plan_fields},
    {"predict", "predict --json", show_predict_fields},
    {"sweep", "predict --sweep --json", show_sweep_fields},
    {"configs", "configs --json", show_configs_fields},
    {"atlas", "atlas --json", show_atlas_fields},
    {"compare", "compare --json", comparison_fields},
    {"compare-several", "compare --json of more than two", comparisons_fields},
    {"table", "table --format json", table_fields},
    {"history", "table --history --format json", history_fields},
    {"calibrate", "calibrate --json", calibrate_fields},
    {"preflight", "preflight.json, preflight --json", preflight_fields},
    {"accept", "accept.json", accept_fields},
    {"suite", "suite.json, suite --json", suite_fields},
    {"doctor", "doctor --json", doctor_fields},
    {"mlperf", "report --mlperf --json", show_mlperf_fields},
    {"trace", "report --trace --json", show_trace_fields},
};
enum { DOCUMENTS = sizeof(documents) / sizeof(documents[0]) };

static void print_schema(const struct document *document)
{
    json_t *schema = document->fields == NULL ? result_schema() : json_schema(document->fields), *whole = json_object();
    json_object_set_new(whole, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set_new(whole, "title", json_string(document->help));
    json_object_update(whole, schema);
    json_decref(schema);
    show_json(whole);
}

static status find_document(const char *name, const struct document **found)
{
    const char *names[DOCUMENTS + 1] = {NULL};
    for (int i = 0; i < DOCUMENTS; i++) {
        names[i] = documents[i].name;
        if (strcmp(name, names[i]) == 0) {
            *found = &documents[i];
            return OK;
        }
    }
    const char *closest = text_closest(name, names);
    return closest != NULL ? fail_as(EXIT_USAGE, "%s: no such document: did you mean %s?", name, closest)
                           : fail_as(EXIT_USAGE, "%s: no such document: gswbench schema lists them", name);
}

status command_schema(const struct arguments *chosen)
{
    const struct document *document = NULL;
    if (chosen->words.count > 1) {
        return fail_as(EXIT_USAGE, "schema takes one name, not %d", chosen->words.count);
    }
    if (chosen->words.count == 1) {
        TRY(find_document(chosen->words.items[0], &document));
        print_schema(document);
        return OK;
    }
    for (int i = 0; i < DOCUMENTS; i++) {
        printf("%-15s  %s\n", documents[i].name, documents[i].help);
    }
    return OK;
}
