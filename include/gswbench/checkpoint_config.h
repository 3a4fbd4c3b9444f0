// SPDX-License-Identifier: MIT
// [checkpoint]: where to load from, and when to save.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/option.h"
#include "gswbench/status.h"

// [checkpoint]
struct checkpoint_config {
    char    load[OPTION_PATH_BYTES], save[OPTION_PATH_BYTES];    // folders; "": none
    int64_t every, at_end, keep;
    int64_t asynchronous, verify;
    double  grace;    // seconds to finish the current step and its save after a signal; 0: the default of every step
};
extern const struct option checkpoint_options[];

// Checks that saving has both a folder and a time to save.
status checkpoint_config_check(const struct checkpoint_config *checkpoint);

// Returns whether a checkpoint follows this step (counted from 1).
bool checkpoint_config_saves(const struct checkpoint_config *checkpoint, int64_t step, bool is_last);
