// SPDX-License-Identifier: MIT
// The [trace] options.
#include "gswbench/trace_config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
const struct option trace_options[] = {
    INTEGER_OPTION(trace_config, steps, "2", 0, 1000, "steps after the measured ones in which each op is timed; the last of them is explained; 0: none"),
    TEXT_OPTION   (trace_config, timeline, "", "ranks whose ops of that step are drawn in trace.json, for Perfetto: 0,8 or all; empty: none"),
    END_OPTIONS
};
// clang-format on

// Takes a number and the comma after it off the text; NULL: there is none.
static const char *take_rank(const char *text, int64_t *rank)
{
    char *end;
    *rank = strtoll(text, &end, 10);
    if (end == text || (*end != ',' && *end != '\0')) {
        return NULL;
    }
    return *end == ',' ? end + 1 : end;
}

static bool is_all(const struct trace_config *trace)
{
    return strcmp(trace->timeline, "all") == 0;
}

status trace_config_check(const struct trace_config *trace, int64_t world)
{
    if (trace->timeline[0] != '\0' && trace->steps == 0) {
        return fail("[trace] timeline = %s shows a traced step, of which there is none: set steps", trace->timeline);
    }
    const char *next = is_all(trace) ? "" : trace->timeline;
    while (*next != '\0') {
        int64_t rank;
        next = take_rank(next, &rank);
        if (next == NULL || rank < 0 || rank >= world) {
            return fail("[trace] timeline = %s: allowed are all, or numbers of 0 to %" PRId64 " with commas between",
                        trace->timeline, world - 1);
        }
    }
    return OK;
}

bool trace_config_draws(const struct trace_config *trace, int64_t rank)
{
    const char *next  = is_all(trace) ? "" : trace->timeline;
    bool        draws = is_all(trace);
    while (*next != '\0' && !draws) {
        int64_t named;
        next  = take_rank(next, &named);
        draws = named == rank;
    }
    return draws;
}
