// SPDX-License-Identifier: MIT
// Completes words of a shell's command line. The shell calls this program for candidates, so these always match its
// commands, flags, options and installed configurations.
#include <string.h>

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

bool completion_print(const char *shell)
{
    const char *script = strcmp(shell, "bash") == 0 ? bash : strcmp(shell, "zsh") == 0 ? zsh : NULL;
    if (script != NULL) {
        fputs(script, stdout);
    }
    return script != NULL;
}
