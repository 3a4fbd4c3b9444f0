// SPDX-License-Identifier: MIT
// Which steps are traced after the measured ones, and which ranks a timeline shows.
#ifndef GSWBENCH_TRACE_CONFIG_H
#define GSWBENCH_TRACE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/option.h"
#include "gswbench/status.h"

// What times ops: by auto CUPTI where it can be had, else events. A backend without a device has the host's clock.
enum trace_source { TRACE_AUTO, TRACE_CUPTI, TRACE_EVENTS };

// [trace]
struct trace_config {
    int64_t steps, source;
    char    timeline[160];     // ranks: "0,8", or "all"; "": none
    char    transfers[160];    // likewise, or "auto"
};
extern const struct option trace_options[];

// Whether the timeline and the files of transfers are of ranks that there are, and of a step that is traced; whether
// they are of this rank.
status trace_config_check(const struct trace_config *trace, int64_t world);
bool   trace_config_draws(const struct trace_config *trace, int64_t rank);
bool   trace_config_lists(const struct trace_config *trace, int64_t rank);    // by auto: if all are
bool   trace_config_chooses(const struct trace_config *trace);                // auto

#endif
