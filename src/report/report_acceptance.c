// SPDX-License-Identifier: MIT
// The acceptance verdict of a machine, as a card of the page.
#include "internal.h"
#include "page.h"

void html_write_acceptance(const struct result *result, FILE *file)
{
    const struct result_acceptance *acceptance = &result->acceptance;
    if (acceptance->verdict == ACCEPTANCE_NONE) {
        return;
    }
    fprintf(file, "<section class=card><h2>Acceptance <span class=soft>of the machine</span></h2>\n<p><b>");
    html_write_text(result_acceptance_names[acceptance->verdict], file);
    fprintf(file, "</b>: ");
    html_write_text(acceptance->reason, file);
    fprintf(file, "</p>\n<p class=soft>drain: ");
    html_write_text(acceptance->drain[0] != '\0' ? acceptance->drain : "none", file);
    fprintf(file, "</p></section>\n");
}
