// SPDX-License-Identifier: MIT
// Writes the lines of a result about verification: its expected cost before the run, its findings and cost after it.
#include <inttypes.h>
#include <string.h>

#include "internal.h"

static bool is_on(const struct result *result)
{
    return result->computes && result->verify[0] != '\0' && strcmp(result->verify, "off") != 0 &&
           !result_is_simulated(result);
}

void report_write_verification_ahead(const struct result *result, FILE *file)
{
    const struct result_verification *verification = &result->verification;
    if (!is_on(result)) {
        return;
    }
    fprintf(file, "# verify %s: ", report_safe(result->verify));
    if (verification->device_bytes > 0) {
        fprintf(file, "repeating a step copies %s of device memory and uses %s of host memory; ",
                report_bytes(verification->device_bytes), report_bytes(verification->host_bytes));
    }
    fprintf(file, "about %.2g s, and the steps\n", verification->expected_seconds);
}

static void write_bound(double bound, const char *before, const char *after, FILE *file)
{
    if (bound == 0) {
        fprintf(file, "bit for bit");
    } else {
        fprintf(file, "%s%.2g%s", before, bound, after);
    }
}

void report_write_verification(const struct result *result, FILE *file)
{
    const struct result_verification *verification = &result->verification;
    if (!is_on(result) || result->examined_ops == 0) {    // a result made from a journal has no record of ops
        return;
    }
    if (result->repeated_steps > 0) {
        fprintf(file, "proven: the numbers of %" PRId64 " of %" PRId64 " steps, on %s%" PRId64 " rank%s, run twice: ",
                result->repeated_equal, result->step_count, result->mesh.world > 1 ? "all " : "", result->mesh.world,
                result->mesh.world > 1 ? "s" : "");
        write_bound(verification->repeat_bound, "loss and gradients within ",
                    " of their norm, the optimizer bit for bit", file);
    } else {
        fprintf(file, "proven: no step's numbers");
    }
    fprintf(file, "; which ops ran, in every step; %" PRId64 " ops and %" PRId64 " transfers alone, ",
            result->examined_ops, result->examined_communications);
    write_bound(verification->op_bound, "bit for bit, or within ", " of the norm for ops that are not deterministic",
                file);
    fprintf(file, "; %.1f s (expected %.2g s and the steps)\n", verification->seconds, verification->expected_seconds);
}
