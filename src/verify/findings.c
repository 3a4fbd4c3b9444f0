// SPDX-License-Identifier: MIT
// Checks each op of a plan by itself: operands, shapes, formats and row counts. rank.c then checks order and memory.
#include "internal.h"

void findings_add(struct findings *findings, int32_t op, int32_t tensor, const char *what, int32_t other)
{
    const struct plan *plan = findings->plan;
    char               op_text[192], tensor_text[128] = "", other_text[192] = "";
    if (findings->count++ > 0) {
        return;
    }
    if (tensor >= 0) {
        plan_tensor_name(plan, tensor, tensor_text, sizeof(tensor_text));
    }
    if (other >= 0) {
        plan_op_name(plan, other, other_text, sizeof(other_text));
    }
    const char *quote = tensor >= 0 ? "\"" : "";
    findings->first   = fail_as(EXIT_INTERNAL, "plan of rank %lld: %s: %s%s%s%s%s%s%s", (long long)plan->rank,
                                plan_op_name(plan, op, op_text, sizeof(op_text)), what, tensor >= 0 ? " " : "", quote,
                                tensor_text, quote, other >= 0 ? ", used by " : "", other_text);
}

static void check_waits(struct findings *findings, int32_t op)
{
    const struct op *checked = &findings->plan->ops[op];
    for (int w = 0; w < checked->wait_count; w++) {
        if (checked->wait[w] < 0 || checked->wait[w] >= op) {
            findings_add(findings, op, -1, "waits for an op that does not come before it", -1);
        }
    }
}

// Checks a packed part, whose start in the whole tensor depends on row counts. The part must have room for the expected
// rows, and the whole tensor must have as many rows as routing_slots returns.
static void check_packed(struct findings *findings, int32_t op, int slot)
{
    const struct plan      *plan      = findings->plan;
    const struct op        *packed    = &plan->ops[op];
    const struct tensor    *part      = &plan->tensors[packed->operand[slot]];
    const struct row_count *row_count = &plan->row_counts[part->row_count - 1];
    int64_t                 whole     = routing_slots(&plan->ops[row_count->reader].shape.routing);
    if (op_operand_elements(packed, slot) > part->elements ||
        whole * plan_row_elements(plan, packed->operand[slot]) != plan->tensors[part->whole].elements) {
        findings_add(findings, op, packed->operand[slot], "has a shape that does not fit", -1);
    }
}

static void check_operand(struct findings *findings, int32_t op, int slot)
{
    const struct op        *checked   = &findings->plan->ops[op];
    int32_t                 tensor    = checked->operand[slot];
    const struct tensor    *operand   = &findings->plan->tensors[tensor];
    const struct row_count *row_count = plan_op_row_count(findings->plan, checked);
    struct op largest  = plan_op_of_rows(findings->plan, checked, row_count != NULL ? row_count->maximum : 0);
    int64_t   expected = op_operand_elements(&largest, slot);
    if (checked->access[slot] != op_operand_access(checked, slot)) {
        findings_add(findings, op, tensor, "does not read and write as its kind does:", -1);
    } else if (operand->is_packed && expected >= 0) {
        check_packed(findings, op, slot);
    } else if (expected >= 0 && expected != operand->elements) {
        findings_add(findings, op, tensor, "has a shape that does not fit", -1);
    } else if (operand->offset < 0 ||
               operand->offset + operand->bytes > findings->plan->storage_bytes[operand->storage]) {
        findings_add(findings, op, tensor, "leaves the storage of", -1);
    }
}

// Low-precision operands need scales and must be contiguous along k, the dimension that the GEMM sums over. Both
// operands have the same scaling, except that 1x128 blocks may be combined with 128x128 blocks, and NV blocks of 1x16
// with 16x16. The combination of two operands in 128x128 blocks is not supported.
static void check_gemm(struct findings *findings, int32_t op)
{
    const struct op *checked = &findings->plan->ops[op];
    const struct {
        int  slot, inverse_scale;
        bool is_along_k;    // contiguous along k
    } sides[] = {{GEMM_A, GEMM_INVERSE_SCALE_A, !checked->shape.gemm.transpose_a},
                 {GEMM_B, GEMM_INVERSE_SCALE_B, checked->shape.gemm.transpose_b}};
    for (int i = 0; i < 2; i++) {
        int32_t tensor = checked->operand[sides[i].slot];
        bool    is_fp8 = tensor >= 0 && format_is_low_precision(findings->plan->tensors[tensor].format);
        if (is_fp8 != (checked->operand[sides[i].inverse_scale] >= 0)) {
            findings_add(findings, op, tensor, is_fp8 ? "lacks the factor of" : "has a factor for", -1);
        } else if (is_fp8 && !sides[i].is_along_k) {
            findings_add(findings, op, tensor, "needs the transpose of", -1);
        }
    }
    int32_t a = checked->shape.gemm.scaling_a, b = checked->shape.gemm.scaling_b;
    bool    is_nv = scaling_is_nv((enum scaling)a);
    if (is_nv != (checked->operand[GEMM_TENSOR_SCALE_A] >= 0) ||
        is_nv != (checked->operand[GEMM_TENSOR_SCALE_B] >= 0)) {
        findings_add(findings, op, checked->operand[GEMM_A], "lacks the scale of the tensor, or has one for", -1);
    }
    if (is_nv != scaling_is_nv((enum scaling)b) || (a == SCALING_WHOLE) != (b == SCALING_WHOLE) ||
        (a == SCALING_MX) != (b == SCALING_MX) || (a == SCALING_ROWS) != (b == SCALING_ROWS) ||
        (a == SCALING_128X128 && b == SCALING_128X128)) {
        findings_add(findings, op, checked->operand[GEMM_B], "cannot multiply by the scaling of", -1);
    }
}

