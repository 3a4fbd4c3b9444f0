// SPDX-License-Identifier: MIT
// Sums what a plan does: FLOPs by phase, transfers by kind and size, parameters, bytes.
#include "gswbench/account.h"

#include "gswbench/fatal.h"

static void count_transfer(const struct plan *plan, const struct op *op, struct account *account)
{
    int32_t              tensor = op->operand[TRANSFER_OUT] >= 0 ? op->operand[TRANSFER_OUT] : op->operand[TRANSFER_IN];
    struct plan_transfer transfer = {.kind       = (enum op_kind)op->kind,
                                     .axes       = plan->groups[op->shape.transfer.group].axes,
                                     .dtype      = plan->tensors[tensor].dtype,
                                     .elements   = op->shape.transfer.elements,
                                     .group_size = plan->groups[op->shape.transfer.group].size,
                                     .count      = 1};
    for (int32_t i = 0; i < account->transfer_count; i++) {
        struct plan_transfer *known = &account->transfers[i];
        if (known->kind == transfer.kind && known->axes == transfer.axes && known->dtype == transfer.dtype &&
            known->elements == transfer.elements) {
            known->count++;
            return;
        }
    }
    if (account->transfer_count == PLAN_TRANSFERS_MAX) {
        FATAL(EXIT_INTERNAL, "more than %d distinct transfers in a plan", PLAN_TRANSFERS_MAX);
    }
    account->transfers[account->transfer_count++] = transfer;
}

int64_t plan_quantized_bytes(const struct plan *plan)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op           = &plan->ops[i];
        bool             makes_copies = op->kind == OP_QUANTIZE || op->kind == OP_TRANSPOSE;
        for (int slot = makes_copies ? 0 : OP_FUSED + QUANTIZE_OUT; slot < op->operand_count; slot++) {
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
        if (op_is_transfer((enum op_kind)op->kind)) {
            count_transfer(plan, op, account);
        }
    }
    account->quantized_bytes = plan_quantized_bytes(plan);
    account->hardware_flops  = flops * (double)plan->mesh.world / (double)plan->train.global_batch;
    account->total_bytes     = plan_total_bytes(plan);
}

status plan_hardware_flops(const struct plan *plan, const struct plan_request *request, double *flops)
{
    int64_t        coordinates[AXIS_COUNT], stages = plan->mesh.size[AXIS_PP];
    struct account account;
    mesh_coordinates(&plan->mesh, plan->rank, coordinates);
    int64_t own = coordinates[AXIS_PP];
    *flops      = 0;
    for (int64_t stage = 0; stage < stages; stage++) {
        struct plan         built = {.tensors = NULL};
        struct plan_request other = *request;
        coordinates[AXIS_PP]      = stage;
        other.rank                = mesh_rank(&plan->mesh, coordinates);
        status result             = stage == own ? OK : plan_build(&built, &other);
        if (!failed(&result)) {
            plan_account(stage == own ? plan : &built, &account);
            *flops += account.hardware_flops / (double)stages;
        }
        plan_free(&built);
        if (failed(&result)) {
            return result;
        }
    }
    return OK;
}
