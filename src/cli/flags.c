// SPDX-License-Identifier: MIT
// Parses a command's flags from its table, and prints the table as help.
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "gswbench/units.h"
#include "internal.h"

enum { FLAGS_MAX = 64 };

static const struct flag *find(const struct command *command, const char *name, size_t length)
{
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        if (flag->type != FLAG_OPERANDS && strlen(flag->name) == length && memcmp(flag->name, name, length) == 0) {
            return flag;
        }
    }
    return NULL;
}

static status unknown_flag(const struct command *command, const char *word)
{
    const char *names[FLAGS_MAX + 1] = {NULL};
    int         count                = 0;
    for (const struct flag *flag = command->flags; flag->name != NULL && count < FLAGS_MAX; flag++) {
        if (flag->type != FLAG_OPERANDS) {
            names[count++] = flag->name;
        }
    }
    const char *closest = text_closest(word, names);
    if (closest != NULL) {
        return fail_as(EXIT_USAGE, "unknown flag %s: did you mean %s?", word, closest);
    }
    return fail_as(EXIT_USAGE, "unknown flag %s: gswbench %s --help lists the flags", word, command->name);
}

static status append(struct text_list *list, const struct flag *flag, const char *text)
{
    if (list->count == LIST_ITEMS_MAX) {
        return fail_as(EXIT_USAGE, "%s is given more than %d times", flag->name, LIST_ITEMS_MAX);
    }
    list->items[list->count++] = text;
    return OK;
}

static status set(const struct flag *flag, const char *value, void *arguments, struct arena *arena)
{
    void *field = (char *)arguments + flag->offset;
    switch (flag->type) {
    case FLAG_SWITCH:
        *(bool *)field = true;
        return OK;
    case FLAG_TEXT:
        *(const char **)field = value;
        return OK;
    case FLAG_INTEGER:
        if (!units_parse_integer(value, field) || *(int64_t *)field < flag->minimum ||
            *(int64_t *)field > flag->maximum) {
            return fail_as(EXIT_USAGE, "%s %s: a whole number from %" PRId64 " to %" PRId64 " is needed", flag->name,
                           value, flag->minimum, flag->maximum);
        }
        return OK;
    case FLAG_OVERRIDE:
        return append(field, flag, arena_format(arena, "%s=%s", flag->target, value));
    default:
        return append(field, flag, value);
    }
}

static status take_operand(const struct command *command, const char *word, void *arguments)
{
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        if (flag->type == FLAG_OPERANDS) {
            return set(flag, word, arguments, NULL);
        }
    }
    return fail_as(EXIT_USAGE, "unexpected argument %s: gswbench %s takes flags only", word, command->name);
}

// Takes the flag at words[*place], its value after '=' or as the next word, and moves the place to its last word.
static status take_flag(const struct command *command, int count, char *const words[], int *place, void *arguments,
                        struct arena *arena)
{
    const char        *word   = words[*place];
    size_t             length = strcspn(word, "=");
    const struct flag *flag   = find(command, word, length);
    const char        *value  = word[length] == '=' ? word + length + 1 : NULL;
    if (flag == NULL) {
        return unknown_flag(command, word);
    }
    if (flag->type == FLAG_SWITCH) {
        return value == NULL ? set(flag, NULL, arguments, arena) : fail_as(EXIT_USAGE, "%s takes no value", flag->name);
    }
    if (value == NULL && *place + 1 == count) {
        return fail_as(EXIT_USAGE, "%s needs a value: %s", flag->name, flag->value);
    }
    return set(flag, value != NULL ? value : words[++*place], arguments, arena);
}

status flags_parse(const struct command *command, int count, char *const words[], void *arguments, struct arena *arena)
{
    for (int place = 0; place < count; place++) {
        if (words[place][0] == '-' && words[place][1] != '\0') {
            TRY(take_flag(command, count, words, &place, arguments, arena));
        } else {
            TRY(take_operand(command, words[place], arguments));
        }
    }
    return OK;
}

void flags_print_help(const struct command *command, FILE *file)
{
    const char *operands = "";
    int         width    = 0;
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        int length = (int)strlen(flag->name) + (flag->value == NULL ? 0 : 1 + (int)strlen(flag->value));
        width      = length > width ? length : width;
        operands   = flag->type == FLAG_OPERANDS ? flag->name : operands;
    }
    fprintf(file, "usage: gswbench %s [FLAG]...%s%s\n\n%s\n\n", command->name, operands[0] == '\0' ? "" : " ", operands,
            command->help);
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        fprintf(file, "  %s%s%-*s  %s\n", flag->name, flag->value == NULL ? "" : " ",
                width - (int)strlen(flag->name) - (flag->value == NULL ? 0 : 1), flag->value == NULL ? "" : flag->value,
                flag->help);
    }
}
