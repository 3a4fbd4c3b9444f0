// SPDX-License-Identifier: MIT
// Expected step time and tolerance of an acceptance test.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/accept.h"
#include "gswbench/predict_row.h"
#include "gswbench/text.h"

static const double machines_percent = 3.5;    // spread between equal machines

static void set(struct result_acceptance *acceptance, const char *basis, double seconds, double percent)
{
    text_copy(acceptance->basis, sizeof(acceptance->basis), basis);
    acceptance->expected_seconds = seconds;
    acceptance->percent          = percent;
}

void accept_expect(struct result_acceptance *acceptance, const struct job *job, const char *device)
{
    struct predict_row row            = {.job = *job};
    bool               is_its_machine = strcmp(device, job->config.hardware.device) == 0;
    set(acceptance, "nothing", NAN, NAN);
    if (!is_its_machine) {
        return;
    }
    option_set_defaults(software_options, &row.job.config.software);    // the run uses gswbench itself
    predict_row_compute(&row, true);
    if (!isnan(row.published_seconds)) {
        set(acceptance, "published", row.published_seconds, machines_percent);
    } else if (!failed(&row.support)) {
        set(acceptance, "predicted", row.prediction.step_seconds, hypot(machines_percent, row.range.percent));
    }
    text_free(&row.warnings);
}
