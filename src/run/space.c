// SPDX-License-Identifier: MIT
// What a run writes into its folder, rather more than less: a model of a few steps writes 80 KB, a step 700 bytes more,
// an op of a timeline or of a file of transfers 150, another pipeline stage 90 KB.
#include "internal.h"

status space_check(const struct config *config, const struct plan *plan, int64_t ranks,
                   const struct output_folder *folder)
{
    enum { RUN_BYTES = 160 << 10, STEP_BYTES = 1 << 10, RANK_BYTES = 16 << 10, OP_BYTES = 256 };
    int64_t drawn = 0, listed = 0, transfers = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        transfers += op_is_transfer((enum op_kind)plan->ops[i].kind);
    }
    for (int64_t rank = 0; rank < ranks && config->trace.steps > 0; rank++) {
        drawn += trace_config_draws(&config->trace, rank);
        listed += trace_config_lists(&config->trace, rank);
    }
    int64_t timeline = drawn * plan->op_count * OP_BYTES;
    int64_t results =
        plan->mesh.size[AXIS_PP] * RUN_BYTES + run_steps_most(&config->run) * STEP_BYTES + ranks * RANK_BYTES;
    return output_check_space(folder->descriptor, folder->path, results + timeline + listed * transfers * OP_BYTES,
                              timeline > results ? timeline : results);
}
