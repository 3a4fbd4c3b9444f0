// SPDX-License-Identifier: MIT
// Parses command-line flags by a command's table, and prints the table as help.
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "gswbench/number.h"
#include "internal.h"

enum { FLAGS_MAX = 64 };

static const char CONFIG[] = "--config";

// State of the parser: the words of the command line, the current one, and the arguments that it fills.
struct parser {
    const struct command *command;
    int                   count, place;
    char *const          *words;
    struct arguments     *arguments;
    struct arena         *arena;
};

const struct flag *flags_find(const struct command *command, const char *name, size_t length)
{
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        if (flag->name[0] == '-' && strlen(flag->name) == length && memcmp(flag->name, name, length) == 0) {
            return flag;
        }
    }
    return NULL;
}

// Returns "SECTION.KEY" of the option with the name of this flag, or NULL.
static const char *find_key(const struct parser *parser, const char *flag)
{
    char word[64];
    text_copy(word, sizeof(word), flag + strspn(flag, "-"));
    for (char *dash = strchr(word, '-'); dash != NULL; dash = strchr(dash, '-')) {
        *dash = '_';
    }
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        if (section->options != fault_options && option_find(section->options, word) != NULL) {
            return arena_format(parser->arena, "%s.%s", section->name, word);
        }
    }
    return NULL;
}

// Returns the --set argument that does what an unknown flag means, or NULL if there is none. The flag has the name of
// an option of gswbench, or it is a flag of another program for which gswbench has an option.
static const char *find_setting(const struct parser *parser, const char *flag)
{
    const char *key = find_key(parser, flag);
    key             = key != NULL ? key : import_find(flag);
    if (key == NULL || flags_find(parser->command, "--set", strlen("--set")) == NULL) {
        return NULL;
    }
    const char                  *equals = strchr(parser->words[parser->place], '=');
    const char                  *next   = parser->place + 1 < parser->count ? parser->words[parser->place + 1] : "-";
    const char                  *value  = equals != NULL ? equals + 1 : next[0] != '-' ? next : "VALUE";
    const struct config_section *section;
    const struct option         *option = config_find_option(key, strlen(key), &section);
    if (option != NULL && option->type == OPTION_BOOLEAN && strcmp(value, "VALUE") == 0) {
        value = "yes";
    }
    return arena_format(parser->arena, "%s=%s", key, value);
}

// Returns this command's flag for a flag that other programs have, or NULL.
static const char *find_synonym(const struct parser *parser, const char *word)
{
    static const struct {
        const char *words, *flag;
    } synonyms[] = {
        {"-n -np --np --gpus --num-gpus --nproc --nproc-per-node --nodes --nnodes --world-size --rank", "--ranks"},
        {"--model -c", "--config"},
        {"--config", "--model"},
        {"--dtype", "--precision"},
        {"--output -o", "--out"},
        {"--output --out", "-o"},
        {"--iters --iterations --max-steps --train-iters --num-steps", "--steps"},
        {"--device", "--gpu"},
        {"--duration", "--time-limit"},
        {"--csv --format", "--json"}};
    for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++) {
        const char *flag = synonyms[i].flag;
        if (text_has_word(synonyms[i].words, word) && flags_find(parser->command, flag, strlen(flag)) != NULL) {
            return flag;
        }
    }
    return NULL;
}

