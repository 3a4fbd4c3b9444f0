// SPDX-License-Identifier: MIT
// Writes the shared parts of the HTML pages: escaped text, head, foot, bars and axes. Text from outside the program is
// written only by html_print and html_write_text, which escape it.
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "internal.h"

void html_write_text(const char *from, FILE *file)
{
    static const char        special[]  = "&<>\"'";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (const char *character = report_safe(from); *character != '\0'; character++) {
        const char *found = strchr(special, *character);
        fputs(found != NULL ? entities[found - special] : (char[]){*character, '\0'}, file);
    }
}

// Prints the next argument by the directive at `format`, such as "%.3f". Returns the end of the directive.
static const char *print_directive(FILE *file, const char *format, va_list *arguments)
{
    size_t length = 2 + strspn(format + 1, "-+ #0123456789.l");
    char   directive[24];
    snprintf(directive, sizeof(directive), "%.*s", (int)length, format);
    bool is_long = strchr(directive, 'l') != NULL;
    switch (directive[length - 1]) {
    case '%':
        fputc('%', file);
        break;
    case 's':
        html_write_text(va_arg(*arguments, const char *), file);
        break;
    case 'd':
        fprintf(file, "%" PRId64, is_long ? va_arg(*arguments, int64_t) : (int64_t)va_arg(*arguments, int));
        break;
    default:
        fprintf(file, directive, va_arg(*arguments, double));
    }
    return format + length;
}

static void print_arguments(FILE *file, const char *format, va_list *arguments)
{
    while (*format != '\0') {
        size_t plain = strcspn(format, "%");
        fwrite(format, 1, plain, file);
        format += plain;
        format = *format != '\0' ? print_directive(file, format, arguments) : format;
    }
}

void html_print(FILE *file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_arguments(file, format, &arguments);
    va_end(arguments);
}

void html_write_head(const char *title, FILE *file)
{
    html_print(file,
               "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
               "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; "
               "base-uri 'none'; form-action 'none'\">\n"
               "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n"
               "<meta name=color-scheme content=\"light dark\"><title>%s - gswbench</title>\n<style>",
               title);
    fputs(report_style, file);
    html_print(file, "</style></head><body><main>\n<header><div><h1>%s</h1><p>", title);
}

void html_write_badge(const char *class, const char *word, FILE *file)
{
    fprintf(file, "</p></div>");
    if (word != NULL) {
        fprintf(file, "<div class=\"verdict %s\">%s</div>", class, word);
    }
    fprintf(file, "</header>\n");
}

void html_write_foot(FILE *file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("<footer>gswbench ", file);
    print_arguments(file, format, &arguments);
    fputs("</footer></main></body></html>\n", file);
    va_end(arguments);
}

void html_write_figure(FILE *file, const char *value, const char *unit, const char *label, const char *note, ...)
{
    char    text[256];
    va_list arguments;
    va_start(arguments, note);
    vsnprintf(text, sizeof(text), note, arguments);
    va_end(arguments);
    fprintf(file, "<div class=figure><span>%s</span><b>%s <small>%s</small></b>", label, value, unit);
    html_print(file, "<span>%s</span></div>\n", text);
}

void html_write_number(FILE *file, const char *title, const char *format, double value)
{
    fputs("<td class=n", file);
    if (title != NULL) {
        fprintf(file, " data-name=\"%s\"", title);
    }
    fputs(">", file);
    if (isnan(value)) {
        fputs("&ndash;", file);
    } else {
        fprintf(file, format, value);
    }
    fputs("</td>", file);
}

void html_write_bar(int colour, double from, double share, FILE *file)
{
    fprintf(file, "<td class=fall><i class=b%d style=\"margin-left:%.2f%%;width:%.2f%%\"></i></td>", colour, 100 * from,
            100 * share);
}

void html_write_keys(const struct page_key *keys, int count, FILE *file)
{
    fprintf(file, "<p class=\"soft keys\">");
    for (int i = 0; i < count; i++) {
        html_print(file, "<span><i class=\"key b%d\"></i>%s</span>", keys[i].colour, keys[i].meaning);
    }
    fprintf(file, "</p>\n");
}

void html_write_gridline(double y, const char *label, FILE *file)
{
    fprintf(file, "<line class=grid x1=0 x2=100%% y1=%.1f y2=%.1f /><text x=-8 y=%.1f text-anchor=end>%s</text>", y, y,
            y + 4, label);
}

void html_write_seconds_axis(double seconds, double y, FILE *file)
{
    enum { LABELS = 5 };
    for (int i = 0; i <= LABELS; i++) {
        const char *anchor = i == 0 ? "start" : i == LABELS ? "end" : "middle";
        fprintf(file, "<text%s x=%d%% y=%.1f text-anchor=%s>%.3g</text>", i % LABELS != 0 ? " class=second" : "",
                100 * i / LABELS, y, anchor, seconds * i / LABELS);
    }
}
