// SPDX-License-Identifier: MIT
// Parses and prints the values of options, as the rows of their table describe them.
#include "gswbench/option.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gswbench/fatal.h"
#include "gswbench/number.h"
#include "gswbench/text.h"

const char *const option_auto[] = {"auto", NULL};

static const char *const boolean_names[] = {"no", "yes", "false", "true", "off", "on", "0", "1", NULL};

struct quantity *option_quantity(const struct option *option, void *section)
{
    return (struct quantity *)(void *)((char *)section + option->offset);
}

const struct option *option_find(const struct option *options, const char *key)
{
    for (; options->key != NULL; options++) {
        if (strcmp(options->key, key) == 0) {
            return options;
        }
    }
    return NULL;
}

const char *option_suggest(const struct option *options, const char *key)
{
    const char *keys[128] = {NULL};
    for (size_t i = 0; options[i].key != NULL; i++) {
        assert(i + 1 < sizeof(keys) / sizeof(keys[0]));
        keys[i] = options[i].key;
    }
    return text_closest(key, keys);
}

const char *const *option_words(const struct option *option)
{
    static const char *const none[] = {NULL}, *const yes_or_no[] = {"no", "yes", NULL};
    return option->type == OPTION_BOOLEAN ? yes_or_no : option->names != NULL ? option->names : none;
}

// Writes names as a list. last: the separator before the last name, such as " or " for "a, b or c".
static void list_names(const char *const *names, const char *last, char *text, size_t bytes)
{
    text[0] = '\0';
    for (size_t i = 0, used = 0; names[i] != NULL && used < bytes; i++) {
        const char *separator = i == 0 ? "" : names[i + 1] == NULL ? last : ", ";
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", separator, names[i]);
    }
}

void option_allowed(const struct option *option, char *text, size_t bytes)
{
    char names[256];
    switch (option->type) {
    case OPTION_INTEGER:
        snprintf(text, bytes, "an integer in %.0f..%.0f%s", option->minimum, option->maximum,
                 option->names != NULL ? ", or auto" : "");
        break;
    case OPTION_REAL:
        snprintf(text, bytes, "a number in %g..%g", option->minimum, option->maximum);
        break;
    case OPTION_PERCENT:
        snprintf(text, bytes, "a share in %g%%..%g%%, such as 0.5%%", option->minimum, option->maximum);
        break;
    case OPTION_QUANTITY:
        snprintf(text, bytes, "a number in %g..%g [ORIGIN SPREAD%%]", option->minimum, option->maximum);
        break;
    case OPTION_BOOLEAN:
        snprintf(text, bytes, "yes or no");
        break;
    case OPTION_CHOICE:
        list_names(option->names, " or ", text, bytes);
        break;
    case OPTION_SET:
        list_names(option->names, ", ", names, sizeof(names));
        snprintf(text, bytes, "none, or some of %s", names);
        break;
    case OPTION_TEXT:
        if (option->names != NULL) {
            list_names(option->names, " or ", text, bytes);
            break;
        }
        snprintf(text, bytes, "printable text of up to %zu bytes, without \" ;\"", option->size - 1);
        break;
    }
}

static int64_t find_name(const char *const *names, const char *word, size_t length)
{
    for (int64_t i = 0; names[i] != NULL; i++) {
        if (strlen(names[i]) == length && memcmp(names[i], word, length) == 0) {
            return i;
        }
    }
    return -1;
}

static int64_t auto_value(const struct option *option)
{
    return (int64_t)option->minimum - 1;
}

static bool counts_seconds(const struct option *option)
{
    size_t length = strlen(option->key);
    return strcmp(option->key, "time_limit") == 0 || (length > 8 && strcmp(option->key + length - 8, "_seconds") == 0);
}

// Parses a duration: "90", "90s", "5m", "2h", "1d".
static bool parse_seconds(const char *text, int64_t *value)
{
    static const char    units[]   = "smhd";
    static const int64_t seconds[] = {1, 60, 3600, 86400};
    char                 number[32];
    size_t               length = strlen(text);
    const char          *unit   = length > 0 ? strchr(units, text[length - 1]) : NULL;
    if (unit == NULL || length >= sizeof(number)) {
        return number_parse_integer(text, value);
    }
    snprintf(number, sizeof(number), "%.*s", (int)length - 1, text);
    if (!number_parse_integer(number, value) || llabs(*value) > INT64_MAX / 86400) {
        return false;
    }
    *value *= seconds[unit - units];
    return true;
}

