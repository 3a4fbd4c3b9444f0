// SPDX-License-Identifier: MIT
#include "routes.h"

#include <criterion/criterion.h>
#include <math.h>

// Returns logits whose softmax has the given probabilities.
struct buffer make_logits(const double *probabilities, int64_t elements)
{
    struct buffer logits = make_buffer(FORMAT_F32, elements);
    for (int64_t i = 0; i < elements; i++) {
        set(&logits, i, log(probabilities[i]) + 2);
    }
    return logits;
}

struct op route_op(struct routing_shape shape)
{
    return (struct op){.kind = OP_ROUTE_FORWARD, .shape.routing = shape};
}

void make_route_outputs(struct buffer *buffers, const struct op *op)
{
    for (int slot = ROUTE_CHOICES; slot <= ROUTE_STATISTICS; slot++) {
        bool is_integer = slot == ROUTE_CHOICES || slot == ROUTE_SLOTS || slot == ROUTE_SOURCES;
        buffers[slot]   = make_output(is_integer ? FORMAT_I32 : FORMAT_F32, op_operand_elements(op, slot));
        for (int64_t i = 0; is_integer && i <= buffers[slot].elements; i++) {
            set(&buffers[slot], i, -7);
        }
    }
}

void expect_values(const struct buffer *buffer, const double *expected, const char *what)
{
    for (int64_t i = 0; i < buffer->elements; i++) {
        cr_assert(fabs(get(buffer, i) - expected[i]) <= 1e-6 * fmax(1, fabs(expected[i])),
                  "%s: element %lld is %.9g, not %.9g", what, (long long)i, get(buffer, i), expected[i]);
    }
    double guard = get(buffer, buffer->elements);
    cr_assert(isnan(guard) || guard == -7, "%s: written beyond its end", what);
}

struct routing_shape whole(int64_t rows, int64_t experts, int64_t top_k, int64_t taken)
{
    return (struct routing_shape){.rows          = rows,
                                  .columns       = 1,
                                  .total         = rows,
                                  .sequences     = 1,
                                  .sequence_rows = rows,
                                  .experts       = experts,
                                  .top_k         = top_k,
                                  .owners        = 1,
                                  .capacity      = taken,
                                  .taken         = taken,
                                  .scale         = 1};
}
