// SPDX-License-Identifier: MIT
// Options for traced steps, which follow the measured ones, and for timelines.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/option.h"
#include "gswbench/status.h"

// What times ops. auto uses CUPTI if available, else events. A backend without a device uses the host's clock.
enum trace_source { TRACE_AUTO, TRACE_CUPTI, TRACE_EVENTS };

// [trace]
struct trace_config {
    int64_t steps, source;
    char    timeline[160];          // "0,8", or "all"; "": none
    char    communications[160];    // the same, or "auto"
};
extern const struct option trace_options[];

// Checks that the listed ranks exist, and that a timeline has a traced step. trace_config_draws and trace_config_lists
// return whether a rank has a timeline, and a file of communication ops.
status trace_config_check(const struct trace_config *trace, int64_t world);
bool   trace_config_draws(const struct trace_config *trace, int64_t rank);
bool   trace_config_lists(const struct trace_config *trace, int64_t rank);    // true with auto
bool   trace_config_chooses(const struct trace_config *trace);                // communications = auto
