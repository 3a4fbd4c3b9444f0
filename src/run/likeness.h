// SPDX-License-Identifier: MIT
// What is to be alike on all ranks, and what is said of those that have it otherwise.
#ifndef GSWBENCH_RUN_LIKENESS_H
#define GSWBENCH_RUN_LIKENESS_H

#include <stddef.h>
#include <stdint.h>

#include "gswbench/comm.h"
#include "gswbench/status.h"
#include "gswbench/text.h"

// By its name; with a remedy it has to be.
enum { LIKENESS_BYTES = 128, LIKENESS_TEXT_BYTES = 512 };
struct likeness {
    char        name[48], value[LIKENESS_BYTES];    // value: as much as can be shown
    uint64_t    hash;                               // of all of it
    const char *remedy;                             // NULL: a difference is noted, and the run goes on
};
struct likeness_list {
    struct likeness *rows;
    int              count;
};
void likeness_add(struct likeness_list *list, const char *name, const char *value, const char *remedy);
void likeness_free(struct likeness_list *list);

// Fails (EXIT_LAUNCH) with the first row that differs between ranks and must not; adds others to notes, a line each.
// Collective over ranks whose lists have the same rows; every rank returns the same.
status likeness_compare(const struct likeness_list *list, struct comm *comm, struct text_buffer *notes);

// "rank 3 on h2 has NAME this, 7 of 8 ranks, such as 0 on h1, that", of ranks that do not all say the same.
struct likeness_voice {
    char host[64], value[LIKENESS_BYTES];
};
void likeness_describe(char *text, size_t bytes, const char *name, const struct likeness_voice *voices, int ranks);

#endif
