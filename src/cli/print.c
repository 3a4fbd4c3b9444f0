// SPDX-License-Identifier: MIT
// Values as commands print them.
#include <math.h>

#include "internal.h"

json_t *cli_json_real(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

const char *cli_print_percent(double percent, const char *format, char *text, size_t bytes)
{
    if (isnan(percent)) {
        text_copy(text, bytes, "-");
    } else {
        snprintf(text, bytes, format, percent);
    }
    return text;
}

json_t *cli_json_waterfall(const struct waterfall *waterfall)
{
    json_t *parts = json_object();
    for (int part = 0; part < WATERFALL_PARTS; part++) {
        json_object_set_new(parts, waterfall_part_names[part], json_real(waterfall->seconds[part]));
    }
    return parts;
}

void cli_print_json(json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    putchar('\n');
    json_decref(value);
}
