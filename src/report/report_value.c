// SPDX-License-Identifier: MIT
// Values as text. Each call returns one of VALUES buffers of the thread, so that one fprintf can print several.
#include <ctype.h>
#include <math.h>

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
    char *text = next_value();
    snprintf(text, VALUE_BYTES, seconds < 1 ? "%.6f" : "%.3f", seconds);
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
    char *text = next_value();
    snprintf(text, VALUE_BYTES, fabs(value) < 1e4 ? "%.6g" : "%.0f", value);
    return text;
}

const char *report_percent(double share)
{
    char *text = next_value();
    snprintf(text, VALUE_BYTES, "%.2f%%", 100 * share);
    return text;
}

const char *report_upper(const char *word)
{
    char  *text = next_value();
    size_t used = 0;
    for (; word[used] != '\0' && used + 1 < VALUE_BYTES; used++) {
        text[used] = (char)toupper((unsigned char)word[used]);
    }
    text[used] = '\0';
    return text;
}
