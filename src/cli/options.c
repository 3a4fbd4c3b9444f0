// SPDX-License-Identifier: MIT
// Runs the commands options and schema of gswbench. They print every option, the JSON Schemas, manual pages and
// completion scripts, all from the tables that the program itself uses. Also completes words of a shell's command line:
// the shell calls this program for candidates.
#include <string.h>

#include "gswbench/calibrate.h"
#include "gswbench/comparison.h"
#include "gswbench/doctor.h"
#include "gswbench/preflight.h"
#include "gswbench/result.h"
#include "gswbench/show.h"
#include "gswbench/suite.h"
#include "internal.h"

// Describes which candidates are printed. begun: the last word of the command line; only candidates that
// start with it are printed. before: the part of this word that precedes the candidate, such as "--flag=" in
// "--flag=value".
struct offer {
    const char *begun, *before;
};

static void offer_word(const struct offer *to, const char *word, const char *after)
{
    char text[512];
    snprintf(text, sizeof(text), "%s%s%s", to->before, word, after);
    if (strncmp(text, to->begun, strlen(to->begun)) == 0) {
        puts(text);
    }
}

static void offer_lines(const struct offer *to, char *lines)
{
    char *rest = NULL;
    for (char *line = lines; (line = strtok_r(line, "\n", &rest)) != NULL; line = NULL) {
        offer_word(to, line, "");
    }
}

static status offer_config(void *state, const char *name, const char *path)
{
    (void)path;
    offer_word(state, name, "");
    return OK;
}

// Offers the names of installed configurations.
static void offer_configs(struct offer *to)
{
    cli_visit_configs(offer_config, to);
}

static void offer_option(const struct offer *to, const struct option *option)
{
    struct text_buffer words = {.text = NULL};
    config_list_words(&words, option);
    if (words.length > 0) {
        offer_lines(to, words.text);
    }
    text_free(&words);
}

// Offers the names of options as "section.key=", and after the equals sign the values of this option.
static void offer_settings(const struct offer *to)
{
    const char  *typed  = to->begun + strlen(to->before);
    size_t       length = strcspn(typed, "=");
    char         known[256];
    struct offer below = {.begun = to->begun, .before = known};
    if (typed[length] == '=') {
        const struct config_section *section;
        const struct option         *option = config_find_option(typed, length, &section);
        snprintf(known, sizeof(known), "%s%.*s=", to->before, (int)length, typed);
        if (option != NULL) {
            offer_option(&below, option);
        }
        return;
    }
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        snprintf(known, sizeof(known), "%s%s.", to->before, section->name);
        for (const struct option *option = section->options; option->key != NULL; option++) {
            offer_word(&below, option->key, "=");
        }
    }
}

// Offers the words of a flag's value such as "text|markdown|csv". Offers nothing for a placeholder, which is in
// capitals, such as FILE.
static void offer_alternatives(const struct offer *to, const char *value)
{
    char words[128];
    text_copy(words, sizeof(words), value);
    if (strpbrk(words, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == NULL) {
        for (char *bar = strchr(words, '|'); bar != NULL; bar = strchr(bar, '|')) {
            *bar = '\n';
        }
        offer_lines(to, words);
    }
}

static void offer_value(struct offer *to, const struct flag *flag)
{
    bool                         is_model = strcmp(flag->name, "--model") == 0;
    const struct config_section *section;
    if (flag->type == FLAG_OVERRIDE) {
        offer_option(to, config_find_option(flag->target, strlen(flag->target), &section));
    } else if (strcmp(flag->name, "--set") == 0) {
        offer_settings(to);
    } else if (is_model || strcmp(flag->name, "--config") == 0) {
        offer_configs(to);
    } else {
        offer_alternatives(to, flag->value);
    }
    if (is_model) {
        offer_option(to, option_find(model_options, "preset"));
    }
}

static void offer_flags(const struct offer *to, const struct command *command)
{
    size_t             length = strcspn(to->begun, "=");
    const struct flag *begun  = to->begun[length] == '=' ? flags_find(command, to->begun, length) : NULL;
    if (begun != NULL && begun->value != NULL) {
        char before[128];
        snprintf(before, sizeof(before), "%.*s=", (int)length, to->begun);
        offer_value(&(struct offer){to->begun, before}, begun);
        return;
    }
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        if (flag->name[0] == '-') {
            offer_word(to, flag->name, "");
        }
    }
    offer_word(to, "--help", "");
}

