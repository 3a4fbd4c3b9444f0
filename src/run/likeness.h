// SPDX-License-Identifier: MIT
// Consistency check: compares named values between ranks.
#ifndef GSWBENCH_RUN_LIKENESS_H
#define GSWBENCH_RUN_LIKENESS_H

#include <stddef.h>
#include <stdint.h>

#include "conditions.h"

// On a mismatch: an error, a note, or only a record of values that may differ.
enum likeness_rule { LIKENESS_REQUIRED, LIKENESS_NOTED, LIKENESS_OWN };
struct likeness_kind {
    enum likeness_rule rule;
    bool               is_setting;    // printed as NAME = VALUE
    const char        *remedy;        // for LIKENESS_REQUIRED
};

// A value, compared by name; some ranks may not have it.
enum { LIKENESS_BYTES = 128, LIKENESS_TEXT_BYTES = 512 };
struct likeness {
    char                 name[64], value[LIKENESS_BYTES];    // value: truncated for display
    uint64_t             hash;                               // of the full value
    struct likeness_kind kind;
};
struct likeness_list {
    struct likeness *rows;
    int              count;
};
void likeness_add(struct likeness_list *list, const struct likeness_kind *kind, const char *name, const char *value);
void likeness_free(struct likeness_list *list);
void likeness_print_name(char *text, size_t bytes, const char *name);    // of a row, as it was added

// Fails (EXIT_LAUNCH) at the first required mismatch. Adds notes, and the ranks that differ from rank 0, to the place.
// Collective, with the same status on every rank.
status likeness_compare(const struct likeness_list *list, struct comm *comm, struct place *place);

// Describes a mismatch: "rank 3 on h2 has NAME this, 7 of 8 ranks, such as 0 on h1, that".
struct likeness_voice {
    char    host[64], value[LIKENESS_BYTES];
    char    name[64], remedy[96];    // "": missing on the rank
    int64_t rule;
};
void likeness_describe(char *text, size_t bytes, const char *name, const struct likeness_voice *voices, int ranks);

// deviations.c: adds ranks that differ from rank 0 to the place, grouped by value.
void deviations_add(struct place *place, const char *name, const struct likeness_voice *voices, int ranks);

#endif
