// SPDX-License-Identifier: MIT
// Quantizes two matrices and multiplies them on the host backend, for a test with an independent reference:
// fp8_gemm M N K  FORMAT SCALING SCALE  FORMAT SCALING SCALE  < values > results
//
// A [M, K] and then B have a FORMAT (e4m3 or e5m2), a SCALING (number of enum scaling), and a SCALE, which is 0 to
// derive it from the values. Values are fp32: A, then B before its transpose, [K, N]. Results are codes and scales
// (bytes for MX blocks) of A [M, K], codes and scales of B [N, K], and the GEMM [M, N] in fp32.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/backend.h"
#include "gswbench/fatal.h"

enum { FORMAT, SCALING, SCALE, WORDS };

static struct backend backend;

static struct buffer make(enum format format, int64_t elements)
{
    return (struct buffer){backend_allocate(&backend, format_bytes(format, elements)), elements, format};
}

static void release(const struct buffer *buffer)
{
    backend_release(&backend, buffer->data, format_bytes(buffer->format, buffer->elements));
}

static void run(const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    backend_reserve_scratch(&backend, backend.ops->scratch_bytes(&backend, op));
    backend.ops->run[op->kind](&backend, op, buffers);
}

static void write_buffer(const struct buffer *buffer)
{
    fwrite(buffer->data, 1, (size_t)format_bytes(buffer->format, buffer->elements), stdout);
}

// Reads a matrix [rows, columns] and quantizes it, transposed if requested, into product[slot]. Its scales go to the
// operand of scales that belongs to this slot.
static void quantize(const struct quantize_shape *shape, bool is_transposed, char *const words[],
                     struct buffer *product)
{
    struct op     op                   = {.kind = OP_QUANTIZE, .shape.quantize = *shape};
    struct buffer buffers[OP_OPERANDS] = {[QUANTIZE_IN] = make(FORMAT_F32, shape->rows * shape->columns)};
    enum format   format               = strcmp(words[FORMAT], "e4m3") == 0 ? FORMAT_E4M3 : FORMAT_E5M2;
    int           copy                 = is_transposed ? QUANTIZE_TRANSPOSED : QUANTIZE_OUT;
    int           factor =
        is_transposed && shape->scaling != SCALING_WHOLE ? QUANTIZE_TRANSPOSED_INVERSE_SCALE : QUANTIZE_INVERSE_SCALE;
    float  scale = strtof(words[SCALE], NULL);
    size_t count = (size_t)(shape->rows * shape->columns);
    if (fread(buffers[QUANTIZE_IN].data, sizeof(float), count, stdin) != count) {
        FATAL(EXIT_INTERNAL, "too few values");
    }
    buffers[copy]   = make(format, shape->rows * shape->columns);
    buffers[factor] = make(scaling_format((enum scaling)shape->scaling), op_operand_elements(&op, factor));
    if (scale != 0) {
        buffers[QUANTIZE_SCALE] = (struct buffer){&scale, 1, FORMAT_F32};
    }
    run(&op, buffers);
    write_buffer(&buffers[copy]);
    write_buffer(&buffers[factor]);
    release(&buffers[QUANTIZE_IN]);
    product[is_transposed ? GEMM_B : GEMM_A]                             = buffers[copy];
    product[is_transposed ? GEMM_INVERSE_SCALE_B : GEMM_INVERSE_SCALE_A] = buffers[factor];
}

int main(int argc, char **argv)
{
    if (argc != 4 + 2 * WORDS) {
        FATAL(EXIT_INTERNAL, "usage: see the first lines of the source");
    }
    char *const *a = argv + 4, *const *b = a + WORDS;
    int64_t      m = atoll(argv[1]), n = atoll(argv[2]), k = atoll(argv[3]);
    struct op    op = {
           .kind       = OP_GEMM,
           .shape.gemm = {
               .m = m, .n = n, .k = k, .transpose_b = true, .scaling_a = atoi(a[SCALING]), .scaling_b = atoi(b[SCALING])}};
    status opened = backend_open(&backend, "host", &(struct backend_setup){.threads = 2});
    if (failed(&opened)) {
        FATAL(EXIT_INTERNAL, "%s", opened.text);
    }
    struct buffer buffers[OP_OPERANDS] = {[GEMM_C] = make(FORMAT_F32, m * n)};
    quantize(&(struct quantize_shape){.rows = m, .columns = k, .scaling = op.shape.gemm.scaling_a}, false, a, buffers);
    quantize(&(struct quantize_shape){.rows = k, .columns = n, .scaling = op.shape.gemm.scaling_b}, true, b, buffers);
    run(&op, buffers);
    write_buffer(&buffers[GEMM_C]);
    for (int slot = 0; slot <= GEMM_INVERSE_SCALE_B; slot++) {
        release(&buffers[slot]);
    }
    backend_close(&backend);
    return EXIT_VALID;
}
