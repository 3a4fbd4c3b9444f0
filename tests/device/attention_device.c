// SPDX-License-Identifier: MIT
// Compares attention by cuDNN with attention by gswbench's own kernels, at a shape of a real model: outputs and
// gradients, row by row. Skipped with the reason if cuDNN does not support the shape.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "device.h"
#include "op_compare.h"
#include "op_operands.h"

// The test also runs on an emulated GPU, which needs minutes for work that a real GPU does in a second. There the shape
// is small.
#ifdef GSWBENCH_EMULATED
enum { SEQUENCE = 96, HEADS = 4, KV_HEADS = 1, HEAD = 16 };
#else
enum { SEQUENCE = 8192, HEADS = 32, KV_HEADS = 8, HEAD = 128 };
#endif

// cuDNN and gswbench's kernels round probabilities and results to bf16, but with different tiles. cuDNN may also round
// the part that each query head adds to the gradient of its KV head.
static const double tolerance = 2e-2;

static int failures;

static struct buffer random_operand(enum format format, int64_t elements, uint64_t seed)
{
    struct buffer buffer = {
        .data = malloc((size_t)format_bytes(format, elements + GUARDS)), .elements = elements, .format = format};
    struct buffer random = make_random(format, elements, seed, 1);
    memcpy(buffer.data, random.data, (size_t)format_bytes(format, elements));
    poison(&buffer, elements, GUARDS);
    free(random.data);
    return buffer;
}

static void make(const struct op *op, struct buffer operands[OP_OPERANDS])
{
    for (int slot = 0; slot < op->operand_count; slot++) {
        bool is_statistics = op->kind == OP_ATTENTION_FORWARD ? slot == (int)ATTENTION_STATISTICS
                                                              : slot == (int)ATTENTION_GRADIENT_STATISTICS;
        operands[slot] =
            random_operand(is_statistics ? FORMAT_F32 : FORMAT_BF16, op_operand_elements(op, slot), (uint64_t)slot + 1);
    }
}

static struct op attention(enum op_kind kind, const char *operands)
{
    const struct op_case test = {"attention",
                                 operands,
                                 {.kind            = (uint8_t)kind,
                                  .stream          = STREAM_COMPUTE,
                                  .shape.attention = {.batch    = 1,
                                                      .sequence = SEQUENCE,
                                                      .heads    = HEADS,
                                                      .kv_heads = KV_HEADS,
                                                      .head_dim = HEAD,
                                                      .scale    = 1 / sqrtf(HEAD),
                                                      .causal   = true}}};
    return complete_op(&test);
}

static void compare(const struct op *op, const struct buffer *by_cudnn, const struct buffer *by_own)
{
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->access[slot] & ACCESS_WRITE) {
            double error = compare_rows(&by_cudnn[slot], &by_own[slot], compare_row(op, slot, by_own[slot].elements));
            bool   is_close = error <= tolerance;
            printf("%s %s, operand %d: cuDNN and own kernels differ by %.2g, at most %.2g\n",
                   is_close ? "ok  " : "FAIL", op_name((enum op_kind)op->kind), slot, error, tolerance);
            failures += !is_close;
        }
    }
}

static void take(struct buffer *to, const struct buffer *from)
{
    memcpy(to->data, from->data, (size_t)guarded_bytes(from));
}

int main(void)
{
    device_require();
    struct backend       own, cudnn;
    struct backend_setup setup = device_setup;
    setup.attention            = ATTENTION_OWN;
    device_check(backend_open(&own, "cuda", &setup));
    setup.attention = ATTENTION_CUDNN;
    device_check(backend_open(&cudnn, "cuda", &setup));

    struct op              forward             = attention(OP_ATTENTION_FORWARD, "bbbf");
    struct op              backward            = attention(OP_ATTENTION_BACKWARD, "bbbbfbb");
    struct buffer          one[2][OP_OPERANDS] = {{{.data = NULL}}}, other[2][OP_OPERANDS] = {{{.data = NULL}}};
    const struct prepared *prepared;
    make(&forward, one[0]);
    make(&forward, other[0]);
    status refused = backend_prepare(&cudnn, &forward, one[0], &prepared);
    if (failed(&refused)) {
        printf("skipped: %s\n", refused.text);
        return DEVICE_SKIPPED;
    }
    run_on_device(&cudnn, &forward, 0, one[0]);
    run_on_device(&own, &forward, 0, other[0]);
    compare(&forward, one[0], other[0]);

    make(&backward, one[1]);    // the output of gswbench's forward pass
    take(&one[1][ATTENTION_GRADIENT_QUERY_IN], &other[0][ATTENTION_QUERY]);
    take(&one[1][ATTENTION_GRADIENT_KEY_VALUE_IN], &other[0][ATTENTION_KEY_VALUE]);
    take(&one[1][ATTENTION_GRADIENT_OUT_IN], &other[0][ATTENTION_OUT]);
    take(&one[1][ATTENTION_GRADIENT_STATISTICS], &other[0][ATTENTION_STATISTICS]);
    make(&backward, other[1]);
    for (int slot = 0; slot < backward.operand_count; slot++) {
        take(&other[1][slot], &one[1][slot]);
    }
    run_on_device(&cudnn, &backward, 0, one[1]);
    run_on_device(&own, &backward, 0, other[1]);
    compare(&backward, one[1], other[1]);
    for (int i = 0; i < 2; i++) {
        free_buffers(one[i]);
        free_buffers(other[i]);
    }
    backend_close(&cudnn);
    backend_close(&own);
    return failures > 0;
}