// A quantize op writes the quantized tensor, its transpose, or both, in one format, with scales for each unless the
// whole tensor has a single scale.
static void check_quantize(struct findings *findings, int32_t op)
{
    const struct tensor *tensors = findings->plan->tensors;
    struct op            checked = op_quantize_of(&findings->plan->ops[op]);
    int32_t              out = checked.operand[QUANTIZE_OUT], other = checked.operand[QUANTIZE_TRANSPOSED];
    int32_t              copy = out >= 0 ? out : other;
    if (copy < 0 || !format_is_low_precision(tensors[copy].format) ||
        (other >= 0 && tensors[other].format != tensors[copy].format)) {
        findings_add(findings, op, copy, "makes no low-precision copy", -1);
    }
    if (checked.shape.quantize.scaling != SCALING_WHOLE &&
        ((out >= 0) != (checked.operand[QUANTIZE_INVERSE_SCALE] >= 0) ||
         (other >= 0) != (checked.operand[QUANTIZE_TRANSPOSED_INVERSE_SCALE] >= 0))) {
        findings_add(findings, op, copy, "lacks the factors of", -1);
    }
    bool is_nv = scaling_is_nv((enum scaling)checked.shape.quantize.scaling);
    if ((is_nv && out >= 0) != (checked.operand[QUANTIZE_TENSOR_SCALE] >= 0) ||
        (is_nv && other >= 0) != (checked.operand[QUANTIZE_TRANSPOSED_TENSOR_SCALE] >= 0) ||
        checked.shape.quantize.is_stochastic != (checked.operand[QUANTIZE_HYPER] >= 0)) {
        findings_add(findings, op, copy, "lacks the scale of the tensor or random numbers for", -1);
    }
}

static void check_kind(struct findings *findings, int32_t op)
{
    const struct op *checked = &findings->plan->ops[op];
    for (int slot = 0; slot < OP_OPERANDS; slot++) {
        if (slot < checked->operand_count && checked->operand[slot] >= 0) {
            check_operand(findings, op, slot);
        } else if (!op_operand_is_optional(checked, slot)) {
            findings_add(findings, op, -1, "lacks an operand", -1);
        }
    }
    if (checked->kind == OP_GEMM) {
        check_gemm(findings, op);
    } else if (checked->kind == OP_QUANTIZE || op_is_fused(checked)) {
        check_quantize(findings, op);
    }
}

// Checks row counts. All operands of an op with a row count take it from one OP_READ_TOKEN_COUNTS in the same layer and
// microbatch, and are planned with the expected count.
static void check_row_counts(struct findings *findings, int32_t op)
{
    const struct plan      *plan    = findings->plan;
    const struct op        *checked = &plan->ops[op];
    const struct row_count *first   = plan_op_row_count(plan, checked);
    for (int slot = 0; slot < checked->operand_count && first != NULL; slot++) {
        int32_t row_count = checked->operand[slot] >= 0 ? plan->tensors[checked->operand[slot]].row_count : 0;
        if (row_count == 0) {
            continue;
        }
        const struct op *reader = &plan->ops[first->reader];
        bool             is_other =
            plan->row_counts[row_count - 1].reader != first->reader ||
            (&plan->row_counts[row_count - 1] != first && !op_is_communication((enum op_kind)checked->kind));
        if (is_other || reader->kind != OP_READ_TOKEN_COUNTS || reader->tag.layer != checked->tag.layer ||
            reader->tag.microbatch != checked->tag.microbatch) {
            findings_add(findings, op, checked->operand[slot], "follows what was counted for another op:", -1);
        }
        struct op planned = plan_op_of_rows(plan, checked, first->expected);
        if (op_operand_elements(&planned, slot) != op_operand_elements(checked, slot)) {
            findings_add(findings, op, checked->operand[slot], "has other rows than are expected of", -1);
        }
    }
}

static bool is_filled(const struct op *op, int slot)
{
    return op->operand[slot] >= 0 && op_operand_content(op, slot) != OP_HOLDS_VALUES;
}

static bool share_bytes(const struct tensor *one, const struct tensor *other)
{
    return one->storage == other->storage && one->offset < other->offset + other->bytes &&
           other->offset < one->offset + one->bytes;
}

// Checks that an op can run alone before the first step has written its operands (warm-up). Warm-up fills only indices,
// positions and counts. So every integer operand must declare which of these it holds, and filling one must not
// overwrite another.
static void check_warm_up(struct findings *findings, int32_t op)
{
    const struct op     *checked = &findings->plan->ops[op];
    const struct tensor *tensors = findings->plan->tensors;
    for (int slot = 0; slot < checked->operand_count && !op_is_communication((enum op_kind)checked->kind); slot++) {
        int32_t tensor = checked->operand[slot];
        bool    reads  = tensor >= 0 && (checked->access[slot] & ACCESS_READ);
        if (reads && is_filled(checked, slot) != (tensors[tensor].format == FORMAT_I32)) {
            findings_add(findings, op, tensor, "would run in warm-up on indices that nobody fills:", -1);
        }
        for (int other = slot + 1; other < checked->operand_count && reads && is_filled(checked, slot); other++) {
            if (is_filled(checked, other) && checked->operand[other] != tensor &&
                share_bytes(&tensors[tensor], &tensors[checked->operand[other]])) {
                findings_add(findings, op, tensor, "would run in warm-up on indices that are filled twice:", -1);
            }
        }
    }
}

void findings_check_op(struct findings *findings, int32_t op)
{
    check_waits(findings, op);
    check_row_counts(findings, op);
    check_kind(findings, op);
    check_warm_up(findings, op);
}
