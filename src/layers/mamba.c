// SPDX-License-Identifier: MIT
// Defines the layer kind of Mamba-2: input projection to z, x, B, C and dt, causal convolution of x, B and C, selective
// scan, norm gated by z, output projection. tp shards heads and groups. On this rank: tokens: tokens of a microbatch;
// inner: heads x head size, the width of z and x; channels: width of x, B and C; packed: width of z, x, B, C and dt.
#include <inttypes.h>

#include "gswbench/layer_kind.h"
#include "gswbench/linear.h"

enum {
    WEIGHT_IN = WEIGHT_OWN,
    WEIGHT_CONVOLUTION,
    WEIGHT_STEP_BIAS,
    WEIGHT_DECAY,
    WEIGHT_SKIP,
    WEIGHT_GATED_NORM,
    WEIGHT_OUT
};
enum { LINEAR_IN, LINEAR_OUT, LINEARS };
enum {
    VALUE_PACKED = VALUE_OWN,    // z, x, B, C, dt [tokens, packed]
    VALUE_CONVOLVED,             // x, B, C [tokens, channels]
    VALUE_SCANNED,               // [tokens, inner]
    VALUE_GATED,                 // output of the gated norm [tokens, inner]
    VALUE_GROUP_SCALES,          // 1 / rms of each group [tokens, groups]
};

// Tensors in the exported model, with the random streams of their initial values.
static const struct exported exported_z          = {"model.layers.%d.mixer.z_proj.weight", 48};
static const struct exported exported_x          = {"model.layers.%d.mixer.x_proj.weight", 49};
static const struct exported exported_b          = {"model.layers.%d.mixer.b_proj.weight", 50};
static const struct exported exported_c          = {"model.layers.%d.mixer.c_proj.weight", 51};
static const struct exported exported_dt         = {"model.layers.%d.mixer.dt_proj.weight", 52};
static const struct exported exported_filter_x   = {"model.layers.%d.mixer.conv_x.weight", 53};
static const struct exported exported_filter_b   = {"model.layers.%d.mixer.conv_b.weight", 54};
static const struct exported exported_filter_c   = {"model.layers.%d.mixer.conv_c.weight", 55};
static const struct exported exported_bias_x     = {"model.layers.%d.mixer.conv_x.bias", 56};
static const struct exported exported_bias_b     = {"model.layers.%d.mixer.conv_b.bias", 57};
static const struct exported exported_bias_c     = {"model.layers.%d.mixer.conv_c.bias", 58};
static const struct exported exported_step_bias  = {"model.layers.%d.mixer.dt_bias", 59};
static const struct exported exported_decay      = {"model.layers.%d.mixer.A_log", 60};
static const struct exported exported_skip       = {"model.layers.%d.mixer.D", 61};
static const struct exported exported_gated_norm = {"model.layers.%d.mixer.norm.weight", 62};
static const struct exported exported_out        = {"model.layers.%d.mixer.out_proj.weight", 63};

// Mamba-2 draws convolution filters uniformly from -1/2 to 1/2, dt from 0.001 to 0.1 (its logarithm uniformly), and the
// decay rate a uniformly from 1 to 16. gswbench draws only normal numbers. So it draws the filters, the inverse
// softplus of dt, and the logarithm of a, from normal distributions with about the same mean and deviation.
static const float filter_deviation = 0.29f, step_mean = -4.6f, step_deviation = 1.3f, decay_mean = 2.0f,
                   decay_deviation = 0.7f;

static int64_t state_width(const struct model_config *model)
{
    return model->mamba_groups * model->mamba_state;
}

static struct layer_count count(const struct model_config *model)
{
    int64_t inner = model_mamba_inner(model), heads = model->mamba_heads, states = state_width(model);
    int64_t projections = model->hidden * (3 * inner + 2 * states + heads);
    int64_t parameters  = projections + (inner + 2 * states) * (model->mamba_conv + 1) + 3 * heads + inner;
    return (struct layer_count){.parameters = parameters,
                                .active     = parameters,
                                .multiplied = projections,
                                .scanned    = 7 * inner * model->mamba_state,
                                .linears    = LINEARS};
}

