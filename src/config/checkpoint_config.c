// SPDX-License-Identifier: MIT
// The [checkpoint] options.
#include "gswbench/checkpoint_config.h"

#include <inttypes.h>

// clang-format off
const struct option checkpoint_options[] = {
    TEXT_OPTION   (checkpoint_config, load, "", "checkpoint to start from: one that gswbench saved (optimizer, step and data continue), a folder of these (takes the newest), or weights in Hugging Face format; empty: random weights"),
    TEXT_OPTION   (checkpoint_config, save, "", "folder for checkpoints, one subfolder step-N each; all ranks must see it; empty: none is saved"),
    INTEGER_OPTION(checkpoint_config, every, "0", 0, 1000000, "steps between checkpoints, counted across resumed runs; 0: none between steps"),
    BOOLEAN_OPTION(checkpoint_config, at_end, "yes", "also save after the last step"),
    INTEGER_OPTION(checkpoint_config, keep, "0", 0, 1000000, "number of this run's checkpoints to keep; older ones are removed when a new one is complete; 0: all"),
    BOOLEAN_OPTION(checkpoint_config, asynchronous, "no", "steps continue while threads write from a copy in host memory, which needs room for it; no: steps wait"),
    REAL_OPTION   (checkpoint_config, grace, "0", 0, 86400, "seconds for the current step and the save after it on SIGTERM, SIGINT, SIGHUP or run.time_limit; must be less than the scheduler's kill delay; 0: 0.4, as without checkpoints, since mpirun kills after 1 second"),
    BOOLEAN_OPTION(checkpoint_config, verify, "yes", "check the checksums of all loaded data"),
    END_OPTIONS
};
// clang-format on

status checkpoint_config_check(const struct checkpoint_config *checkpoint)
{
    bool saves = checkpoint->every > 0 || checkpoint->at_end != 0;
    if (checkpoint->save[0] == '\0' && (checkpoint->every > 0 || checkpoint->keep > 0)) {
        return fail("[checkpoint] every = %" PRId64 " and keep = %" PRId64
                    " have no effect without save: set save to a folder",
                    checkpoint->every, checkpoint->keep);
    }
    if (checkpoint->grace > 0 && (checkpoint->save[0] == '\0' || !checkpoint->at_end)) {
        return fail("[checkpoint] grace = %g has no effect without a checkpoint at the end: set save to a folder and "
                    "at_end = yes",
                    checkpoint->grace);
    }
    return checkpoint->save[0] == '\0' || saves
               ? OK
               : fail("[checkpoint] save = %s, but every = 0 and at_end = no save nothing: set every, or at_end = yes",
                      checkpoint->save);
}

bool checkpoint_config_saves(const struct checkpoint_config *checkpoint, int64_t step, bool is_last)
{
    bool is_due = checkpoint->every > 0 && step % checkpoint->every == 0;
    return checkpoint->save[0] != '\0' && (is_due || (is_last && checkpoint->at_end != 0));
}
