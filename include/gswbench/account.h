// SPDX-License-Identifier: MIT
// Sums over the ops of a plan: parameters, FLOPs, transfers, bytes.
#ifndef GSWBENCH_ACCOUNT_H
#define GSWBENCH_ACCOUNT_H

#include <stdint.h>

#include "gswbench/plan.h"

// Equal transfers of a step.
struct plan_transfer {
    enum op_kind kind;
    uint32_t     axes;
    enum format  format;
    int64_t      elements;    // of one transfer
    int64_t      group_size;
    int64_t      count;    // in one step
};
enum { PLAN_TRANSFERS_MAX = 256 };

struct account {
    int64_t              parameters;            // weights on this rank
    double               flops[PHASE_COUNT];    // executed
    double               hardware_flops;    // by the whole mesh for a sequence of the batch, if all stages are alike
    int64_t              ops[OP_COUNT];
    int64_t              quantized_bytes;    // read and written to make copies in FP8
    struct plan_transfer transfers[PLAN_TRANSFERS_MAX];
    int32_t              transfer_count;
    int64_t              total_bytes;    // all storages
};

void    plan_account(const struct plan *plan, struct account *account);
int64_t plan_quantized_bytes(const struct plan *plan);

#endif
