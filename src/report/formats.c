// SPDX-License-Identifier: MIT
// Table of the result formats.
#include <string.h>

#include "gswbench/report.h"

#define FORMAT(name, file) {#name, file, report_write_##name},

const struct report_format report_formats[] = {REPORT_FORMATS(FORMAT){NULL, NULL, NULL}};

const struct report_format *report_find_format(const char *name)
{
    const struct report_format *format = report_formats;
    while (format->name != NULL && strcmp(format->name, name) != 0) {
        format++;
    }
    return format->name != NULL ? format : NULL;
}