static void check(const struct model_config *model, status *errors)
{
    status_add_if(errors, model->mamba_heads == 0 || model->mamba_groups == 0,
                  "[model] mamba_heads = %" PRId64 " and mamba_groups = %" PRId64
                  ": Mamba-2 layers need both: set them, or remove mamba (M) from pattern",
                  model->mamba_heads, model->mamba_groups);
    status_add_if(errors, model->mamba_groups > 0 && model->mamba_heads % model->mamba_groups != 0,
                  "[model] mamba_groups = %" PRId64 " does not divide mamba_heads = %" PRId64, model->mamba_groups,
                  model->mamba_heads);
}

static void declare_convolution(struct declarations *declarations, int32_t *weights)
{
    const struct model_config *model = &declarations->builder->plan->model;
    int64_t                    inner = model_mamba_inner(model), states = state_width(model);
    struct declaration        *filters = declare_matrix(declarations, &weights[WEIGHT_CONVOLUTION], "filters");
    filters->deviation                 = filter_deviation;
    declare_rows(declarations, filters, &exported_filter_x, inner, model->mamba_conv);
    declare_rows(declarations, filters, &exported_filter_b, states, model->mamba_conv);
    declare_rows(declarations, filters, &exported_filter_c, states, model->mamba_conv);
    declare_bias(declarations, "filter bias",
                 (const struct exported *const[]){&exported_bias_x, &exported_bias_b, &exported_bias_c});
}

static void start_at(struct declaration *numbers, float mean, float deviation)
{
    numbers->constant  = mean;
    numbers->deviation = deviation;
}

static void declare(struct declarations *declarations, int32_t *weights)
{
    const struct model_config *model = &declarations->builder->plan->model;
    int64_t                    inner = model_mamba_inner(model), heads = model->mamba_heads, h = model->hidden;

    struct declaration *in =
        declare_linear(declarations, &weights[WEIGHT_IN], "mamba in weight", LINEAR_KIND_FC1, LINEAR_IN);
    declare_rows(declarations, in, &exported_z, inner, h);
    declare_rows(declarations, in, &exported_x, inner, h);
    declare_rows(declarations, in, &exported_b, state_width(model), h);
    declare_rows(declarations, in, &exported_c, state_width(model), h);
    declare_rows(declarations, in, &exported_dt, heads, h);
    declare_convolution(declarations, weights);
    start_at(declare_sharded_vector(declarations, &weights[WEIGHT_STEP_BIAS], "step bias", &exported_step_bias, heads),
             step_mean, step_deviation);
    start_at(declare_sharded_vector(declarations, &weights[WEIGHT_DECAY], "decay", &exported_decay, heads), decay_mean,
             decay_deviation);
    start_at(declare_sharded_vector(declarations, &weights[WEIGHT_SKIP], "skip", &exported_skip, heads), 1.0f, 0.0f);
    start_at(
        declare_sharded_vector(declarations, &weights[WEIGHT_GATED_NORM], "gated norm", &exported_gated_norm, inner),
        1.0f, 0.0f);
    struct declaration *out =
        declare_linear(declarations, &weights[WEIGHT_OUT], "mamba out weight", LINEAR_KIND_FC2, LINEAR_OUT);
    declare_columns(declarations, out, &exported_out, h, inner);
}

static struct op mamba_op(const struct builder *builder, enum op_kind kind, const char *role)
{
    const struct plan         *plan  = builder->plan;
    const struct model_config *model = &plan->model;
    int64_t                    tp    = plan->mesh.size[AXIS_TP];
    struct op                  op    = assembly_op(&builder->assembly, kind, role);

    op.shape.mamba = (struct mamba_shape){.batch    = plan->train.micro_batch,
                                          .sequence = builder->sequence,
                                          .heads    = model->mamba_heads / tp,
                                          .head_dim = model->mamba_head_dim,
                                          .groups   = model->mamba_groups / tp,
                                          .state    = model->mamba_state,
                                          .taps     = model->mamba_conv,
                                          .chunk    = model->mamba_chunk,
                                          .epsilon  = (float)model->norm_epsilon};
    return op;
}

