// SPDX-License-Identifier: MIT
// Appends the addition of a branch to the residual stream together with the norm after it, and the gradient of both.
#include "gswbench/layer_kind.h"
#include "gswbench/linear.h"

static int64_t columns_of(const struct tensor *x)
{
    return x->elements / x->dim[0];
}

static struct op norm_op(const struct builder *builder, enum op_kind kind, const char *role,
                         const struct norm_values *norm, const struct tensor *x)
{
    const struct model_config *model = &builder->plan->model;
    struct op                  op    = assembly_op(&builder->assembly, kind, role);

    op.shape.rows = (struct rows_shape){.rows    = x->dim[0],
                                        .columns = columns_of(x),
                                        .epsilon = (float)(norm->epsilon > 0 ? norm->epsilon : model->norm_epsilon),
                                        .variant = (int32_t)model->norm};
    return op;
}

void norm_forward(struct builder *builder, const char *role, struct norm_values *norm)
{
    struct plan        *plan  = builder->plan;
    const struct tensor x     = plan->tensors[norm->x];    // a copy, because plan->tensors can be reallocated
    const int64_t      *shape = DIMS(x.dim[0], columns_of(&x));
    struct op           op    = norm_op(builder, OP_NORM_FORWARD, role, norm, &x);

    norm->sum = norm->branch >= 0 ? assembly_activation(&builder->assembly, "residual", shape) : norm->x;
    norm->out = assembly_activation(&builder->assembly, role, shape);
    norm->statistics =
        assembly_tensor(&builder->assembly, "norm statistics", STORAGE_ACTIVATION, FORMAT_F32, DIMS(x.dim[0], 2));
    if (norm->branch >= 0) {
        plan->tensors[norm->sum].holds = TENSOR_RESIDUAL;
    }
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({NORM_IN, norm->x}, {NORM_WEIGHT, plan->weights[norm->weight].tensor},
                               {NORM_BIAS, norm->bias >= 0 ? plan->weights[norm->bias].tensor : -1},
                               {NORM_BRANCH, norm->branch}, {NORM_SUM, norm->branch >= 0 ? norm->sum : -1},
                               {NORM_OUT, norm->out}, {NORM_STATISTICS, norm->statistics}));
}

int32_t norm_backward(struct builder *builder, const char *role, const struct norm_values *norm, int32_t gradient,
                      int32_t residual)
{
    struct plan        *plan = builder->plan;
    const struct tensor x    = plan->tensors[norm->sum];
    struct op           op   = norm_op(builder, OP_NORM_BACKWARD, role, norm, &x);
    int32_t dx        = assembly_activation(&builder->assembly, "residual gradient", DIMS(x.dim[0], columns_of(&x)));
    bool    is_frozen = weight_is_frozen(builder, norm->weight);
    op.accumulates    = !is_frozen && gradient_accumulates(builder, norm->weight);
    assembly_append_with(
        &builder->assembly, &op,
        SLOTS({NORM_GRADIENT_OUT, gradient}, {NORM_GRADIENT_X, norm->sum},
              {NORM_GRADIENT_WEIGHT_IN, plan->weights[norm->weight].tensor},
              {NORM_GRADIENT_STATISTICS, norm->statistics}, {NORM_GRADIENT_RESIDUAL, residual}, {NORM_GRADIENT_IN, dx},
              {NORM_GRADIENT_WEIGHT, is_frozen ? -1 : plan->weights[norm->weight].gradient},
              {NORM_GRADIENT_BIAS, is_frozen || norm->bias < 0 ? -1 : plan->weights[norm->bias].gradient}));
    return dx;
}

void declare_norm(struct declarations *declarations, const struct norm_names *norm, int32_t *weights)
{
    const struct model_config *model = &declarations->builder->plan->model;
    // layer-norm-1p stores the weight minus 1, so its initial value is 0.
    float constant = model->norm == NORM_LAYER_1P ? 0.0f : 1.0f;
    declare_vector(declarations, &weights[WEIGHT_NORM], norm->weight, &norm->exported_weight, model->hidden, constant);
    if (model_norm_has_bias(model)) {
        declare_vector(declarations, &weights[WEIGHT_NORM_BIAS], norm->bias, &norm->exported_bias, model->hidden, 0.0f);
    }
}
