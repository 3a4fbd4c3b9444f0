// SPDX-License-Identifier: MIT
// Notes on the ranks' environment, the same on all ranks.
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "internal.h"

void environment_note(struct environment_notes *notes, const char *id, const char *format, ...)
{
    va_list arguments;
    notes->list                   = memory_resize(notes->list, (size_t)(notes->count + 1) * sizeof(*notes->list));
    struct environment_note *note = &notes->list[notes->count++];
    note->id                      = id;
    va_start(arguments, format);
    vsnprintf(note->text, sizeof(note->text), format, arguments);
    va_end(arguments);
}

struct voice {
    char host[64], text[NOTE_TEXT_BYTES];
};

void environment_note_ranks(struct environment_notes *notes, const char *id, struct comm *comm, const char *own)
{
    int          ranks = comm->topology.ranks, count = 0, first = ranks;
    struct voice mine;
    memset(&mine, 0, sizeof(mine));
    text_copy(mine.host, sizeof(mine.host), comm->topology.host);
    text_copy(mine.text, sizeof(mine.text), own);
    struct voice *all = comm_gather(comm, &mine, sizeof(mine));
    for (int rank = ranks - 1; rank >= 0; rank--) {
        if (all[rank].text[0] != '\0') {
            first = rank;
            count++;
        }
    }
    char more[48] = "";
    if (count > 1) {
        snprintf(more, sizeof(more), " (as %d of %d ranks)", count, ranks);
    }
    if (count > 0) {
        environment_note(notes, id, "rank %d on %.40s%s: %s", first, all[first].host, more, all[first].text);
    }
    free(all);
}
