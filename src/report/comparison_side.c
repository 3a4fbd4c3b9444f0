// SPDX-License-Identifier: MIT
// Reads one side of a comparison: a run, or a folder of repeats of one job.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gswbench/comparison.h"
#include "gswbench/output.h"
#include "gswbench/report.h"
#include "gswbench/result.h"

enum { REPEATS_MAX = 256 };

static status add_run(void *state, const char *path)
{
    struct comparison_side *side = state;
    if (side->count == REPEATS_MAX) {
        return fail_as(EXIT_USAGE, "more than %d runs with %.900s: use gswbench table for that many", REPEATS_MAX,
                       path);
    }
    LIST_APPEND(side->runs, side->count, (struct result){0});
    return report_read_result(&side->runs[side->count - 1], path);
}

status comparison_read_side(struct comparison_side *side, const char *path)
{
    struct stat state;
    char        file[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    bool        has_journal = snprintf(file, sizeof(file), "%s/" JOURNAL_FILE, path) > 0 && stat(file, &state) == 0;
    TRY(has_journal ? add_run(side, path) : report_visit_results(path, add_run, side));
    for (int64_t i = 1; i < side->count; i++) {
        const struct result *first = side->runs, *other = &side->runs[i];
        if (strcmp(first->config_hash, other->config_hash) != 0 || first->mesh.world != other->mesh.world ||
            !result_is_shown(first) || !result_is_shown(other) || first->trace.source != other->trace.source) {
            return fail_as(EXIT_COMPARE,
                           "%.900s: %s and %s are not repeats of the same job, or not VALID: name the folder of one "
                           "run, or use gswbench table",
                           path, first->run_id, other->run_id);
        }
    }
    side->result = comparison_join(side->runs, side->count, &side->repeats);
    return OK;
}

void comparison_free_side(struct comparison_side *side)
{
    for (int64_t i = 0; i < side->count; i++) {
        result_free(&side->runs[i]);
    }
    free(side->runs);
}
