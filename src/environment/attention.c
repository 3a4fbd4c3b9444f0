// SPDX-License-Identifier: MIT
// Compares the attention implementation between ranks.
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/text.h"

static void add_note(struct result *result, const char *id, int rank, const char *text)
{
    struct result_reason reason = {.verdict = VERDICT_VALID, .rank = rank, .step = -1};
    text_copy(reason.id, sizeof(reason.id), id);
    snprintf(reason.message, sizeof(reason.message), "%.255s", text);
    result_add_reason(result, &reason);
}

// Reports the first rank where our kernels replace cuDNN.
static void note_refusal(struct result *result, const struct backend_attention *ranks, int count)
{
    for (int rank = 0; rank < count; rank++) {
        if (ranks[rank].refusal[0] != '\0') {
            char text[256];
            snprintf(text, sizeof(text), "attention by gswbench's kernels, not cuDNN: %.200s", ranks[rank].refusal);
            add_note(result, "own-attention", rank, text);
            return;
        }
    }
}

// If implementations differ, the job waits for the slowest.
static void note_difference(struct result *result, const struct backend_attention *ranks, int count)
{
    for (int rank = 1; rank < count; rank++) {
        const struct backend_attention *one = &ranks[rank];
        if (strcmp(one->provider, ranks->provider) != 0 || strcmp(one->library, ranks->library) != 0) {
            char text[256];
            snprintf(text, sizeof(text), "attention on rank %d is by %s %s, on rank 0 by %s %s", rank, one->provider,
                     one->library, ranks->provider, ranks->library);
            add_note(result, "attention-differs", rank, text);
            return;
        }
    }
}

void attention_gather(struct result *result, struct comm *comm, struct backend *backend)
{
    struct backend_attention own = {.provider = ""};
    if (backend->ops->attention == NULL) {    // the same backend on all ranks
        return;
    }
    backend->ops->attention(backend, &own);
    struct backend_attention *ranks = comm_gather(comm, &own, sizeof(own));
    text_copy(result->attention.provider, sizeof(result->attention.provider), ranks->provider);
    text_copy(result->attention.library, sizeof(result->attention.library), ranks->library);
    text_copy(result->attention.engines, sizeof(result->attention.engines), ranks->engines);
    text_copy(result->attention.refusal, sizeof(result->attention.refusal), ranks->refusal);
    note_refusal(result, ranks, comm->topology.ranks);
    note_difference(result, ranks, comm->topology.ranks);
    free(ranks);
}
