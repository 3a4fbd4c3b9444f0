// SPDX-License-Identifier: MIT
// Attention on the device: by cuDNN where it is there and takes the shape, else by kernels of our own. The choice is
// made when the op is prepared, and lasts.
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
    return is_backward(op) ? 0 : align(format_bytes(FORMAT_BF16, query_elements(&op->shape.attention)));
}

static int64_t query_gradient_bytes(const struct op *op)
{
    bool is_added = is_backward(op) && op->shape.attention.adds_query;
    return is_added ? align(format_bytes(FORMAT_BF16, query_elements(&op->shape.attention))) : 0;
}

static int64_t key_gradient_bytes(const struct op *op)
{
    bool is_added = is_backward(op) && op->accumulates;
    return is_added ? align(format_bytes(FORMAT_BF16, key_value_elements(&op->shape.attention))) : 0;
}

// An op that cuDNN does.
struct by_cudnn {
    struct prepared           prepared;
    const struct cudnn_entry *entry;
    int64_t                   scratch_bytes;    // cuDNN's own
    struct by_cudnn          *next;
};

struct attention {
    int64_t                 choice;     // enum attention_choice
    struct cudnn_attention *cudnn;      // NULL: not to be had
    status                  refusal;    // why
    struct by_cudnn        *ops;
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
    struct attention *attention = cuda->attention;
    while (attention->ops != NULL) {
        struct by_cudnn *op = attention->ops;
        attention->ops      = op->next;
        free(op);
    }
    if (attention->cudnn != NULL) {
        cudnn_attention_close(attention->cudnn);
    }
    free(attention);
}

static prepared_run run_cudnn;

// What cuDNN does the op with; NULL: it does not.
static const struct by_cudnn *find_cudnn(struct attention *attention, const struct op *op, status *refusal)
{
    const struct cudnn_entry *entry = NULL;
    int64_t                   bytes;
    *refusal =
        attention->cudnn == NULL ? attention->refusal : cudnn_attention_prepare(attention->cudnn, op, &entry, &bytes);
    if (attention->cudnn == NULL || failed(refusal)) {
        return NULL;
    }
    struct by_cudnn *known = attention->ops;
    while (known != NULL && known->entry != entry) {
        known = known->next;
    }
    if (known == NULL) {
        known          = memory_allocate(sizeof(*known));
        *known         = (struct by_cudnn){{run_cudnn}, entry, bytes, attention->ops};
        attention->ops = known;
    }
    return known;
}

status cuda_attention_prepare(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS],
                              const struct prepared **prepared)
{
    const struct cuda *cuda      = backend->state;
    struct attention  *attention = cuda->attention;
    status             refusal;
    TRY(backend_check_op(backend->ops->name, op, buffers));
    const struct by_cudnn *chosen = find_cudnn(attention, op, &refusal);
    if (chosen != NULL) {
        attention->has_cudnn = true;
        *prepared            = &chosen->prepared;
        return OK;
    }
    if (attention->choice == ATTENTION_CUDNN) {
        return fail_as(EXIT_LAUNCH, "[run] attention = cudnn: %.900s", refusal.text);
    }
    status own = device_attention_check(&cuda->device, op);
    if (failed(&own)) {
        return fail("%.300s, and cuDNN does not help: %.600s", own.text, refusal.text);
    }
    attention->has_own = true;
    return OK;
}

int64_t cuda_attention_scratch(struct cuda *cuda, const struct op *op)
{
    status                 refusal;
    const struct by_cudnn *chosen = find_cudnn(cuda->attention, op, &refusal);
    if (chosen != NULL) {
        return align(chosen->scratch_bytes) + out_bytes(op) + query_gradient_bytes(op) + key_gradient_bytes(op);
    }
    return is_backward(op) ? device_attention_backward_scratch(op, NULL) : 0;
}

static void cast(struct backend *backend, const struct buffer *from, const struct buffer *to, bool accumulates)
{
    struct op cast = {
        .kind = OP_CAST, .lane = LANE_COMPUTE, .accumulates = accumulates, .shape.elements.elements = from->elements};
    device_cast(backend, &cast, (struct buffer[OP_OPERANDS]){[CAST_IN] = *from, [CAST_OUT] = *to});
}

static void run_cudnn(struct backend *backend, const struct prepared *prepared, const struct op *op,
                      const struct buffer buffers[OP_OPERANDS])
{
    const struct cuda            *cuda  = backend->state;
    const struct by_cudnn        *by    = (const struct by_cudnn *)prepared;    // its first member
    const struct attention_shape *shape = &op->shape.attention;
    struct buffer                 bound[OP_OPERANDS];
    struct buffer                *out = &bound[ATTENTION_OUT], *dq = &bound[ATTENTION_GRADIENT_QUERY],
                  *dkv = &bound[ATTENTION_GRADIENT_KEY_VALUE];
    bool  is_part      = !is_backward(op) && buffers[ATTENTION_OUT].format == FORMAT_F32;
    char *fresh        = (char *)cuda->device.scratch + align(by->scratch_bytes);

    memcpy(bound, buffers, sizeof(bound));
    if (is_part) {
        *out = (struct buffer){fresh, query_elements(shape), FORMAT_BF16};
    }
    if (query_gradient_bytes(op) > 0) {
        *dq = (struct buffer){fresh, query_elements(shape), FORMAT_BF16};
    }
    if (key_gradient_bytes(op) > 0) {
        *dkv = (struct buffer){fresh + query_gradient_bytes(op), key_value_elements(shape), FORMAT_BF16};
    }
    struct cudnn_memory memory = {bound, cuda->device.scratch, cuda_stream(backend, op)};
    status              result = cudnn_attention_run(cuda->attention->cudnn, by->entry, op, &memory);
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