static void offer_commands(const struct offer *to)
{
    for (int i = 0; cli_commands[i].name != NULL; i++) {
        offer_word(to, cli_commands[i].name, "");
    }
}

// Returns whether words without a flag name configurations. Otherwise the shell completes file names.
static bool takes_configs(const struct command *command)
{
    bool has_operands = false;
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        has_operands = has_operands || flag->type == FLAG_OPERANDS;
    }
    return has_operands ? command->run == command_configs : flags_find(command, "--config", strlen("--config")) != NULL;
}

void completion_print_words(int count, char *const words[])
{
    struct offer          to       = {.begun = count > 0 ? words[count - 1] : "", .before = ""};
    const struct command *named    = count > 1 ? cli_find_command(words[0]) : NULL;
    const struct command *command  = named != NULL ? named : cli_find_command("run");
    const char           *previous = count > 1 ? words[count - 2] : "";
    const struct flag    *flag     = flags_find(command, previous, strlen(previous));
    if (flag != NULL && flag->value != NULL) {
        offer_value(&to, flag);
    } else if (to.begun[0] == '-') {
        offer_flags(&to, command);
    } else if (count < 2) {
        offer_commands(&to);
        offer_word(&to, "help", "");
        offer_configs(&to);
    } else if (strcmp(words[0], "help") == 0) {
        offer_commands(&to);
    } else if (takes_configs(command)) {
        offer_configs(&to);
    }
}

// Bash splits words at each "=", and replaces only the part after the last "=". So the script removes from each
// candidate the text up to the last "=" of the typed word.
static const char bash[] = "# Completion of gswbench in bash, by the program that is typed.\n"
                           "_gswbench() {\n"
                           "    local line=${COMP_LINE:0:COMP_POINT} words word last\n"
                           "    read -ra words <<<\"$line\"\n"
                           "    [[ $line != *[[:space:]] ]] || words+=(\"\")\n"
                           "    last=${words[-1]}\n"
                           "    COMPREPLY=()\n"
                           "    while IFS= read -r word; do\n"
                           "        COMPREPLY+=(\"${word#\"${last%\"${last##*=}\"}\"}\")\n"
                           "    done < <(\"${words[0]}\" complete \"${words[@]:1}\" 2>/dev/null)\n"
                           "    [[ ${#COMPREPLY[@]} -ne 1 || $COMPREPLY != *= ]] || compopt -o nospace 2>/dev/null\n"
                           "}\n"
                           "complete -o default -F _gswbench gswbench\n";

static const char zsh[] = "#compdef gswbench\n"
                          "# Completion of gswbench in zsh, by the program that is typed.\n"
                          "_gswbench() {\n"
                          "    local -a found\n"
                          "    found=(${(f)\"$(\"${words[1]}\" complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"})\n"
                          "    compadd -S '' -- ${(M)found:#*=}\n"
                          "    compadd -- ${found:#*=}\n"
                          "    (( $#found )) || _files\n"
                          "}\n"
                          "_gswbench \"$@\"\n";

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
        const char *shell  = options->completion;
        const char *script = strcmp(shell, "bash") == 0 ? bash : strcmp(shell, "zsh") == 0 ? zsh : NULL;
        if (script == NULL) {
            return fail_as(EXIT_USAGE, "--completion %s: allowed are bash, zsh", shell);
        }
        fputs(script, stdout);
        return OK;
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
