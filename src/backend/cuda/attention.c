// SPDX-License-Identifier: MIT
// Attention on the device: by cuDNN where it is there and takes the shape, else by kernels of our own. The choice is
// made when the op is prepared, and lasts.
#include "kernels/attention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudnn_attention.h"
#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "internal.h"

enum { ALIGNMENT = 256 };

static int64_t align(int64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int64_t row_sum_bytes(const struct attention_shape *shape)
{
    return align(shape->batch * shape->heads * shape->sequence * (int64_t)sizeof(float));
}

static int64_t query_elements(const struct attention_shape *shape)
{
    return shape->batch * shape->sequence * shape->heads * shape->head_dim;
}

static int64_t key_value_elements(const struct attention_shape *shape)
{
    return shape->batch * (shape->earlier + shape->sequence) * 2 * shape->kv_heads * shape->head_dim;
}

static bool is_backward(const struct op *op)
{
    return op->kind == OP_ATTENTION_BACKWARD;
}

// cuDNN writes bf16, and overwrites: what is fp32 or added to is made in scratch first. Of forward ops any may be fp32;
// it costs nothing to have the place for all, since their backward ops need more. Gradients are fp32 only where added
// to.
static int64_t out_bytes(const struct op *op)
{
    return is_backward(op) ? 0 : align(query_elements(&op->shape.attention) * dtype_bytes(DTYPE_BF16));
}

static int64_t query_gradient_bytes(const struct op *op)
{
    bool is_added = is_backward(op) && op->shape.attention.adds_query;
    return is_added ? align(query_elements(&op->shape.attention) * dtype_bytes(DTYPE_BF16)) : 0;
}

static int64_t key_gradient_bytes(const struct op *op)
{
    bool is_added = is_backward(op) && op->accumulates;
    return is_added ? align(key_value_elements(&op->shape.attention) * dtype_bytes(DTYPE_BF16)) : 0;
}

struct attention {
    int64_t                 choice;                // enum attention_choice
    struct cudnn_attention *cudnn;                 // NULL: not to be had
    status                  refusal;               // why
    bool                    has_cudnn, has_own;    // ops that were prepared for it
};

void cuda_attention_open(struct cuda *cuda, const struct backend_setup *setup)
{
    struct attention *attention = memory_allocate(sizeof(*attention));
    *attention                  = (struct attention){.choice = setup->attention};
    // cuDNN adds the gradients of queries in any order, so that no two runs give the same bits.
    if (attention->choice == ATTENTION_AUTO && setup->is_deterministic) {
        attention->refusal = fail("its results do not repeat bit by bit");
    } else if (attention->choice != ATTENTION_OWN) {
        attention->refusal = cudnn_attention_open(&attention->cudnn);
    }
    cuda->attention = attention;
}

void cuda_attention_close(struct cuda *cuda)
{
    if (cuda->attention->cudnn != NULL) {
        cudnn_attention_close(cuda->attention->cudnn);
    }
    free(cuda->attention);
}

// Whether cuDNN does the op, and the scratch that it then needs.
static bool is_by_cudnn(const struct attention *attention, const struct op *op, int64_t *scratch_bytes, status *refusal)
{
    *refusal =
        attention->cudnn == NULL ? attention->refusal : cudnn_attention_prepare(attention->cudnn, op, scratch_bytes);
    return attention->cudnn != NULL && !failed(refusal);
}

status cuda_attention_prepare(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct cuda *cuda      = backend->state;
    struct attention  *attention = cuda->attention;
    int64_t            bytes;
    status             refusal;
    if (buffers[0].dtype != DTYPE_BF16) {
        return fail("[run] backend = cuda has attention in bf16 only, not in %s", dtype_name(buffers[0].dtype));
    }
    if (is_by_cudnn(attention, op, &bytes, &refusal)) {
        attention->has_cudnn = true;
        return OK;
    }
    if (attention->choice == ATTENTION_CUDNN) {
        return fail_as(EXIT_LAUNCH, "[run] attention = cudnn: %.900s", refusal.text);
    }
    if (op->shape.attention.head_dim > ATTENTION_HEAD_MAX) {
        return fail("[model] head_dim = %lld: kernels of our own go to %d, and cuDNN does not help: %.700s",
                    (long long)op->shape.attention.head_dim, (int)ATTENTION_HEAD_MAX, refusal.text);
    }
    int needed = kernel_attention_shared_bytes(op->shape.attention.head_dim, is_backward(op));
    if (needed > cuda->shared_bytes) {
        return fail(
            "[model] head_dim = %lld: kernels of our own need %d KiB of shared memory, of which a block of this "
            "device has %d, and cuDNN does not help: %.700s",
            (long long)op->shape.attention.head_dim, (needed + 1023) / 1024, cuda->shared_bytes / 1024, refusal.text);
    }
    attention->has_own = true;
    return OK;
}

int64_t cuda_attention_scratch(const struct cuda *cuda, const struct op *op)
{
    int64_t bytes = 0;
    status  refusal;
    if (is_by_cudnn(cuda->attention, op, &bytes, &refusal)) {
        return align(bytes) + out_bytes(op) + query_gradient_bytes(op) + key_gradient_bytes(op);
    }
    return is_backward(op) ? row_sum_bytes(&op->shape.attention) : 0;
}

static void cast(struct backend *backend, const struct buffer *from, const struct buffer *to, bool accumulates)
{
    struct op cast = {
        .kind = OP_CAST, .lane = LANE_COMPUTE, .accumulates = accumulates, .shape.elements.elements = from->elements};
    cuda_cast(backend, &cast, (struct buffer[OP_OPERANDS]){[CAST_IN] = *from, [CAST_OUT] = *to});
}

static void run_cudnn(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS],
                      int64_t scratch_bytes)
{
    const struct cuda            *cuda  = backend->state;
    const struct attention_shape *shape = &op->shape.attention;
    struct buffer                 bound[OP_OPERANDS];
    struct buffer                *out = &bound[ATTENTION_OUT], *dq = &bound[ATTENTION_GRADIENT_QUERY],
                  *dkv = &bound[ATTENTION_GRADIENT_KEY_VALUE];
    bool  is_part      = !is_backward(op) && buffers[ATTENTION_OUT].dtype == DTYPE_F32;
    char *fresh        = (char *)cuda->scratch + align(scratch_bytes);

    memcpy(bound, buffers, sizeof(bound));
    if (is_part) {
        *out = (struct buffer){fresh, query_elements(shape), DTYPE_BF16};
    }
    if (query_gradient_bytes(op) > 0) {
        *dq = (struct buffer){fresh, query_elements(shape), DTYPE_BF16};
    }
    if (key_gradient_bytes(op) > 0) {
        *dkv = (struct buffer){fresh + query_gradient_bytes(op), key_value_elements(shape), DTYPE_BF16};
    }
    status result = cudnn_attention_run(cuda->attention->cudnn, op, bound, cuda->scratch, cuda_stream(backend, op));
    if (failed(&result)) {
        FATAL(EXIT_LOST, "%s", result.text);
    }
    if (is_part) {
        cast(backend, out, &buffers[ATTENTION_OUT], false);
    }
    if (query_gradient_bytes(op) > 0) {
        cast(backend, dq, &buffers[ATTENTION_GRADIENT_QUERY], true);
    }
    if (key_gradient_bytes(op) > 0) {
        cast(backend, dkv, &buffers[ATTENTION_GRADIENT_KEY_VALUE], true);
    }
}

