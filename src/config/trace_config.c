// SPDX-License-Identifier: MIT
// The [trace] options.
#include "gswbench/trace_config.h"

#include <string.h>

#include "internal.h"

static const char *const source_names[] = {
    [TRACE_AUTO] = "auto", [TRACE_CUPTI] = "cupti", [TRACE_EVENTS] = "events", NULL};

// clang-format off
const struct option trace_options[] = {
    INTEGER_OPTION(trace_config, steps, "2", 0, 1000, "traced steps after the measured ones, with a time for each op; the waterfall shows the last; 0: none"),
    CHOICE_OPTION (trace_config, source, "auto", source_names, "cuda backend: time ops by CUPTI, which records each kernel and copy, or by CUDA events; auto: CUPTI if all ranks can use it"),
    TEXT_OPTION   (trace_config, timeline, "", "ranks whose ops of the last traced step are in trace.json, for Perfetto: 0,8 or all; empty: none"),
    TEXT_OPTION   (trace_config, transfers, "auto", "ranks whose collectives of the last traced step are in transfers/RANK.csv: 0,8 or all; auto: all, or the first rank of each pipeline stage if all would exceed 1 GiB; empty: none"),
    END_OPTIONS
};
// clang-format on

status trace_config_check(const struct trace_config *trace, int64_t world)
{
    if (trace->timeline[0] != '\0' && trace->steps == 0) {
        return fail("[trace] timeline = %s needs a traced step, but steps = 0: set steps to 1 or more",
                    trace->timeline);
    }
    TRY(rank_list_check("[trace] timeline", trace->timeline, world));
    return trace_config_chooses(trace) ? OK : rank_list_check("[trace] transfers", trace->transfers, world);
}

bool trace_config_draws(const struct trace_config *trace, int64_t rank)
{
    return rank_list_has(trace->timeline, rank);
}

bool trace_config_chooses(const struct trace_config *trace)
{
    return strcmp(trace->transfers, "auto") == 0;
}

bool trace_config_lists(const struct trace_config *trace, int64_t rank)
{
    return trace->steps > 0 && (trace_config_chooses(trace) || rank_list_has(trace->transfers, rank));
}
