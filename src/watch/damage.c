// SPDX-License-Identifier: MIT
// Damaged numbers with which a step cannot continue, such as impossible token counts. The rank that finds one waits;
// the watchdog of rank 0 writes an INVALID result and ends the job. Ranks of other hosts send rank 0 a datagram.
#include <stdlib.h>

#include "channel.h"
#include "gswbench/arena.h"
#include "gswbench/text.h"

void damage_note(struct board *board, int rank, int64_t step, const char *text)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&board->damage, &none, 1)) {
        return;
    }
    char copy[sizeof(board->damage_text)];
    text_copy(copy, sizeof(copy), text);
    board->damaged_rank = rank;
    board->damaged_step = step;
    for (size_t i = 0; i < sizeof(copy); i++) {
        atomic_store_explicit(&board->damage_text[i], copy[i], memory_order_relaxed);
    }
    board->damage = 2;
}

static void read_text(const struct board *board, char text[sizeof(board->damage_text)])
{
    for (size_t i = 0; i < sizeof(board->damage_text); i++) {
        text[i] = atomic_load_explicit(&board->damage_text[i], memory_order_relaxed);
    }
}

void damage_found(void *context, int rank, const char *text)
{
    struct watch *watch = context;
    int64_t       step  = watch->shown->step;
    for (int i = 0; i < watch->setup.comm->topology.local_ranks; i++) {    // ranks can be threads of one process
        if (watch->board->ranks[i].rank == rank) {
            step = watch->board->ranks[i].step;
        }
    }
    damage_note(watch->board, rank, step, text);
}

// A datagram can be lost, so every poll sends it again.
static void tell_first(struct watch *watch)
{
    struct letter *letter = memory_allocate(sizeof(*letter));
    char           text[sizeof(watch->board->damage_text)];
    read_text(watch->board, text);
    letter->kind          = LETTER_DAMAGE;
    letter->count         = 1;
    letter->posts[0].rank = watch->board->damaged_rank;
    letter->posts[0].step = watch->board->damaged_step;
    text_copy(letter->posts[0].where, sizeof(letter->posts[0].where), text);
    channel_send(watch->channel, 0, letter);
    free(letter);
}

void damage_look(struct watch *watch)
{
    const struct watch_setup *setup = &watch->setup;
    const struct board       *board = watch->board;
    if (board->damage != 2) {
        return;
    }
    if (setup->invalidate != NULL && watch_claim_end(watch)) {
        char text[sizeof(board->damage_text)];
        read_text(board, text);
        setup->invalidate(setup->context, board->damaged_rank, board->damaged_step, text);
    }
    if (watch->channel != NULL && setup->comm->topology.node != 0 && watch->shown->rank == board->damaged_rank) {
        tell_first(watch);
    }
}
