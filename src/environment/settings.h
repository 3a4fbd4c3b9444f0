// SPDX-License-Identifier: MIT
// Consistency check: compares named values between ranks.
#ifndef GSWBENCH_ENVIRONMENT_SETTINGS_H
#define GSWBENCH_ENVIRONMENT_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "internal.h"

void settings_add(struct setting_list *list, const struct setting_kind *kind, const char *name, const char *value);

// Fails (EXIT_LAUNCH) at the first required mismatch. Adds notes, and the ranks that differ from rank 0, to the
// environment. Collective, with the same status on every rank.
status settings_compare(const struct setting_list *list, struct comm *comm, struct rank_environment *environment);

// Describes a mismatch: "rank 3 on h2 has NAME this, 7 of 8 ranks, such as 0 on h1, that".
struct rank_value {
    char    host[64], value[SETTING_BYTES];
    char    name[64], remedy[96];    // "": missing on the rank
    int64_t rule;
};
void mismatch_describe(char *text, size_t bytes, const char *name, const struct rank_value *voices, int ranks);

// mismatches.c: adds ranks that differ from rank 0 to the environment, grouped by value.
void mismatches_add(struct rank_environment *environment, const char *name, const struct rank_value *voices, int ranks);

#endif
