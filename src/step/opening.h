// SPDX-License-Identifier: MIT
// What a step takes when it is opened: connections, and memory.
#ifndef GSWBENCH_STEP_OPENING_H
#define GSWBENCH_STEP_OPENING_H

#include "internal.h"

// groups.c: opens the communicators of a step's groups, and makes its transfers once where they are enqueued.
// Collective.
void groups_open(struct step *step);
void groups_close(struct step *step);

// Lets the groups know of the storages that the communicator lends, and makes the transfers once more in them: with
// known memory a library may choose otherwise, and connect what that needs. Collective.
void groups_share(struct step *step);

// warm.c: runs each distinct op that computes once, on zeros, and leaves zeros. For a device.
void step_warm(struct step *step);

// storage.c
void storages_open(struct step *step);
void storages_close(struct step *step);
void storages_clear(struct step *step);    // to zeros, as they were allocated

// budget.c: fails (EXIT_MEMORY) on every rank when a rank's plan does not fit. Collective.
struct budget_extra {
    int64_t scratch;        // that the backend reserves
    int64_t connections;    // what the communicator's library has taken, and is no longer available
};
status budget_check(const struct plan *plan, struct backend *backend, struct comm *comm,
                    const struct budget_extra *extra);

#endif
