// SPDX-License-Identifier: MIT
// Collects text from ranks into files of rank 0.
#include "collect.h"

#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"

void collect_append(struct output *file, const void *data, size_t bytes, status *written)
{
    if (!failed(written)) {
        *written = output_append(file, data, bytes);
    }
}

// Broadcasts the text in pieces, so no rank stores more than a piece of another's.
void collect_text(struct comm *comm, int rank, const struct text_stream *own, struct output *file, status *written)
{
    enum { PIECE = 1 << 16 };
    struct piece {
        size_t bytes, left;    // left: bytes after this piece
        char   text[PIECE];
    } *piece    = memory_allocate(sizeof(*piece));
    piece->left = own->bytes;
    do {
        if (comm->topology.rank == rank) {
            const char *next = own->data + own->bytes - piece->left;
            piece->bytes     = piece->left < PIECE ? piece->left : PIECE;
            piece->left -= piece->bytes;
            memcpy(piece->text, next, piece->bytes);
        }
        comm->ops->share(comm, piece, sizeof(*piece), rank);
        if (comm->topology.rank == 0) {
            collect_append(file, piece->text, piece->bytes, written);
        }
    } while (piece->left > 0);
    free(piece);
}
