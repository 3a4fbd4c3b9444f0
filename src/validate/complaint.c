// SPDX-License-Identifier: MIT
// Shares errors between ranks and adds them to the result as reasons.
#include <stdlib.h>

#include "gswbench/text.h"
#include "internal.h"

int complaint_share(struct comm *comm, struct complaint *complaint)
{
    int               ranks = comm->topology.ranks, found = -1;
    struct complaint *all = comm_gather(comm, complaint, sizeof(*complaint));
    for (int rank = ranks - 1; rank >= 0; rank--) {
        found = all[rank].text[0] != '\0' ? rank : found;
    }
    if (found >= 0) {
        *complaint = all[found];
    }
    free(all);
    return found;
}

void validation_add_reason(const struct validation *validation, const char *id, int rank, int64_t step,
                           const char *message)
{
    struct result_reason reason = {.verdict = VERDICT_INVALID, .rank = rank, .step = step};
    text_copy(reason.id, sizeof(reason.id), id);
    text_copy(reason.message, sizeof(reason.message), message);
    result_add_reason(validation->setup.result, &reason);
}
