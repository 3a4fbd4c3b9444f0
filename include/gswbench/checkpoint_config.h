// SPDX-License-Identifier: MIT
// What a run begins with, and which checkpoints it saves.
#ifndef GSWBENCH_CHECKPOINT_CONFIG_H
#define GSWBENCH_CHECKPOINT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "gswbench/option.h"
#include "gswbench/status.h"

// [checkpoint]
struct checkpoint_config {
    char    load[176], save[176];    // folders; "": none
    int64_t every, at_end, keep;
    int64_t asynchronous, verify;
    double  grace;    // seconds of the last step and its save after a signal; 0: none beyond what every step has
};
extern const struct option checkpoint_options[];

// Whether what is to be saved has a folder, and the other way round.
status checkpoint_config_check(const struct checkpoint_config *checkpoint);

// Whether a checkpoint follows the step of that number, counted from 1, that is the last of the run or not.
bool checkpoint_config_saves(const struct checkpoint_config *checkpoint, int64_t step, bool is_last);

#endif