static bool set_integer(const struct option *option, int64_t *field, const char *text)
{
    int64_t value;
    if (option->names != NULL && strcmp(text, option->names[0]) == 0) {
        value = auto_value(option);
    } else if (!(counts_seconds(option) ? parse_seconds(text, &value) : number_parse_integer(text, &value)) ||
               (double)value < option->minimum || (double)value > option->maximum) {
        return false;
    }
    *field = value;
    return true;
}

static bool set_real(const struct option *option, double *field, const char *text)
{
    double value;
    bool   is_read =
        option->type == OPTION_PERCENT ? number_parse_percent(text, &value) : number_parse_real(text, &value);
    if (!is_read || value < option->minimum || value > option->maximum) {
        return false;
    }
    *field = value;
    return true;
}

// Returns whether a value seems to lack its prefix, as in 989 instead of 989T. Options with a maximum of 1e15 or more
// are rates per second, and no device has a rate below a million per second.
static bool is_too_small(const struct option *option, double value)
{
    return option->maximum >= 1e15 && value > 0 && value < 1e6;
}

static bool set_quantity(const struct option *option, struct quantity *field, const char *text)
{
    struct quantity quantity;
    size_t          length = strlen(option->key);
    if (!quantity_parse(text, &quantity)) {
        return false;
    }
    if (length > 3 && strcmp(option->key + length - 3, "_gb") == 0 && quantity.value >= 1e9) {
        quantity.value /= 1e9;    // the unit of the option is GB, so "80GB" is 80
    }
    if (is_too_small(option, quantity.value) || quantity.value < option->minimum || quantity.value > option->maximum) {
        return false;
    }
    *field = quantity;
    return true;
}

static bool set_name(const char *const *names, int64_t count, int64_t *field, const char *text)
{
    for (int64_t i = 0; names[i] != NULL; i++) {
        if (strcasecmp(names[i], text) == 0) {
            *field = i % count;    // boolean_names alternates between names of no and of yes
            return true;
        }
    }
    return false;
}

// Parses comma-separated names, with blanks around them, to a bit mask.
static bool set_mask(const struct option *option, int64_t *field, const char *text)
{
    int64_t mask = 0;
    if (strcmp(text, "none") == 0) {
        *field = 0;
        return true;
    }
    for (const char *at = text;; at++) {
        at += strspn(at, " \t");
        size_t  length = strcspn(at, " \t,");
        int64_t index  = find_name(option->names, at, length);
        if (index < 0) {
            return false;
        }
        mask |= (int64_t)1 << index;
        at += length;
        at += strspn(at, " \t");
        if (*at == '\0') {
            *field = mask;
            return true;
        }
        if (*at != ',') {
            return false;
        }
    }
}

// Copies a text value. Rejects text that an INI file cannot contain, so that every value can be written and read back.
static bool set_text(const struct option *option, char *field, const char *text)
{
    char   printable[OPTION_PATH_BYTES];
    size_t length = strlen(text);
    assert(option->size <= sizeof(printable));
    if (option->names != NULL && text_index(text, option->names) < 0) {
        return false;
    }
    if (length >= option->size || text[0] == ';' || strstr(text, " ;") != NULL || text[0] == ' ' ||
        (length > 0 && text[length - 1] == ' ')) {
        return false;
    }
    text_printable(printable, sizeof(printable), text);
    if (strcmp(printable, text) != 0) {
        return false;
    }
    memset(field, 0, option->size);
    memcpy(field, text, length);
    return true;
}

// Returns the name that the user probably meant by a synonym or a misspelling, or NULL.
static const char *find_meant(const char *text, const char *const *names)
{
    static const struct {
        const char *word, *name;
    } synonyms[] = {{"gpu", "cuda"},
                    {"nvidia", "cuda"},
                    {"cpu", "host"},
                    {"float8", "fp8"},
                    {"e4m3", "fp8"},
                    {"bfloat16", "bf16"},
                    {"float32", "fp32"},
                    {"threads", "local"},
                    {"mxfp8", "fp8\" with \"precision.recipe=mxfp8"},
                    {"selective", "attention"},
                    {"half", NULL},
                    {"fp16", NULL},
                    {"float16", NULL},
                    {"int8", NULL},
                    {"nvfp4", "fp4"},
                    {"e2m1", "fp4"},
                    {"float4", "fp4"}};
    for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++) {
        if (strcasecmp(text, synonyms[i].word) == 0) {
            for (int j = 0; synonyms[i].name != NULL && names[j] != NULL; j++) {
                if (strncmp(names[j], synonyms[i].name, strlen(names[j])) == 0) {
                    return synonyms[i].name;
                }
            }
            if (synonyms[i].name == NULL) {
                return NULL;    // the program has no such feature
            }
        }
    }
    return text_closest(text, names);
}

