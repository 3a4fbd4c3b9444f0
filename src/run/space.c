// SPDX-License-Identifier: MIT
// Estimates a run's output, rounded up. Measured: 80 KB for a few steps, 700 bytes per step, 150 bytes per timeline op,
// 90 KB per pipeline stage.
#include "transfer_files.h"

status space_check(const struct config *config, const struct plan *plan, int64_t ranks,
                   const struct output_folder *folder)
{
    enum { RUN_BYTES = 160 << 10, STEP_BYTES = 1 << 10, RANK_BYTES = 16 << 10, OP_BYTES = 256 };
    int64_t drawn = 0, listed = transfer_files_of(&config->trace, plan).bytes;
    for (int64_t rank = 0; rank < ranks && config->trace.steps > 0; rank++) {
        drawn += trace_config_draws(&config->trace, rank);
    }
    int64_t timeline = drawn * plan->op_count * OP_BYTES;
    int64_t results =
        plan->mesh.size[AXIS_PP] * RUN_BYTES + run_steps_most(&config->run) * STEP_BYTES + ranks * RANK_BYTES;
    return output_check_space(folder->descriptor, folder->path, results + timeline + listed,
                              timeline > results ? timeline : results);
}
