// SPDX-License-Identifier: MIT
// The [checkpoint] options.
#include "gswbench/checkpoint_config.h"

#include <inttypes.h>

// clang-format off
const struct option checkpoint_options[] = {
    TEXT_OPTION   (checkpoint_config, load, "", "folder of the checkpoint that a run begins with: one of our own, whose optimizer, step and data go on, or of the newest one in it; or weights as Hugging Face lays them out; empty: weights as they are drawn"),
    TEXT_OPTION   (checkpoint_config, save, "", "folder in which each checkpoint gets its own, step-N; all ranks have to see it; empty: none is saved"),
    INTEGER_OPTION(checkpoint_config, every, "0", 0, 1000000, "steps after which a checkpoint is saved, counted over all runs that it goes through; 0: none between steps"),
    BOOLEAN_OPTION(checkpoint_config, at_end, "yes", "whether one is saved after the last step, too"),
    INTEGER_OPTION(checkpoint_config, keep, "0", 0, 1000000, "how many checkpoints of this run stay in that folder: older ones go when a new one is whole; 0: all"),
    BOOLEAN_OPTION(checkpoint_config, asynchronous, "no", "whether steps go on while threads write what was copied to host memory, which needs room for it; no: they wait"),
    REAL_OPTION   (checkpoint_config, grace, "0", 0, 86400, "seconds that the step at hand and the save behind it have after SIGTERM, SIGINT, SIGHUP or run.time_limit, fewer than pass before the scheduler kills; 0: as without checkpoints 0.4, since mpirun kills a second later"),
    BOOLEAN_OPTION(checkpoint_config, verify, "yes", "whether the checksums of all that is loaded are compared"),
    END_OPTIONS
};
// clang-format on

status checkpoint_config_check(const struct checkpoint_config *checkpoint)
{
    bool saves = checkpoint->every > 0 || checkpoint->at_end != 0;
    if (checkpoint->save[0] == '\0' && (checkpoint->every > 0 || checkpoint->keep > 0)) {
        return fail("[checkpoint] every = %" PRId64 " and keep = %" PRId64
                    " are about checkpoints that are saved: name a folder in save",
                    checkpoint->every, checkpoint->keep);
    }
    if (checkpoint->grace > 0 && (checkpoint->save[0] == '\0' || !checkpoint->at_end)) {
        return fail("[checkpoint] grace = %g is for the checkpoint after the last step: name a folder in save, and set "
                    "at_end = yes",
                    checkpoint->grace);
    }
    return checkpoint->save[0] == '\0' || saves
               ? OK
               : fail("[checkpoint] save = %s, but nothing is saved: set every, or at_end", checkpoint->save);
}

bool checkpoint_config_saves(const struct checkpoint_config *checkpoint, int64_t step, bool is_last)
{
    bool is_due = checkpoint->every > 0 && step % checkpoint->every == 0;
    return checkpoint->save[0] != '\0' && (is_due || (is_last && checkpoint->at_end != 0));
}
