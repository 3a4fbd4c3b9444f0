// SPDX-License-Identifier: MIT
// Builds status values.
#include "gswbench/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/text.h"

// Formats an error and makes its text printable, because it may quote foreign input with terminal escapes.
static status fail_list(int exit_code, const char *format, va_list arguments)
{
    status result = {.exit_code = exit_code};
    char   text[sizeof(result.text)];
    vsnprintf(text, sizeof(text), format, arguments);
    text_printable(result.text, sizeof(result.text), text);
    return result;
}

status fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    status result = fail_list(EXIT_CONFIG, format, arguments);
    va_end(arguments);
    return result;
}

status fail_as(int exit_code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    status result = fail_list(exit_code, format, arguments);
    va_end(arguments);
    return result;
}

void status_add(status *errors, status error)
{
    size_t length = strlen(errors->text);
    if (length == 0) {
        *errors = error;
    } else if (failed(&error) && length + 1 + strlen(error.text) < sizeof(errors->text)) {
        errors->text[length] = '\n';
        strcpy(errors->text + length + 1, error.text);
    }
}

void status_add_if(status *errors, bool is_broken, const char *format, ...)
{
    if (is_broken) {
        va_list arguments;
        va_start(arguments, format);
        status_add(errors, fail_list(EXIT_CONFIG, format, arguments));
        va_end(arguments);
    }
}
