// SPDX-License-Identifier: MIT
// Sums the ops of a plan: FLOPs by phase, communication by kind and size, parameters, bytes.
#include "gswbench/verify.h"

#include "gswbench/fatal.h"
#include "gswbench/op_table.h"

static void count_communication(const struct plan *plan, const struct op *op, struct account *account)
{
    int32_t tensor =
        op->operand[COMMUNICATION_OUT] >= 0 ? op->operand[COMMUNICATION_OUT] : op->operand[COMMUNICATION_IN];
    struct plan_communication communication = {.kind       = (enum op_kind)op->kind,
                                               .axes       = plan->groups[op->shape.communication.group].axes,
                                               .format     = plan->tensors[tensor].format,
                                               .elements   = op->shape.communication.elements,
                                               .group_size = plan->groups[op->shape.communication.group].size,
                                               .count      = 1};
    for (int32_t i = 0; i < account->communication_count; i++) {
        struct plan_communication *known = &account->communications[i];
        if (known->kind == communication.kind && known->axes == communication.axes &&
            known->format == communication.format && known->elements == communication.elements) {
            known->count++;
            return;
        }
    }
    if (account->communication_count == PLAN_COMMUNICATIONS_MAX) {
        FATAL(EXIT_INTERNAL, "more than %d distinct communication ops in a plan", PLAN_COMMUNICATIONS_MAX);
    }
    account->communications[account->communication_count++] = communication;
}

int64_t plan_quantized_bytes(const struct plan *plan)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op           = &plan->ops[i];
        bool             makes_copies = op_table[op->kind].part == OP_PART_CAST;
        int              end          = makes_copies || op_is_fused(op) ? op->operand_count : 0;
        for (int slot = makes_copies ? 0 : OP_FUSED + QUANTIZE_OUT; slot < end; slot++) {
            bytes += op->operand[slot] >= 0 ? plan->tensors[op->operand[slot]].bytes : 0;
        }
    }
    return bytes;
}

void plan_account(const struct plan *plan, struct account *account)
{
    *account = (struct account){.parameters = 0};
    for (int32_t w = 0; w < plan->weight_count; w++) {
        for (int32_t p = 0; p < plan->weights[w].part_count; p++) {
            account->parameters += plan->weights[w].part[p].local_rows * plan->weights[w].part[p].local_columns;
        }
    }
    double flops = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        account->ops[op->kind]++;
        account->flops[op->tag.phase] += op_flops(op);
        flops += op_flops(op);
        if (op_is_communication((enum op_kind)op->kind)) {
            count_communication(plan, op, account);
        }
    }
    account->quantized_bytes = plan_quantized_bytes(plan);
    account->hardware_flops = (flops + plan->owner_flops) * (double)plan->mesh.world / (double)plan->train.global_batch;
    account->total_bytes    = plan_total_bytes(plan);
}