// Parses text into the option's field. Returns false, and leaves the field unchanged, if the option does not accept the
// text.
static bool set(const struct option *option, void *section, const char *text)
{
    void *field = (char *)section + option->offset;
    switch (option->type) {
    case OPTION_INTEGER:
        return set_integer(option, field, text);
    case OPTION_REAL:
    case OPTION_PERCENT:
        return set_real(option, field, text);
    case OPTION_QUANTITY:
        return set_quantity(option, field, text);
    case OPTION_BOOLEAN:
        return set_name(boolean_names, 2, field, text);
    case OPTION_CHOICE:
        return set_name(option->names, INT64_MAX, field, text);
    case OPTION_SET:
        return set_mask(option, field, text);
    case OPTION_TEXT:
        return set_text(option, field, text);
    }
    return false;
}

status option_set(const struct option *option, void *section, const char *text)
{
    if (set(option, section, text)) {
        return OK;
    }
    char        value[64], allowed[512];
    bool        is_named = option->names != NULL && option->names != option_auto && option->type != OPTION_SET;
    const char *meant    = is_named ? find_meant(text, option->names) : NULL;
    text_printable(value, sizeof(value), text);
    option_allowed(option, allowed, sizeof(allowed));
    struct quantity quantity;
    FAIL_IF(option->type == OPTION_QUANTITY && quantity_parse(text, &quantity) && is_too_small(option, quantity.value),
            "%s: did you mean %s%s? Without a unit it is %g per second", value, value,
            option->maximum > 1e15 ? "T" : "G", quantity.value);
    FAIL_IF(option->type == OPTION_QUANTITY, "%s: expected %s; units are read, as in 80GB, 400Gb/s, 989T", value,
            allowed);
    return fail("%s: expected %s%s%s%s", value, allowed, meant != NULL ? " (did you mean \"" : "",
                meant != NULL ? meant : "", meant != NULL ? "\"?)" : "");
}

void option_set_defaults(const struct option *options, void *section)
{
    for (; options->key != NULL; options++) {
        status result = option_set(options, section, options->fallback);
        if (failed(&result)) {
            FATAL(EXIT_INTERNAL, "default of %s = %s", options->key, result.text);
        }
    }
}

static void print_mask(const char *const *names, int64_t mask, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", mask == 0 ? "none" : "");
    for (size_t i = 0, used = 0; names[i] != NULL && used < bytes; i++) {
        if ((mask >> i & 1) != 0) {
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used == 0 ? "" : ", ", names[i]);
        }
    }
}

void option_print(const struct option *option, const void *section, char *text, size_t bytes)
{
    const void    *field   = (const char *)section + option->offset;
    const int64_t *integer = field;
    const double  *real    = field;
    char           number[32];
    switch (option->type) {
    case OPTION_INTEGER:
        if (option->names != NULL && *integer == auto_value(option)) {
            text_copy(text, bytes, option->names[0]);
        } else {
            snprintf(text, bytes, "%" PRId64, *integer);
        }
        break;
    case OPTION_REAL:
        number_print_real(*real, text, bytes);
        break;
    case OPTION_PERCENT:
        number_print_real(*real, number, sizeof(number));
        snprintf(text, bytes, "%s%%", number);
        break;
    case OPTION_QUANTITY:
        quantity_print(field, text, bytes);
        break;
    case OPTION_BOOLEAN:
        text_copy(text, bytes, boolean_names[*integer]);
        break;
    case OPTION_CHOICE:
        text_copy(text, bytes, option->names[*integer]);
        break;
    case OPTION_SET:
        print_mask(option->names, *integer, text, bytes);
        break;
    case OPTION_TEXT:
        text_copy(text, bytes, field);
        break;
    }
}