static int32_t new_rows(struct sublayer *sublayer, const char *name, int64_t columns)
{
    return assembly_activation(&sublayer->builder->assembly, name, DIMS(sublayer->builder->tokens, columns));
}

static const struct weight *weight_of(const struct sublayer *sublayer, int weight)
{
    return &sublayer->builder->plan->weights[sublayer->weights[weight]];
}

static const struct weight *filter_bias(const struct sublayer *sublayer)
{
    return &sublayer->builder->plan->weights[weight_of(sublayer, WEIGHT_CONVOLUTION)->bias];
}

static void append_in(struct sublayer *sublayer)
{
    sublayer->values->tensor[VALUE_PACKED] = tp_gather_linear(
        sublayer->builder, &(struct linear){.role = "mamba in", .weight = sublayer->weights[WEIGHT_IN]}, "mamba input",
        sublayer->values->tensor[VALUE_N], NULL);
}

static void append_convolution(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    int32_t        *values  = sublayer->values->tensor;
    struct op       op      = mamba_op(builder, OP_CONVOLUTION_FORWARD, "convolution");
    values[VALUE_CONVOLVED] = new_rows(sublayer, "convolution", mamba_channels(&op.shape.mamba));
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({CONVOLUTION_PACKED, values[VALUE_PACKED]},
                               {CONVOLUTION_WEIGHT, weight_of(sublayer, WEIGHT_CONVOLUTION)->tensor},
                               {CONVOLUTION_BIAS, filter_bias(sublayer)->tensor},
                               {CONVOLUTION_OUT, values[VALUE_CONVOLVED]}));
}

static void append_scan(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    int32_t        *values  = sublayer->values->tensor;
    struct op       op      = mamba_op(builder, OP_SCAN_FORWARD, "scan");
    values[VALUE_SCANNED]   = new_rows(sublayer, "scan", mamba_inner(&op.shape.mamba));
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({SCAN_CONVOLVED, values[VALUE_CONVOLVED]}, {SCAN_PACKED, values[VALUE_PACKED]},
                               {SCAN_STEP_BIAS, weight_of(sublayer, WEIGHT_STEP_BIAS)->tensor},
                               {SCAN_DECAY, weight_of(sublayer, WEIGHT_DECAY)->tensor},
                               {SCAN_SKIP, weight_of(sublayer, WEIGHT_SKIP)->tensor},
                               {SCAN_OUT, values[VALUE_SCANNED]}));
}

static void append_gated_norm(struct sublayer *sublayer)
{
    struct builder *builder    = sublayer->builder;
    int32_t        *values     = sublayer->values->tensor;
    struct op       op         = mamba_op(builder, OP_GATED_NORM_FORWARD, "gated norm");
    values[VALUE_GATED]        = new_rows(sublayer, "gated norm", mamba_inner(&op.shape.mamba));
    values[VALUE_GROUP_SCALES] = assembly_tensor(&builder->assembly, "gated norm statistics", STORAGE_ACTIVATION,
                                                 FORMAT_F32, DIMS(builder->tokens, op.shape.mamba.groups));
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({GATED_NORM_IN, values[VALUE_SCANNED]}, {GATED_NORM_PACKED, values[VALUE_PACKED]},
                               {GATED_NORM_WEIGHT, weight_of(sublayer, WEIGHT_GATED_NORM)->tensor},
                               {GATED_NORM_OUT, values[VALUE_GATED]},
                               {GATED_NORM_STATISTICS, values[VALUE_GROUP_SCALES]}));
}

static void append_out(struct sublayer *sublayer)
{
    sublayer->values->tensor[VALUE_OUT] = tp_linear_reduce(
        sublayer->builder, &(struct linear){.role = "mamba out", .weight = sublayer->weights[WEIGHT_OUT]},
        "mamba output", sublayer->values->tensor[VALUE_GATED], -1);
}

