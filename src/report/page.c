// SPDX-License-Identifier: MIT
// Shared parts of the HTML pages: head, foot, escaped text, rows, bars and axes. Foreign text is written only by
// html_write_text.
#include "page.h"

#include <math.h>
#include <stdarg.h>

#include "gswbench/number.h"
#include "internal.h"

void html_write_text(const char *from, FILE *file)
{
    char text[1200];
    for (const char *character = report_safe(text, sizeof(text), from); *character != '\0'; character++) {
        switch (*character) {
        case '&':
            fputs("&amp;", file);
            break;
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '"':
            fputs("&quot;", file);
            break;
        case '\'':
            fputs("&#39;", file);
            break;
        default:
            fputc(*character, file);
        }
    }
}

void html_write_head(const char *title, FILE *file)
{
    fprintf(file, "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
                  "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; "
                  "base-uri 'none'; form-action 'none'\">\n"
                  "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n"
                  "<meta name=color-scheme content=\"light dark\"><title>");
    html_write_text(title, file);
    fprintf(file, " - gswbench</title>\n<style>");
    fputs(report_style, file);
    fprintf(file, "</style></head><body><main>\n<header><div><h1>");
    html_write_text(title, file);
    fprintf(file, "</h1><p>");
}

void html_write_badge(const char *class, const char *word, FILE *file)
{
    fprintf(file, "</p></div>");
    if (word != NULL) {
        fprintf(file, "<div class=\"verdict %s\">%s</div>", class, word);
    }
    fprintf(file, "</header>\n");
}

void html_write_foot(FILE *file)
{
    fprintf(file, "</footer></main></body></html>\n");
}

void html_write_figure(FILE *file, const char *value, const char *unit, const char *label, const char *note, ...)
{
    char    text[256];
    va_list arguments;
    va_start(arguments, note);
    vsnprintf(text, sizeof(text), note, arguments);
    va_end(arguments);
    fprintf(file, "<div class=figure><span>%s</span><b>%s <small>%s</small></b><span>", label, value, unit);
    html_write_text(text, file);
    fprintf(file, "</span></div>\n");
}

void html_write_row(const char *name, const char *value, FILE *file)
{
    fprintf(file, "<tr><th>");
    html_write_text(name, file);
    fprintf(file, "</th><td>");
    html_write_text(value, file);
    fprintf(file, "</td></tr>\n");
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
        fprintf(file, "<span><i class=\"key b%d\"></i>", keys[i].colour);
        html_write_text(keys[i].meaning, file);
        fprintf(file, "</span>");
    }
    fprintf(file, "</p>\n");
}

void html_write_seconds_axis(double seconds, double y, FILE *file)
{
    enum { LABELS = 5 };
    char text[32];
    for (int i = 0; i <= LABELS; i++) {
        snprintf(text, sizeof(text), "%.3g", seconds * i / LABELS);
        fprintf(file, "<text%s x=%d%% y=%.1f text-anchor=%s>%s</text>", i % LABELS != 0 ? " class=second" : "",
                100 * i / LABELS, y,
                i == 0        ? "start"
                : i == LABELS ? "end"
                              : "middle",
                text);
    }
}
