// SPDX-License-Identifier: MIT
// What is to be alike on all ranks, and what is said of those that have it otherwise.
#ifndef GSWBENCH_RUN_LIKENESS_H
#define GSWBENCH_RUN_LIKENESS_H

#include <stddef.h>
#include <stdint.h>

#include "conditions.h"

// What follows where ranks differ: an error, a note, or nothing but a record, since it is theirs to choose.
enum likeness_rule { LIKENESS_REQUIRED, LIKENESS_NOTED, LIKENESS_OWN };
struct likeness_kind {
    enum likeness_rule rule;
    bool               is_setting;    // said as NAME = VALUE
    const char        *remedy;        // of what is required
};

// By its name, which some ranks may not have.
enum { LIKENESS_BYTES = 128, LIKENESS_TEXT_BYTES = 512 };
struct likeness {
    char                 name[64], value[LIKENESS_BYTES];    // value: as much as can be shown
    uint64_t             hash;                               // of all of it
    struct likeness_kind kind;
};
struct likeness_list {
    struct likeness *rows;
    int              count;
};
void likeness_add(struct likeness_list *list, const struct likeness_kind *kind, const char *name, const char *value);
void likeness_free(struct likeness_list *list);
void likeness_print_name(char *text, size_t bytes, const char *name);    // of a row, as it was added

// Fails (EXIT_LAUNCH) with the first row that differs between ranks and must not; adds notes and the ranks that have
// another value than rank 0 to the place. Collective; every rank returns the same.
status likeness_compare(const struct likeness_list *list, struct comm *comm, struct place *place);

// "rank 3 on h2 has NAME this, 7 of 8 ranks, such as 0 on h1, that", of ranks that do not all say the same.
struct likeness_voice {
    char    host[64], value[LIKENESS_BYTES];
    char    name[64], remedy[96];    // "": the rank does not have it
    int64_t rule;
};
void likeness_describe(char *text, size_t bytes, const char *name, const struct likeness_voice *voices, int ranks);

// deviations.c: adds the ranks that say something else than rank 0 to the place, by what they say.
void deviations_add(struct place *place, const char *name, const struct likeness_voice *voices, int ranks);

#endif