// Appends the backward pass of the gated norm. Returns the gradient of VALUE_SCANNED, and writes the gradient of z to
// its columns of `packed`.
static int32_t gated_norm_backward(struct sublayer *sublayer, int32_t gradient, int32_t packed)
{
    const int32_t       *values = sublayer->values->tensor;
    const struct weight *weight = weight_of(sublayer, WEIGHT_GATED_NORM);
    struct op            op     = mamba_op(sublayer->builder, OP_GATED_NORM_BACKWARD, "gated norm gradient");
    int32_t              dy     = new_rows(sublayer, "scan gradient", mamba_inner(&op.shape.mamba));
    op.accumulates              = gradient_accumulates(sublayer->builder, sublayer->weights[WEIGHT_GATED_NORM]);
    assembly_append_with(
        &sublayer->builder->assembly, &op,
        SLOTS({GATED_NORM_GRADIENT_OUT, gradient}, {GATED_NORM_GRADIENT_IN_IN, values[VALUE_SCANNED]},
              {GATED_NORM_GRADIENT_PACKED_IN, values[VALUE_PACKED]}, {GATED_NORM_GRADIENT_WEIGHT_IN, weight->tensor},
              {GATED_NORM_GRADIENT_STATISTICS, values[VALUE_GROUP_SCALES]}, {GATED_NORM_GRADIENT_IN, dy},
              {GATED_NORM_GRADIENT_PACKED, packed}, {GATED_NORM_GRADIENT_WEIGHT, weight->gradient}));
    return dy;
}

// Appends the backward pass of the scan. Returns the gradient of VALUE_CONVOLVED, and writes the gradient of dt to its
// columns of `packed`. The same op computes the gradients of step bias, decay and skip, so either all three accumulate
// or none does.
static int32_t scan_backward(struct sublayer *sublayer, int32_t gradient, int32_t packed)
{
    const int32_t       *values = sublayer->values->tensor;
    const struct weight *bias = weight_of(sublayer, WEIGHT_STEP_BIAS), *decay = weight_of(sublayer, WEIGHT_DECAY),
                        *skip = weight_of(sublayer, WEIGHT_SKIP);
    struct op op              = mamba_op(sublayer->builder, OP_SCAN_BACKWARD, "scan gradient");
    int32_t   d_in            = new_rows(sublayer, "convolution gradient", mamba_channels(&op.shape.mamba));
    op.accumulates            = gradient_accumulates(sublayer->builder, sublayer->weights[WEIGHT_STEP_BIAS]);
    assembly_append_with(&sublayer->builder->assembly, &op,
                         SLOTS({SCAN_GRADIENT_OUT, gradient}, {SCAN_GRADIENT_CONVOLVED_IN, values[VALUE_CONVOLVED]},
                               {SCAN_GRADIENT_PACKED_IN, values[VALUE_PACKED]},
                               {SCAN_GRADIENT_STEP_BIAS_IN, bias->tensor}, {SCAN_GRADIENT_DECAY_IN, decay->tensor},
                               {SCAN_GRADIENT_SKIP_IN, skip->tensor}, {SCAN_GRADIENT_CONVOLVED, d_in},
                               {SCAN_GRADIENT_PACKED, packed}, {SCAN_GRADIENT_STEP_BIAS, bias->gradient},
                               {SCAN_GRADIENT_DECAY, decay->gradient}, {SCAN_GRADIENT_SKIP, skip->gradient}));
    return d_in;
}

// Appends the backward pass of the convolution, which writes the gradients of x, B and C to their columns of `packed`.
static void convolution_backward(struct sublayer *sublayer, int32_t gradient, int32_t packed)
{
    struct builder      *builder = sublayer->builder;
    const struct weight *filters = weight_of(sublayer, WEIGHT_CONVOLUTION), *bias = filter_bias(sublayer);
    struct op            op = mamba_op(builder, OP_CONVOLUTION_BACKWARD, "convolution gradient");
    op.accumulates          = gradient_accumulates(builder, sublayer->weights[WEIGHT_CONVOLUTION]);
    assembly_append_with(&builder->assembly, &op,
                         SLOTS({CONVOLUTION_GRADIENT_OUT, gradient},
                               {CONVOLUTION_GRADIENT_PACKED_IN, sublayer->values->tensor[VALUE_PACKED]},
                               {CONVOLUTION_GRADIENT_WEIGHT_IN, filters->tensor},
                               {CONVOLUTION_GRADIENT_BIAS_IN, bias->tensor}, {CONVOLUTION_GRADIENT_PACKED, packed},
                               {CONVOLUTION_GRADIENT_WEIGHT, filters->gradient},
                               {CONVOLUTION_GRADIENT_BIAS, bias->gradient}));
}

