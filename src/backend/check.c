// SPDX-License-Identifier: MIT
// Limits of each backend, available in every build and without a device.
#include <string.h>

#include "gswbench/backend.h"
#include "gswbench/backend_widths.h"
#include "gswbench/gemm.h"
#include "kernels/attention.h"
#include "kernels/norm.h"

static status check_gemm(const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct gemm_key key      = {.shape     = op->shape.gemm,
                                .a         = buffers[GEMM_A].format,
                                .b         = buffers[GEMM_B].format,
                                .c         = buffers[GEMM_C].format,
                                .sums_fast = op->sums_fast};
    status          result   = gemm_check(&key);
    bool            has_bias = op->operand[GEMM_BIAS] >= 0 && buffers[GEMM_BIAS].data != NULL;
    if (has_bias && buffers[GEMM_BIAS].format != key.c &&
        (buffers[GEMM_BIAS].format != FORMAT_BF16 || key.c != FORMAT_F32)) {
        return fail("[run] backend = cuda: %.300s: no bias in %s is added in %s", op->tag.role,
                    format_name(buffers[GEMM_BIAS].format), format_name(key.c));
    }
    return failed(&result) ? fail("[run] backend = cuda: %.300s: %.600s", op->tag.role, result.text) : OK;
}

static status check_device_op(const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    bool is_attention = op->kind == OP_ATTENTION_FORWARD || op->kind == OP_ATTENTION_BACKWARD;
    if (is_attention && buffers[ATTENTION_QUERY].format != FORMAT_BF16) {
        return fail("[run] backend = cuda supports attention in bf16 only, not in %s",
                    format_name(buffers[ATTENTION_QUERY].format));
    }
    return op->kind == OP_GEMM ? check_gemm(op, buffers) : OK;
}

// Backends with limits; one without a row supports every op.
struct refusal {
    const char           *name;
    bool                  lacks_fp32;    // attention in bf16 only
    struct backend_widths widths;
    status (*check)(const struct op *op, const struct buffer buffers[OP_OPERANDS]);    // NULL: supports every op
};
// cuDNN has the same head limit (https://docs.nvidia.com/cudnn/operations/Attention), and its frontend refuses head
// dimensions that are not multiples of 8 (https://github.com/NVIDIA/cudnn-frontend).
static const struct refusal refusals[] = {
    {"cuda", true, {ATTENTION_HEAD_MAX, NORM_COLUMNS_MAX, true}, check_device_op}};

static const struct refusal *find(const char *name)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        if (strcmp(name, refusals[i].name) == 0) {
            return &refusals[i];
        }
    }
    return NULL;
}

bool backend_lacks_fp32(const char *name)
{
    const struct refusal *refusal = find(name);
    return refusal != NULL && refusal->lacks_fp32;
}

struct backend_widths backend_widths(const char *name)
{
    const struct refusal *refusal = find(name);
    return refusal != NULL ? refusal->widths : (struct backend_widths){INT64_MAX, INT64_MAX, false};
}

status backend_check_op(const char *name, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct refusal *refusal = find(name);
    return refusal != NULL && refusal->check != NULL ? refusal->check(op, buffers) : OK;
}