static struct attention_kernel_shape kernel_shape(const struct attention_shape *shape)
{
    return (struct attention_kernel_shape){.batch     = shape->batch,
                                           .sequence  = shape->sequence,
                                           .keys      = shape->earlier + shape->sequence,
                                           .heads     = shape->heads,
                                           .kv_heads  = shape->kv_heads,
                                           .head_dim  = shape->head_dim,
                                           .scale     = shape->scale,
                                           .is_causal = shape->causal};
}

static void run_forward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct kernel_target target = cuda_target(backend, op);
    CUDA_CHECK(
        kernel_attention_forward(&(struct attention_forward_args){.shape      = kernel_shape(&op->shape.attention),
                                                                  .query      = buffers[ATTENTION_QUERY].data,
                                                                  .key_value  = buffers[ATTENTION_KEY_VALUE].data,
                                                                  .out        = buffers[ATTENTION_OUT].data,
                                                                  .statistics = buffers[ATTENTION_STATISTICS].data,
                                                                  .out_type   = buffers[ATTENTION_OUT].dtype},
                                 &target));
}

static void run_backward(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct cuda   *cuda   = backend->state;
    struct kernel_target target = cuda_target(backend, op);
    CUDA_CHECK(kernel_attention_backward(
        &(struct attention_backward_args){.shape                   = kernel_shape(&op->shape.attention),
                                          .out_gradient            = buffers[ATTENTION_GRADIENT_OUT].data,
                                          .query                   = buffers[ATTENTION_GRADIENT_QUERY_IN].data,
                                          .key_value               = buffers[ATTENTION_GRADIENT_KEY_VALUE_IN].data,
                                          .out                     = buffers[ATTENTION_GRADIENT_OUT_IN].data,
                                          .statistics              = buffers[ATTENTION_GRADIENT_STATISTICS].data,
                                          .query_gradient          = buffers[ATTENTION_GRADIENT_QUERY].data,
                                          .key_value_gradient      = buffers[ATTENTION_GRADIENT_KEY_VALUE].data,
                                          .row_sums                = cuda->scratch,
                                          .adds_query              = op->shape.attention.adds_query,
                                          .adds_key_value          = op->accumulates,
                                          .query_gradient_type     = buffers[ATTENTION_GRADIENT_QUERY].dtype,
                                          .key_value_gradient_type = buffers[ATTENTION_GRADIENT_KEY_VALUE].dtype},
        &target));
}

void cuda_attention(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct cuda *cuda = backend->state;
    int64_t            bytes;
    status             refusal;
    if (is_by_cudnn(cuda->attention, op, &bytes, &refusal)) {
        run_cudnn(backend, op, buffers, bytes);
    } else if (is_backward(op)) {
        run_backward(backend, op, buffers);
    } else {
        run_forward(backend, op, buffers);
    }
}

void cuda_attention_describe(const struct cuda *cuda, char *text, size_t bytes)
{
    const struct attention *attention   = cuda->attention;
    char                    version[32] = "";
    if (attention->has_cudnn) {
        cudnn_attention_version(attention->cudnn, version, sizeof(version));
    }
    bool is_used = attention->has_cudnn || attention->has_own;
    snprintf(text, bytes, "%s%s%s%s", is_used ? ", attention by " : "", version,
             attention->has_cudnn && attention->has_own ? " and " : "", attention->has_own ? "own kernels" : "");
}
