// SPDX-License-Identifier: MIT
// Every kernel on the processor, by the emulator, against the host backend.
#include "op_cases.h"

#include "../src/backend/cuda/internal.h"

extern bool emulator_is_reversed;

// clang-format off
static op_run *const run[OP_COUNT] = {
    [OP_EMBEDDING_FORWARD]   = cuda_embedding_forward,
    [OP_EMBEDDING_BACKWARD]  = cuda_embedding_backward,
    [OP_NORM_FORWARD]        = cuda_norm_forward,
    [OP_NORM_BACKWARD]       = cuda_norm_backward,
    [OP_ROPE_FORWARD]        = cuda_rope_forward,
    [OP_ROPE_BACKWARD]       = cuda_rope_backward,
    [OP_ATTENTION_MERGE]     = cuda_attention_merge,
    [OP_ACTIVATION_FORWARD]  = cuda_activation_forward,
    [OP_ACTIVATION_BACKWARD] = cuda_activation_backward,
    [OP_ROUTE_FORWARD]       = cuda_route_forward,
    [OP_ROUTE_BACKWARD]      = cuda_route_backward,
    [OP_DISPATCH]            = cuda_dispatch,
    [OP_COMBINE]             = cuda_combine,
    [OP_COMBINE_BACKWARD]    = cuda_combine_backward,
    [OP_LOGIT_STATISTICS]    = cuda_logit_statistics,
    [OP_CROSS_ENTROPY]       = cuda_cross_entropy,
    [OP_LOSS_SUM]            = cuda_loss_sum,
    [OP_CAST]                = cuda_cast,
    [OP_CLEAR]               = cuda_clear,
    [OP_SQUARE_SUM]          = cuda_square_sum,
    [OP_CLIP]                = cuda_clip,
    [OP_ADAMW]               = cuda_adamw,
};
static cuda_scratch *const scratch[OP_COUNT] = {
    [OP_EMBEDDING_BACKWARD]  = cuda_embedding_backward_scratch,
    [OP_NORM_BACKWARD]       = cuda_norm_backward_scratch,
    [OP_ROUTE_FORWARD]       = cuda_route_forward_scratch,
    [OP_SQUARE_SUM]          = cuda_square_sum_scratch,
};
// clang-format on

// A device of few multiprocessors, so that blocks take more than one piece each.
static void emulate(const struct op_case *one, const struct buffer buffers[OP_OPERANDS])
{
    struct op            op      = op_case_op(one);
    struct cuda          cuda    = {.processors = 2, .shared_bytes = 227 << 10};
    struct backend       backend = {.state = &cuda};
    struct kernel_target target  = cuda_target(&backend, &op);
    int64_t              bytes   = scratch[op.kind] != NULL ? scratch[op.kind](&op, &target) : 0;
    cuda.scratch                 = malloc((size_t)bytes + 1);
    memset(cuda.scratch, 0xff, (size_t)bytes);
    run[op.kind](&backend, &op, buffers);
    free(cuda.scratch);
}

static void expect_equal_bits(const struct op_case *one, int slot, const struct buffer *a, const struct buffer *b)
{
    size_t bytes = (size_t)((a->elements + 1) * dtype_bytes(a->dtype));
    cr_expect(memcmp(a->data, b->data, bytes) == 0, "%s: operand %d depends on the order of threads", one->name, slot);
}

// The largest difference from the host's result, relative to the largest value of the operand.
static void expect_near(const struct op_case *one, int slot, const struct buffer *result, const struct buffer *expected)
{
    double largest = 1e-30, error = 0;
    for (int64_t i = 0; i < result->elements; i++) {
        largest = fmax(largest, fabs(get(expected, i)));
    }
    for (int64_t i = 0; i < result->elements; i++) {
        double difference = fabs(get(result, i) - get(expected, i)) / largest;
        error             = difference <= error ? error : difference;    // NaN is an error
        if (get(result, i) == get(expected, i)) {
            continue;
        }
        cr_expect(difference <= (result->dtype == DTYPE_I32 ? 0 : tolerance(result->dtype)),
                  "%s: element %lld of operand %d is %.9g, not %.9g", one->name, (long long)i, slot, get(result, i),
                  get(expected, i));
        if (!(difference <= tolerance(result->dtype))) {
            return;
        }
    }
    size_t at = (size_t)(result->elements * dtype_bytes(result->dtype));
    cr_expect(memcmp((char *)result->data + at, (char *)expected->data + at, (size_t)dtype_bytes(result->dtype)) == 0,
              "%s: writes behind operand %d", one->name, slot);
}

Test(kernel, does_as_the_host_does)
{
    for (int i = 0; i < OP_CASES; i++) {
        const struct op_case *one = &op_cases[i];
        struct op             op  = op_case_op(one);
        struct buffer         host[OP_OPERANDS], forwards[OP_OPERANDS], backwards[OP_OPERANDS];
        op_case_fill(one, host);
        op_case_fill(one, forwards);
        op_case_fill(one, backwards);

        run_op(&op, host, 2);
        emulator_is_reversed = false;
        emulate(one, forwards);
        emulator_is_reversed = true;
        emulate(one, backwards);

        for (int slot = 0; slot < OP_OPERANDS; slot++) {
            if (host[slot].data != NULL) {
                expect_equal_bits(one, slot, &forwards[slot], &backwards[slot]);
                expect_near(one, slot, &forwards[slot], &host[slot]);
            }
        }
        free_buffers(host);
        free_buffers(forwards);
        free_buffers(backwards);
    }
}
