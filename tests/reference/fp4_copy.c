// SPDX-License-Identifier: MIT
// Quantizes a matrix to NVFP4 on the host backend, for a test with an independent reference:
// fp4_copy ROWS COLUMNS SQUARE TRANSFORMS DRAW LOW HIGH < values > results
//
// SQUARE (scales of 16x16 blocks) and TRANSFORMS (Hadamard transform) are 0 or 1. DRAW is the number of the op for
// stochastic rounding, or -1 to round to nearest. LOW and HIGH are the random key of the step. Values are fp32. Results
// are codes, block scales and the tensor's scale of the quantized matrix, and then of its quantized transpose.
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/backend.h"
#include "gswbench/fatal.h"

enum { ROWS = 1, COLUMNS, SQUARE, TRANSFORMS, DRAW, LOW, HIGH, WORDS };

static struct backend backend;

static struct buffer make(enum format format, int64_t elements)
{
    return (struct buffer){backend_allocate(&backend, format_bytes(format, elements)), elements, format};
}

static void write_buffer(const struct buffer *buffer)
{
    fwrite(buffer->data, 1, (size_t)format_bytes(buffer->format, buffer->elements), stdout);
    backend_release(&backend, buffer->data, format_bytes(buffer->format, buffer->elements));
}

int main(int argc, char **argv)
{
    if (argc != WORDS) {
        FATAL(EXIT_INTERNAL, "usage: see the first lines of the source");
    }
    static const int slots[] = {QUANTIZE_OUT,
                                QUANTIZE_INVERSE_SCALE,
                                QUANTIZE_TENSOR_SCALE,
                                QUANTIZE_TRANSPOSED,
                                QUANTIZE_TRANSPOSED_INVERSE_SCALE,
                                QUANTIZE_TRANSPOSED_TENSOR_SCALE};
    int64_t          rows = atoll(argv[ROWS]), columns = atoll(argv[COLUMNS]), draw = atoll(argv[DRAW]);
    float            hyper[HYPER_COUNT]   = {0};
    struct buffer    buffers[OP_OPERANDS] = {[QUANTIZE_HYPER] = {hyper, HYPER_COUNT, FORMAT_F32}};
    struct op        op                   = {.kind           = OP_QUANTIZE,
                                             .shape.quantize = {.rows          = rows,
                                                                .columns       = columns,
                                                                .scaling       = atoi(argv[SQUARE]) ? SCALING_NV_SQUARE : SCALING_NV,
                                                                .transforms    = atoi(argv[TRANSFORMS]) != 0,
                                                                .is_stochastic = draw >= 0,
                                                                .draw          = draw}};
    hyper[HYPER_KEY_LOW]                  = strtof(argv[LOW], NULL);
    hyper[HYPER_KEY_HIGH]                 = strtof(argv[HIGH], NULL);
    status opened                         = backend_open(&backend, "host", &(struct backend_setup){.threads = 2});
    if (failed(&opened)) {
        FATAL(EXIT_INTERNAL, "%s", opened.text);
    }
    buffers[QUANTIZE_IN] = make(FORMAT_F32, rows * columns);
    size_t count         = (size_t)(rows * columns);
    if (fread(buffers[QUANTIZE_IN].data, sizeof(float), count, stdin) != count) {
        FATAL(EXIT_INTERNAL, "too few values");
    }
    for (int i = 0; i < 6; i++) {
        enum format format = i % 3 == 0 ? FORMAT_E2M1 : i % 3 == 1 ? FORMAT_E4M3 : FORMAT_F32;
        buffers[slots[i]]  = make(format, op_operand_elements(&op, slots[i]));
    }
    backend_reserve_scratch(&backend, backend.ops->scratch_bytes(&backend, &op));
    backend.ops->run[op.kind](&backend, &op, buffers);
    for (int i = 0; i < 6; i++) {
        write_buffer(&buffers[slots[i]]);
    }
    backend_release(&backend, buffers[QUANTIZE_IN].data, format_bytes(FORMAT_F32, rows * columns));
    backend_close(&backend);
    return EXIT_VALID;
}