// Returns advice for a flag that this command does not have, or NULL.
static const char *find_advice(const char *word)
{
    static const struct {
        const char *word, *advice;
    } advices[] = {
        {"--cpu", "--backend host computes on the processor"},
        {"--fp8", "use --precision fp8"},
        {"--bf16", "use --precision bf16"},
        {"--fp32", "use --precision fp32"},
        {"--fp16", "use --precision bf16; there is no fp16"},
        {"--dry-run", "gswbench check and gswbench plan run nothing"},
        {"--color", "colours follow the terminal and NO_COLOR"},
        {"--gres", "give it to Slurm: srun --gres=gpu:8 gswbench ..."},
        {"--fail-on", "--fail-above step=SECONDS judges a run; gswbench compare has --fail-on slower:2%"},
        {"--nsys", "use --profile 20-25; the run prints the nsys command"},
        {"--nsight", "use --profile 20-25; the run prints the nsys command"},
        {"--nccl-trace", "transfers/RANK.csv of a run has every collective; NCCL_DEBUG=INFO prints NCCL's log"},
        {"--verbose", "gswbench run --verbose and gswbench report print everything"}};
    for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
        if (strcmp(word, advices[i].word) == 0) {
            return advices[i].advice;
        }
    }
    return NULL;
}

static status unknown_flag(const struct parser *parser)
{
    const struct command *command = parser->command;
    const char           *start   = parser->words[parser->place];
    const char           *word    = arena_format(parser->arena, "%.*s", (int)strcspn(start, "="), start);
    const char           *synonym = find_synonym(parser, word);
    const char           *advice  = find_advice(word);
    const char           *setting = find_setting(parser, word);
    if (advice != NULL) {
        return fail_as(EXIT_USAGE, "unknown flag %s: %s", word, advice);
    }
    if (synonym != NULL) {
        return fail_as(EXIT_USAGE, "unknown flag %s: did you mean %s?", word, synonym);
    }
    if (setting != NULL) {
        return fail_as(EXIT_USAGE, "unknown flag %s: did you mean --set %s?", word, setting);
    }
    const char *names[FLAGS_MAX + 1] = {NULL};
    int         count                = 0;
    for (const struct flag *flag = command->flags; flag->name != NULL && count < FLAGS_MAX; flag++) {
        if (flag->name[0] == '-') {
            names[count++] = flag->name;
        }
    }
    const char *closest = text_closest(word, names);
    if (closest != NULL) {
        return fail_as(EXIT_USAGE, "unknown flag %s: did you mean %s?", word, closest);
    }
    return fail_as(EXIT_USAGE, "unknown flag %s: gswbench %s --help lists the flags", word, command->name);
}

static status append_text(struct text_list *list, const struct flag *flag, const char *text)
{
    if (list->count == TEXT_LIST_MAX) {
        return fail_as(EXIT_USAGE, "%s is given more than %d times", flag->name, TEXT_LIST_MAX);
    }
    list->items[list->count++] = text;
    return OK;
}

// Sets the configuration from --config or an operand. Fails if there are two.
static status set_config(const struct parser *parser, const char *value, const char **name)
{
    if (value[0] == '\0') {
        return fail_as(EXIT_USAGE, "the name of the config is empty: gswbench configs lists the installed ones");
    }
    if (*name != NULL) {
        return fail_as(EXIT_USAGE, "two configs, %s and %s: name one", *name, value);
    }
    *name = value;
    return strcmp(value, "-") == 0 ? cli_read_stdin(name, parser->arena) : OK;
}

static status set_flag(const struct parser *parser, const struct flag *flag, const char *value)
{
    void   *field = (char *)parser->arguments + flag->offset;
    int64_t number;
    if (strcmp(flag->name, CONFIG) == 0) {
        return set_config(parser, value, field);
    }
    switch (flag->type) {
    case FLAG_SWITCH:
        *(bool *)field = true;
        return OK;
    case FLAG_TEXT:
        *(const char **)field = value;
        return OK;
    case FLAG_INTEGER:
        if (!number_parse_integer(value, &number) || number < flag->minimum || number > flag->maximum) {
            return fail_as(EXIT_USAGE, "%s %s: expected an integer from %" PRId64 " to %" PRId64, flag->name, value,
                           flag->minimum, flag->maximum);
        }
        *(int64_t *)field = number;
        return OK;
    case FLAG_OVERRIDE:
        value = arena_format(parser->arena, "%s %s=%s", flag->name, flag->target, value != NULL ? value : "yes");
        break;
    case FLAG_LIST:
    case FLAG_OPERANDS:
    case FLAG_HEADING:
        break;
    }
    return append_text(field, flag, value);
}

