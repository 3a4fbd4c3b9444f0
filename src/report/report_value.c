// SPDX-License-Identifier: MIT
// Formats values as text. Each call returns one of VALUES buffers of the thread, so that one fprintf can print several.
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "gswbench/number.h"
#include "gswbench/text.h"
#include "internal.h"

enum { VALUES = 16, VALUE_BYTES = 1200 };

static char *next_value(void)
{
    static _Thread_local char values[VALUES][VALUE_BYTES];
    static _Thread_local int  next;
    return values[next++ % VALUES];
}

const char *report_safe(const char *from)
{
    char *text = next_value();
    text_printable(text, VALUE_BYTES, from);
    return text;
}

const char *report_seconds(double seconds)
{
    return report_number(seconds < 1 ? "%.6f" : "%.3f", seconds);
}

int report_decimals(double seconds)
{
    int decimals = seconds > 0 && isfinite(seconds) ? 3 - (int)floor(log10(seconds)) : 3;
    return decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
}

const char *report_digits(double seconds)
{
    char *text = next_value();
    snprintf(text, VALUE_BYTES, isnan(seconds) ? "-" : "%.*f", report_decimals(seconds), seconds);
    return text;
}

double report_device_bytes(const struct result *result)
{
    return 1e9 * strtod(report_find_setting(result, "hardware.memory_gb"), NULL);
}

const char *report_error_status(const struct result *result)
{
    bool is_fitted = strcmp(report_find_setting(result, "published.fitted"), "yes") == 0;
    return !result_is_predicted(result) ? "" : is_fitted ? ", fitted" : ", never fitted";
}

// Formats digits in groups of three: "85 180".
const char *report_grouped(double value, char separator)
{
    char plain[64], *text = next_value();
    if (!(value >= 1000 && value < 1e15)) {
        return report_real(value);
    }
    size_t digits = (size_t)snprintf(plain, sizeof(plain), "%.0f", value), used = 0;
    for (size_t i = 0; i < digits; i++) {
        if (i > 0 && (digits - i) % 3 == 0) {
            text[used++] = separator;
        }
        text[used++] = plain[i];
    }
    text[used] = '\0';
    return text;
}

const char *report_bytes(double bytes)
{
    return number_bytes(next_value(), VALUE_BYTES, bytes);
}

const char *report_count(double count)
{
    return number_count(next_value(), VALUE_BYTES, count);
}

const char *report_real(double value)
{
    return report_number(fabs(value) < 1e4 ? "%.6g" : "%.0f", value);
}

const char *report_percent(double share)
{
    return report_number("%.2f%%", 100 * share);
}

const char *report_number(const char *format, double value)
{
    if (isnan(value)) {
        return "-";
    }
    char *text = next_value();
    snprintf(text, VALUE_BYTES, format, value);
    return text;
}

const char *report_upper(const char *word)
{
    char *text = next_value();
    text_copy(text, VALUE_BYTES, word);
    for (char *letter = text; *letter != '\0'; letter++) {
        *letter = (char)toupper((unsigned char)*letter);
    }
    return text;
}