static int32_t backward(struct sublayer *sublayer, int32_t gradient)
{
    struct builder                   *builder = sublayer->builder;
    const int32_t                    *values  = sublayer->values->tensor;
    static const struct rows_roles    out     = {"mamba output gradient", "mamba out data gradient",
                                                 "mamba out weight gradient"};
    static const struct columns_roles in      = {"mamba input again", "mamba in data gradient", "mamba input gradient",
                                                 "mamba in weight gradient"};

    assembly_set_part(&builder->assembly, PART_MAMBA_OUT);
    int32_t d_gated = rows_backward(builder, &out, gradient, values[VALUE_GATED], sublayer->weights[WEIGHT_OUT], false);
    int32_t packed  = new_rows(sublayer, "mamba in gradient", builder->plan->tensors[values[VALUE_PACKED]].dim[1]);
    assembly_set_part(&builder->assembly, PART_GATED_NORM);
    int32_t dy = gated_norm_backward(sublayer, d_gated, packed);
    assembly_set_part(&builder->assembly, PART_SCAN);
    int32_t d_convolved = scan_backward(sublayer, dy, packed);
    assembly_set_part(&builder->assembly, PART_CONVOLUTION);
    convolution_backward(sublayer, d_convolved, packed);
    assembly_set_part(&builder->assembly, PART_MAMBA_IN);
    return columns_backward(builder, &in, packed, values[VALUE_N], sublayer->weights[WEIGHT_IN], false);
}

static const struct norm_names mamba_norm =
    NORM_NAMES(PART_MAMBA_NORM, "mamba norm", "mamba norm", "layers.%d.mixer_layernorm", 46);

enum {
    SCAN_READS = BIT(VALUE_PACKED) | BIT(VALUE_CONVOLVED),
    GATE_READS = BIT(VALUE_PACKED) | BIT(VALUE_SCANNED),
    GATE_MAKES = BIT(VALUE_GATED) | BIT(VALUE_GROUP_SCALES),
};

// clang-format off
static const struct forward_step steps[] = {
    // append,            part,             reads,             makes,                saved_as,                modules
    { append_in,          PART_MAMBA_IN,    BIT(VALUE_N),      BIT(VALUE_PACKED),    1u << OUTPUT_FC1,        0 },
    { append_convolution, PART_CONVOLUTION, BIT(VALUE_PACKED), BIT(VALUE_CONVOLVED), 0,                       0 },
    { append_scan,        PART_SCAN,        SCAN_READS,        BIT(VALUE_SCANNED),   0,                       0 },
    { append_gated_norm,  PART_GATED_NORM,  GATE_READS,        GATE_MAKES,           1u << OUTPUT_ACTIVATION, 0 },
    { append_out,         PART_MAMBA_OUT,   BIT(VALUE_GATED),  BIT(VALUE_OUT),       1u << OUTPUT_FC2,        0 },
    { .append = NULL },
};
// clang-format on

// As in mamba_ssm, the forward pass keeps only the input of the convolution, and the backward pass repeats the
// convolution.
const struct layer_kind mamba_kind = {
    .name     = "mamba",
    .norm     = &mamba_norm,
    .declare  = declare,
    .steps    = steps,
    .needed   = BIT(VALUE_X) | BIT(VALUE_STATISTICS) | BIT(VALUE_N) | SCAN_READS | GATE_READS | GATE_MAKES,
    .dropped  = BIT(VALUE_CONVOLVED),
    .backward = {backward},
    .count    = count,
    .check    = check,
};
