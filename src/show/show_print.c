// SPDX-License-Identifier: MIT
// Prints values, paths and JSON documents, for the other files of this folder.
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/report.h"
#include "gswbench/show.h"

// Prints a label and a text, and indents the text's continuation by `columns`.
static void print_text(const char *label, int columns, const char *format, va_list arguments)
{
    struct text_stream text;
    char               margin[64];
    snprintf(margin, sizeof(margin), "%*s", columns, "");
    text_stream_open(&text);
    vfprintf(text.file, format, arguments);
    text_stream_close(&text);
    text_print_wrapped(stdout, text.data, printf("%s", label), 80, margin);
    free(text.data);
}

void show_row(const char *label, const char *format, ...)
{
    char    padded[64];
    va_list arguments;
    snprintf(padded, sizeof(padded), "%-15s", label);
    va_start(arguments, format);
    print_text(padded, 15, format, arguments);
    va_end(arguments);
}

void show_line(int margin, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_text("", margin, format, arguments);
    va_end(arguments);
}

const char *show_proxy(const struct config *config, char *text, size_t bytes)
{
    text[0] = '\0';
    if (config->run.layers > 0) {
        snprintf(text, bytes, ", a proxy,");
    } else if (config_is_proxy(config)) {
        snprintf(text, bytes, ", a proxy (%" PRId64 " of %" PRId64 " layers),", config->model.layers,
                 config->full_layers);
    }
    return text;
}

void show_job(const struct config *config, int64_t ranks)
{
    char proxy[64];
    show_row("config", "%s%s at %" PRId64 " rank%s, %s", config->name, show_proxy(config, proxy, sizeof(proxy)), ranks,
             ranks == 1 ? "" : "s", precision_compute_names[config->precision.compute]);
}

void show_path(const char *before, const char *path, const char *after)
{
    fputs(before, stdout);
    text_print(path, stdout);
    puts(after);
}

status show_shortage(const struct config *config, const char *program, int64_t bytes, const char *remark)
{
    const struct hardware_config *hardware = &config->hardware;
    return fail_as(EXIT_MEMORY, "CANNOT RUN: %s needs %s, %s has %s%s", program, report_bytes((double)bytes),
                   strcmp(hardware->profile, "none") != 0 ? hardware->profile : "the device",
                   report_bytes(hardware->memory_gb.value * 1e9), remark);
}

static bool has_document;

bool show_has_json(void)
{
    return has_document;
}

void show_json(json_t *value)
{
    has_document = true;
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    putchar('\n');
    json_decref(value);
}

void show_rows(const struct json_field *fields, const char *config, json_t *rows)
{
    show_json(json_from_struct(fields, &(struct show_document){config, rows}));
}

void show_readers(const struct model_config *model)
{
    const struct model_family *family = model_family_of(model);
    if (family != NULL) {
        printf(", as transformers reads %s\n", family->architecture);
    } else {
        puts("; no public program reads its architecture (GswbenchForCausalLM)");
    }
}
