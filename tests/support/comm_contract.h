// SPDX-License-Identifier: MIT
// Checks the contract of every communicator, for ranks as threads and as processes. Expected values come from plain
// loops over ranks, so two communicators that pass give the same bits.
#pragma once

#include "gswbench/comm.h"

enum { CONTRACT_RANKS_MAX = 16 };

// A check returns the number of errors on the caller's rank.
typedef int64_t contract_function(struct comm *comm);
struct contract_check {
    const char        *name;
    contract_function *check;
};
extern const struct contract_check contract_checks[];    // end without a name

// Of these: every collective and format at several sizes, all-to-alls with unequal and empty parts, both on groups of
// each size up to the world's; and the control plane.
contract_function contract_check_collectives, contract_check_parts, contract_check_control;
