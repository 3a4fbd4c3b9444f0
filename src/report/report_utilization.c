// SPDX-License-Identifier: MIT
// Bars of the MFU: measured, expected and published.
#include <math.h>

#include "internal.h"
#include "page.h"

enum { BARS = 3 };

struct bar {
    const char *name;
    double      share;    // NaN: unknown
};

// The MFU of the published table if it has one, otherwise the MFU of its step time.
static double find_published(const struct result *result)
{
    if (isnan(result->figures.published_ratio)) {
        return NAN;
    }
    return !isnan(result->published_mfu) ? result->published_mfu
                                         : result_utilization(result, FLOPS_PUBLISHED, result->published_seconds);
}

static double find_expected(const struct result *result)
{
    enum flop_convention convention = (enum flop_convention)result->figures.convention;
    return report_expected_parts(result) == NULL
               ? NAN
               : result_utilization(result, convention, result->expectation.step_seconds);
}

void html_write_utilization(const struct result *result, FILE *file)
{
    const struct result_figures *figures    = &result->figures;
    const struct bar             bars[BARS] = {
                    {result_is_simulated(result) ? result->trace.source : "measured", figures->utilization[figures->convention]},
                    {"expected", find_expected(result)},
                    {"published", find_published(result)}};
    if (isnan(bars[0].share) || (isnan(bars[1].share) && isnan(bars[2].share))) {
        return;
    }
    fprintf(file,
            "<section class=card><h2>Model FLOPs utilization <span class=soft>of the peak, convention %s</span></h2>"
            "<table class=utilization>\n",
            model_flop_names[figures->convention]);
    for (int i = 0; i < BARS; i++) {
        if (!isnan(bars[i].share)) {
            fprintf(file, "<tr><td>");
            html_write_text(bars[i].name, file);
            fprintf(file, "</td>");
            html_write_bar(i == 0 ? BAR_COMPUTE : i == 1 ? BAR_IDEAL : BAR_REST, 0.0, bars[i].share, file);
            fprintf(file, "<td class=n>%.2f %%</td></tr>\n", 100 * bars[i].share);
        }
    }
    fprintf(file, "</table></section>\n");
}
