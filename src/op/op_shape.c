// SPDX-License-Identifier: MIT
// Names the fields of each shape that are printed or part of the key of a measured time, in key order. New fields go at
// the end, so that keys of older profiles stay valid.
#include <stddef.h>

#include "gswbench/op_table.h"

#define TYPE_OF(member)                                                                                                \
    _Generic(((const struct op *)0)->member, int64_t                                                                   \
             : OP_FIELD_INT64, int32_t                                                                                 \
             : OP_FIELD_INT32, uint8_t                                                                                 \
             : OP_FIELD_UINT8, bool                                                                                    \
             : OP_FIELD_BOOL)
#define OF_OP(field, uses)                                                                                             \
    {                                                                                                                  \
#field, TYPE_OF(field), uses, offsetof(struct op, field)                                                       \
    }
#define OF_SHAPE(kind, field, uses)                                                                                    \
    {                                                                                                                  \
#field, TYPE_OF(shape.kind.field), uses, offsetof(struct op, shape.kind.field)                                 \
    }
#define BOTH(kind, field)  OF_SHAPE(kind, field, OP_FIELD_BOTH)
#define KEY(kind, field)   OF_SHAPE(kind, field, OP_FIELD_KEY)
#define SHOWN(kind, field) OF_SHAPE(kind, field, OP_FIELD_SHOWN)
#define END                                                                                                            \
    {                                                                                                                  \
        NULL, 0, 0, 0                                                                                                  \
    }

// clang-format off
const struct op_field gemm_fields[] = {
    BOTH(gemm, m), BOTH(gemm, n), BOTH(gemm, k), KEY(gemm, transpose_a), KEY(gemm, transpose_b),
    OF_OP(sums_fast, OP_FIELD_KEY), KEY(gemm, scaling_a), KEY(gemm, scaling_b), END,
};
const struct op_field rows_fields[] = {
    BOTH(rows, rows), BOTH(rows, columns), KEY(rows, valid_columns), KEY(rows, parts), KEY(rows, variant),
    OF_OP(fused_scaling, OP_FIELD_KEY), END,
};
const struct op_field attention_fields[] = {
    BOTH(attention, batch), BOTH(attention, sequence), BOTH(attention, heads), BOTH(attention, kv_heads),
    BOTH(attention, head_dim), KEY(attention, rotary), KEY(attention, causal), KEY(attention, adds_query),
    KEY(attention, earlier), KEY(attention, window), KEY(attention, value_dim),
    KEY(attention, sloped_heads), END,
};
const struct op_field mamba_fields[] = {
    BOTH(mamba, batch), BOTH(mamba, sequence), BOTH(mamba, heads), BOTH(mamba, head_dim), BOTH(mamba, groups),
    BOTH(mamba, state), KEY(mamba, taps), KEY(mamba, chunk), END,
};
const struct op_field routing_fields[] = {
    BOTH(routing, rows), BOTH(routing, columns), KEY(routing, total), KEY(routing, sequences), KEY(routing, experts),
    KEY(routing, top_k), KEY(routing, owners), KEY(routing, capacity), KEY(routing, balanced),
    KEY(routing, multiple), KEY(routing, score), KEY(routing, groups), KEY(routing, top_groups), END,
};
const struct op_field quantize_fields[] = {
    BOTH(quantize, rows), BOTH(quantize, columns), KEY(quantize, scaling), KEY(quantize, transforms),
    KEY(quantize, is_stochastic), END,
};
const struct op_field rescale_fields[] = {BOTH(rescale, slots), BOTH(rescale, history), END};
const struct op_field elements_fields[] = {BOTH(elements, elements), END};

// The key of a communication op also has the size and rank stride of its group, which op_key_init adds.
const struct op_field communication_fields[] = {BOTH(communication, elements), SHOWN(communication, group), END};
const struct op_field link_fields[] = {
    BOTH(communication, elements), SHOWN(communication, group), SHOWN(communication, peer), SHOWN(communication, channel), END,
};
// clang-format on

int64_t op_field_value(const struct op *op, const struct op_field *field)
{
    const void *at = (const char *)op + field->offset;
    switch ((enum op_field_type)field->type) {
    case OP_FIELD_INT64:
        return *(const int64_t *)at;
    case OP_FIELD_INT32:
        return *(const int32_t *)at;
    case OP_FIELD_UINT8:
        return *(const uint8_t *)at;
    case OP_FIELD_BOOL:
        return *(const bool *)at;
    }
    return 0;
}