static status take_operand(const struct parser *parser)
{
    const char *word = parser->words[parser->place];
    for (const struct flag *flag = parser->command->flags; flag->name != NULL; flag++) {
        if (flag->type == FLAG_OPERANDS) {
            return set_flag(parser, flag, word);
        }
    }
    const struct flag *config = flags_find(parser->command, CONFIG, strlen(CONFIG));
    if (config == NULL) {
        return fail_as(EXIT_USAGE, "unexpected argument %s: gswbench %s takes flags only", word, parser->command->name);
    }
    return set_flag(parser, config, word);
}

// Parses a flag and its value. The value follows '=' or is the next word.
static status take_flag(struct parser *parser)
{
    const char        *word   = parser->words[parser->place];
    size_t             length = strcspn(word, "=");
    const struct flag *flag   = flags_find(parser->command, word, length);
    const char        *value  = word[length] == '=' ? word + length + 1 : NULL;
    if (flag == NULL) {
        return unknown_flag(parser);
    }
    if (flag->value == NULL) {
        return value == NULL ? set_flag(parser, flag, NULL) : fail_as(EXIT_USAGE, "%s takes no value", flag->name);
    }
    if (value == NULL && parser->place + 1 == parser->count) {
        return fail_as(EXIT_USAGE, "%s needs a value: %s", flag->name, flag->value);
    }
    return set_flag(parser, flag, value != NULL ? value : parser->words[++parser->place]);
}

status flags_parse(const struct command *command, int count, char *const words[], struct arguments *arguments,
                   struct arena *arena)
{
    struct parser parser = {.command = command, .count = count, .words = words, .arguments = arguments, .arena = arena};
    for (; parser.place < count; parser.place++) {
        const char *word = words[parser.place];
        TRY(word[0] == '-' && word[1] != '\0' ? take_flag(&parser) : take_operand(&parser));
    }
    return OK;
}

enum { HELP_COLUMNS = 80, HELP_LEFT_MAX = 28 };

// Returns the width of "--flag VALUE".
static int flag_width(const struct flag *flag)
{
    return flag->type == FLAG_HEADING
               ? 0
               : (int)strlen(flag->name) + (flag->value == NULL ? 0 : 1 + (int)strlen(flag->value));
}

static void print_flag(const struct flag *flag, int width)
{
    if (flag->type == FLAG_HEADING) {
        printf("\n%s:\n", flag->name);
        return;
    }
    int printed =
        printf("  %s%s%s", flag->name, flag->value == NULL ? "" : " ", flag->value == NULL ? "" : flag->value);
    char margin[HELP_LEFT_MAX + 8];
    int  column = snprintf(margin, sizeof(margin), "%*s", width + 4, "");
    if (printed + 2 > column) {
        putchar('\n');
        printed = 0;
    }
    printf("%*s", column - printed, "");
    text_print_wrapped(stdout, flag->help, column, HELP_COLUMNS, margin);
}

void flags_print_help(const struct command *command)
{
    const char *operands = "";
    int         width    = 0;
    bool        grouped  = false;
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        int length = flag_width(flag);
        width      = length > width && length <= HELP_LEFT_MAX ? length : width;
        operands   = flag->type == FLAG_OPERANDS ? flag->name : operands;
        grouped    = grouped || flag->type == FLAG_HEADING;
    }
    if (operands[0] == '\0' && flags_find(command, CONFIG, strlen(CONFIG)) != NULL) {
        operands = "[NAME|FILE]";
    }
    printf("usage: gswbench %s%s%s [FLAG]...\n\n%s\n%s", command->name, operands[0] == '\0' ? "" : " ", operands,
           command->help, grouped ? "" : "\n");
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        print_flag(flag, width);
    }
    printf("\nExample:\n    %s\n", command->example);
}
