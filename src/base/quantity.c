// SPDX-License-Identifier: MIT
// Parses and prints quantities: a value with its origin and its spread.
#include "gswbench/quantity.h"

#include <stdio.h>
#include <string.h>

#include "gswbench/number.h"
#include "gswbench/text.h"

const char *const quantity_origin_names[] = {
    [QUANTITY_GIVEN] = "given", [QUANTITY_SPEC] = "spec",         [QUANTITY_PRIOR] = "prior",
    [QUANTITY_FIT] = "fit",     [QUANTITY_MEASURED] = "measured", [QUANTITY_ORIGINS] = NULL,
};

// Parses a number with a prefix from k to P and a unit, such as 80GB, 900GB/s, 989T or 989TFLOP/s. Bits are converted
// to bytes: 400Gb/s.
static bool parse_value(const char *word, double *value)
{
    static const char prefixes[] = "kMGTP", *const units[] = {"", "B", "B/s", "FLOP/s", "FLOPS", "b/s", "bit/s"};
    const char *digits = word + strspn(word, "0123456789._+-");
    char        number[64];
    if (number_parse_real(word, value)) {
        return true;
    }
    double factor = 1;
    size_t length = (size_t)(digits - word);
    for (const char *prefix = prefixes; *digits != '\0' && strchr(prefixes, *digits) != NULL; prefix++) {
        factor *= 1000;
        if (*prefix == *digits) {
            digits++;
            break;
        }
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && length < sizeof(number); i++) {
        if (strcmp(digits, units[i]) == 0) {
            snprintf(number, sizeof(number), "%.*s", (int)length, word);
            bool is_number = number_parse_real(number, value);
            *value *= units[i][0] == 'b' ? factor / 8 : factor;
            return is_number;
        }
    }
    return false;
}

bool quantity_parse(const char *text, struct quantity *quantity)
{
    char            copy[128], *rest;
    struct quantity parsed = {.value = 0.0};
    if (!text_copy(copy, sizeof(copy), text)) {
        return false;
    }
    char *number = strtok_r(copy, " \t", &rest), *origin = strtok_r(NULL, " \t", &rest);
    char *spread = strtok_r(NULL, " \t", &rest);
    if (origin != NULL) {
        parsed.origin = text_index(origin, quantity_origin_names);
    }
    if (number == NULL || !parse_value(number, &parsed.value) || parsed.origin < 0 ||
        (spread != NULL && !number_parse_percent(spread, &parsed.spread_percent)) || parsed.spread_percent < 0.0 ||
        strtok_r(NULL, " \t", &rest) != NULL) {
        return false;
    }
    *quantity = parsed;
    return true;
}

void quantity_print(const struct quantity *quantity, char *text, size_t bytes)
{
    char value[32], spread[32];
    number_print_real(quantity->value, value, sizeof(value));
    number_print_real(quantity->spread_percent, spread, sizeof(spread));
    if (quantity->spread_percent > 0.0) {
        snprintf(text, bytes, "%s %s %s%%", value, quantity_origin_names[quantity->origin], spread);
    } else if (quantity->origin != QUANTITY_GIVEN) {
        snprintf(text, bytes, "%s %s", value, quantity_origin_names[quantity->origin]);
    } else {
        text_copy(text, bytes, value);
    }
}
