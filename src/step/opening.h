// SPDX-License-Identifier: MIT
// Steps of step_open: communicators, warm-up, memory.
#ifndef GSWBENCH_STEP_OPENING_H
#define GSWBENCH_STEP_OPENING_H

#include "internal.h"

// groups.c: opens the step's communicators. If the communicator enqueues its ops, also runs each distinct one once.
// Collective.
void groups_open(struct step *step);
void groups_close(struct step *step);

// Registers storages that the communicator allocated, and runs each distinct op again in them. With registered memory a
// library may choose other algorithms, which need other connections. Collective.
void groups_share(struct step *step);

// warm.c: runs each distinct compute op once on zeros, then clears the memory. Device only.
void step_warm(struct step *step);

void storages_open(struct step *step);
void storages_close(struct step *step);
void storages_clear(struct step *step);

// budget.c: fails on all ranks (EXIT_MEMORY) if the plan does not fit on one of them. Collective.
struct budget_extra {
    int64_t scratch;        // bytes that the backend reserves
    int64_t connections;    // bytes already taken by the communication library, for the error message
};
status budget_check(const struct plan *plan, struct backend *backend, struct comm *comm,
                    const struct budget_extra *extra);

#endif
