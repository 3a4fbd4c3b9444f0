// SPDX-License-Identifier: MIT
// Checks that a communicator does what comm.h promises, for ranks as threads and as processes. Expected values come
// from plain loops over ranks, so two communicators that pass have equal bits.
#pragma once

#include "gswbench/comm.h"

enum { CONTRACT_RANKS_MAX = 16 };

// A check returns the number of errors on the caller's rank.
typedef int64_t contract_function(struct comm *comm);
struct contract_check {
    const char        *name;
    contract_function *check;
};
extern const struct contract_check contract_checks[];    // the last one has no name

// These three are also in the list. They check all collectives and formats with several sizes; all-to-alls with unequal
// and empty parts; and the control messages. The first two use groups of each size up to the number of ranks.
contract_function contract_check_collectives, contract_check_parts, contract_check_control;
