// SPDX-License-Identifier: MIT
// The shape of attention and rope ops in the current layer.
#include <math.h>

#include "attention.h"

// The attention window of the current layer; 0: none.
static int64_t window_of(const struct builder *builder)
{
    const struct block *block = &builder->blocks[block_place(builder, builder->assembly.tag.layer)];
    for (int32_t i = 0; i < block->count; i++) {
        if (block->kinds[i] == &window_attention_kind) {
            return builder->plan->model.window;
        }
    }
    return 0;
}

// ALiBi slopes depend on a head's index in the whole model.
static void lean(const struct builder *builder, struct attention_shape *shape)
{
    const struct plan *plan = builder->plan;
    if (plan->model.positions == POSITIONS_ALIBI) {
        shape->sloped_heads = plan->model.heads;
        shape->first_head   = mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_TP) * builder->heads;
    }
}

struct op attention_op(const struct builder *builder, enum op_kind kind, const char *role)
{
    const struct plan         *plan     = builder->plan;
    const struct model_config *model    = &plan->model;
    struct op                  op       = assembly_op(&builder->assembly, kind, role);
    bool                       is_alike = builder->value_dim == builder->key_dim;

    op.shape.attention = (struct attention_shape){.batch     = plan->train.micro_batch,
                                                  .sequence  = builder->sequence,
                                                  .heads     = builder->heads,
                                                  .kv_heads  = builder->kv_heads,
                                                  .head_dim  = builder->key_dim,
                                                  .rotary    = model_rotary_width(model),
                                                  .scale     = (float)(1.0 / sqrt((double)builder->key_dim)),
                                                  .causal    = true,
                                                  .value_dim = is_alike ? 0 : builder->value_dim};
    if (kind == OP_ATTENTION_FORWARD || kind == OP_ATTENTION_BACKWARD) {
        op.shape.attention.window = window_of(builder);
        lean(builder, &op.shape.attention);
    }
    return op;
}
