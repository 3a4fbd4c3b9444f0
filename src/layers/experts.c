// SPDX-License-Identifier: MIT
// Defines the layer kind of a mixture of experts: dispatch, expert MLPs, combine, and their backward pass. routing.c
// has the router and the token counts, experts_shared.c the shared experts.
//
// Experts are sharded over the expert-parallel group: ranks of fsdp or dp, with ep_over_cp also the ranks of cp. With
// etp = 1 the group also has the ranks of tp, and the ranks of cp if ep is larger than tp. Each rank packs its tokens
// into a send buffer of slots, grouped by local expert: expert 0 of every peer first, then expert 1. Each local expert
// has its own all-to-alls. In the forward pass, fc1 of all local experts runs before any activation, and fc2 after all
// activations. So the dispatch of an expert overlaps with fc1 of earlier local experts, and its all-to-all back with
// fc2 of later ones. The backward pass runs expert by expert.
//
// A layer is dropless if it has no capacity factor, tp does not shard the experts (etp = 1), and the router chooses
// experts (`routing` is top-k or skewed). Ranks then exchange token counts first, and the step moves and computes only
// the rows in use. In all other layers, each expert has room for the same number of rows per rank, routing.capacity.
#include "experts.h"

#include <inttypes.h>

#include "gswbench/linear.h"
#include "mlp.h"

// Random stream of an expert's biases. They start at zero, so this stream is never drawn from.
enum { NOT_DRAWN = 3 };

// Names of exported tensors, each with the random stream of its initial values. DeepSeek-V3 uses the names of Qwen3.
struct experts_names {
    struct exported  router, router_bias;
    struct mlp_names expert;
};
static const struct experts_names names_of_mixtral = {
    .router      = {"model.layers.%d.block_sparse_moe.gate.weight", 15},
    .router_bias = {"model.layers.%d.block_sparse_moe.gate.bias", 29},
    .expert      = {.gate      = {"model.layers.%d.block_sparse_moe.experts.%d.w1.weight", 0},
                    .up        = {"model.layers.%d.block_sparse_moe.experts.%d.w3.weight", 1},
                    .down      = {"model.layers.%d.block_sparse_moe.experts.%d.w2.weight", 2},
                    .gate_bias = {"model.layers.%d.block_sparse_moe.experts.%d.w1.bias", NOT_DRAWN},
                    .up_bias   = {"model.layers.%d.block_sparse_moe.experts.%d.w3.bias", NOT_DRAWN},
                    .down_bias = {"model.layers.%d.block_sparse_moe.experts.%d.w2.bias", NOT_DRAWN}},
};
static const struct experts_names names_of_qwen3 = {
    .router = {"model.layers.%d.mlp.gate.weight", 15},
    .expert = {.gate = {"model.layers.%d.mlp.experts.%d.gate_proj.weight", 0},
               .up   = {"model.layers.%d.mlp.experts.%d.up_proj.weight", 1},
               .down = {"model.layers.%d.mlp.experts.%d.down_proj.weight", 2}},    // biases: none
};

static int64_t experts_here(const struct plan *plan)
{
    return plan->model.experts / mesh_group_size(&plan->mesh, plan->mesh.owner_axes);
}

static int64_t linears_before_projections(const struct model_config *model)
{
    return MLP_LINEARS * (model->experts + (model->shared_ffn > 0));
}

// Counts one sublayer's parameters and FLOPs. `multiplied` leaves out the router's GEMM, like the FLOP conventions full
// and causal. `linears` counts the linears that can run in FP8, including the experts of other ranks.
static struct layer_count experts_count(const struct model_config *model)
{
    int64_t width = model_expert_hidden(model), ffn = model_expert_ffn(model);
    int64_t expert = mlp_elements(model, width, ffn), bias = mlp_biases(model, width, ffn);
    int64_t router      = model->hidden * model->experts + (model->router_offset ? model->experts : 0);
    int64_t shared      = mlp_elements(model, model->hidden, model->shared_ffn);
    int64_t projections = model->expert_hidden > 0 ? 2 * model->hidden * width : 0;
    int64_t always =
        shared + mlp_biases(model, model->hidden, model->shared_ffn) + router + projections;    // used by every token
    int64_t adapters = mlp_adapters(model, model->shared_ffn);
    return (struct layer_count){.parameters = model->experts * (expert + bias) + always + adapters,
                                .active     = model->top_k * (expert + bias) + always + adapters,
                                .multiplied = model->top_k * expert + shared + projections,
                                .linears    = linears_before_projections(model) + (projections > 0 ? 2 : 0),
                                .adapters   = adapters};
}

static void check_groups(const struct model_config *model, status *errors)
{
    int64_t groups = model->router_groups, used = model->router_top_groups;
    if (groups == 0) {
        status_add_if(errors, used != 0, "[model] router_top_groups = %" PRId64 " needs router_groups", used);
    } else if (model->experts % groups != 0) {
        status_add(errors, fail("[model] router_groups = %" PRId64 " does not divide experts = %" PRId64, groups,
                                model->experts));
    } else if (used < 1 || used > groups || used * (model->experts / groups) < model->top_k) {
        status_add(errors, fail("[model] router_top_groups = %" PRId64 " of router_groups = %" PRId64
                                " have fewer than top_k = %" PRId64 " experts, with %" PRId64
                                " per group: raise router_top_groups",
                                used, groups, model->top_k, model->experts / groups));
    }
}

static void experts_check(const struct model_config *model, status *errors)
{
    check_groups(model, errors);
    status_add_if(errors, model->expert_hidden > 0 && model->router_gates == GATES_INPUT,
                  "[model] expert_hidden = %" PRId64 " needs router_gates = output", model->expert_hidden);
    if (model->experts == 0) {
        status_add(
            errors,
            fail("[model] pattern = %s has experts: set experts to their number, and top_k to the experts per token",
                 model->pattern));
    } else if (model->top_k < 1 || model->top_k > model->experts) {
        status_add(errors, fail("[model] top_k = %" PRId64 " with experts = %" PRId64 ": expected 1 to %" PRId64,
                                model->top_k, model->experts, model->experts));
    }
}

// Tensors in the exported model, with the random streams of their initial values.
static const struct exported exported_down = {"model.layers.%d.mlp.fc1_latent_proj.weight", 12};
static const struct exported exported_up   = {"model.layers.%d.mlp.fc2_latent_proj.weight", 13};

// Declares the projections to and from expert_hidden, the width of the routed experts. They are replicated over tp, and
// each rank applies them to its part of the residual stream.
static void declare_projections(struct declarations *declarations, int32_t *weights)
{
    const struct model_config *model = &declarations->builder->plan->model;
    int64_t                    first = linears_before_projections(model);
    if (model->expert_hidden == 0) {
        return;
    }
    struct declaration *down =
        declare_linear(declarations, &weights[WEIGHT_DOWN], "expert down weight", LINEAR_KIND_PROJECTION, first);
    down->is_replicated = true;
    declare_rows(declarations, down, &exported_down, model->expert_hidden, model->hidden);
    struct declaration *up =
        declare_linear(declarations, &weights[WEIGHT_UP], "expert up weight", LINEAR_KIND_PROJECTION, first + 1);
    up->is_replicated = true;
    declare_rows(declarations, up, &exported_up, model->hidden, model->expert_hidden);
}

static void experts_declare(struct declarations *declarations, int32_t *weights)
{
    const struct plan         *plan  = declarations->builder->plan;
    const struct model_config *model = &plan->model;
    int64_t                    count = experts_here(plan);
    int64_t                    first = mesh_group_index(&plan->mesh, plan->rank, plan->mesh.owner_axes) * count;

    const struct model_family  *family  = model_family_of(model);
    bool                        is_qwen = family != NULL && (family->has_qk_norm || family->has_latent_attention);
    const struct experts_names *names   = is_qwen ? &names_of_qwen3 : &names_of_mixtral;
    struct declaration         *router  = declare_matrix(declarations, &weights[WEIGHT_ROUTER], "router weight");
    router->is_replicated               = true;
    declare_rows(declarations, router, &names->router, model->experts, model->hidden);
    if (model->router_offset) {
        declare_bias(declarations, "router bias", (const struct exported *const[]){&names->router_bias});
    }
    for (int64_t expert = first; expert < first + count; expert++) {
        mlp_declare(declarations, expert == first ? &weights[WEIGHT_EXPERTS] : NULL, NULL,
                    &(struct mlp_weights){&names->expert, .hidden = model_expert_hidden(model),
                                          .ffn = model_expert_ffn(model), .expert = expert,
                                          .linear = MLP_LINEARS * expert});
    }
    experts_shared_declare(declarations, weights);
    declare_projections(declarations, weights);
}

// Tensors of one local expert. rows: rows that the expert receives from the expert-parallel group. tp_rows: the rows of
// all tp ranks after an all-gather, if etp > 1 with sequence parallelism; else the same as rows. hidden: expert_hidden,
// if the model has it.
struct expert_values {
    int32_t in;                // [rows, hidden]
    int32_t fc1;               // [tp_rows, ffn] or [tp_rows, 2 ffn]
    int32_t s;                 // output of the activation [tp_rows, ffn]
    int32_t gradient;          // gradient of the expert's output [rows, hidden]
    int32_t whole_gradient;    // `gradient` after the all-gather over tp [tp_rows, hidden]
    int32_t fc1_gradient;      // [tp_rows, ffn] or [tp_rows, 2 ffn]
    int32_t gathered_again;    // `in`, all-gathered over tp again for the backward pass [tp_rows, hidden]
    int32_t row_count;    // dropless: index in plan->row_counts of the rows sent (tensor.row_count is 1 + index). The
                          // next index has the rows received, if the expert-parallel group has several ranks.
};

// Returns whether gates multiply the inputs of experts instead of their outputs. The router's gradient then depends on
// the input gradients of the experts.
static bool scales_inputs(const struct builder *builder)
{
    return builder->plan->model.router_gates == GATES_INPUT;
}

// Returns whether the expert-parallel group has several ranks.
static bool has_peers(const struct builder *builder)
{
    return builder->routing.owners > 1;
}

static struct expert_values *experts_of(const struct sublayer *sublayer)
{
    return sublayer->values->own;
}

// Returns the part of `slots` for the experts with this local index, one expert on every rank of the expert-parallel
// group. In a dropless layer (routing.multiple > 0: row counts are multiples of it), the row counts determine where the
// part starts (is_packed) and how many of its rows are in use.
static int32_t slots_of(const struct sublayer *sublayer, int32_t slots, int64_t expert)
{
    struct builder *builder = sublayer->builder;
    int64_t         rows    = builder->plan->tensors[slots].dim[0] / experts_here(builder->plan);
    int32_t         part    = tensor_rows(builder, "expert slots", slots, expert * rows, rows);
    if (builder->routing.multiple > 0) {
        builder->plan->tensors[part].row_count = 1 + experts_of(sublayer)[expert].row_count;
        builder->plan->tensors[part].is_packed = true;
    }
    return part;
}

// Returns a new tensor for the rows that a local expert receives from all ranks.
static int32_t new_rows(const struct sublayer *sublayer, const char *name, int64_t expert)
{
    struct builder *builder   = sublayer->builder;
    int32_t         row_count = experts_of(sublayer)[expert].row_count + 1;
    bool            counts    = builder->routing.multiple > 0;
    int64_t         padded    = builder->routing.owners * builder->routing.capacity;
    int64_t         rows      = counts ? builder->plan->row_counts[row_count].maximum : padded;
    int32_t         made      = assembly_activation(&builder->assembly, name, DIMS(rows, builder->routing.columns));
    builder->plan->tensors[made].row_count = counts ? 1 + row_count : 0;
    return made;
}

// Appends the all-to-all that sends rows to the ranks of their experts, or back. If the expert-parallel group has one
// rank, appends nothing.
static void exchange(struct builder *builder, const char *role, int32_t in, int32_t out)
{
    if (!has_peers(builder)) {
        return;
    }
    collect(builder, &(struct communication){OP_ALL_TO_ALL, role, .axes = builder->plan->mesh.owner_axes,
                                             .stream = STREAM_EXPERT, .in = in, .out = out, .hold = -1});
}

// Appends the all-to-all that sends each rank the rows for its expert with this local index. Returns the rows that this
// rank's expert receives.
static int32_t send_rows(const struct sublayer *sublayer, const char *role, int32_t slots, int64_t expert)
{
    int32_t in = slots_of(sublayer, slots, expert);
    if (!has_peers(sublayer->builder)) {
        return in;
    }
    int32_t out = new_rows(sublayer, role, expert);
    exchange(sublayer->builder, role, in, out);
    return out;
}

// Returns the tensor for an expert's output. If the expert-parallel group has one rank, this is the expert's part of
// the slots, since nothing is sent. Otherwise it is -1, which means a new tensor.
static int32_t output_tensor(const struct builder *builder, int32_t slots)
{
    return has_peers(builder) ? -1 : slots;
}

static int32_t fc1_of(const struct sublayer *sublayer, int64_t expert)
{
    return sublayer->weights[WEIGHT_EXPERTS] + MLP_LINEARS * (int32_t)expert;
}

static int32_t fc2_of(const struct sublayer *sublayer, int64_t expert)
{
    return fc1_of(sublayer, expert) + 1;
}

// Returns whether tokens are projected to another width (expert_hidden) before the routed experts, and back after them.
static bool is_projected(const struct sublayer *sublayer)
{
    return sublayer->weights[WEIGHT_DOWN] >= 0;
}

static void append_down(struct sublayer *sublayer)
{
    int32_t *values = sublayer->values->tensor;
    if (is_projected(sublayer)) {
        values[VALUE_DOWN] =
            linear_forward(sublayer->builder, "expert down", values[VALUE_N], sublayer->weights[WEIGHT_DOWN]);
    }
}

static void append_dispatch(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    const int32_t  *values  = sublayer->values->tensor;
    int32_t         slots   = experts_new_slots(builder, "dispatched");
    experts_fill_slots(sublayer, "dispatch", values[is_projected(sublayer) ? VALUE_DOWN : VALUE_N],
                       scales_inputs(builder) ? values[VALUE_GATES] : -1, slots);
    int64_t count = experts_here(builder->plan);
    if (sublayer->values->own == NULL) {
        sublayer->values->own = arena_allocate(&builder->scratch, (size_t)count * sizeof(struct expert_values));
    }
    int32_t row_count = experts_append_row_counts(sublayer);
    for (int64_t i = 0; i < count; i++) {
        if (row_count >= 0) {
            experts_of(sublayer)[i].row_count = row_count + (int32_t)i * (has_peers(builder) ? 2 : 1);
        }
        experts_of(sublayer)[i].in = send_rows(sublayer, "dispatch exchange", slots, i);
    }
}

// Returns whether tp_overlap_experts = no keeps the GEMMs of experts whole. Otherwise they are split to overlap with tp
// communication if the conditions of is_split (src/shard/tp.c) hold, such as tp_overlap and etp > 1.
static bool is_whole(const struct builder *builder)
{
    return !builder->overlaps_experts;
}

static void append_fc1(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    for (int64_t i = 0; i < experts_here(builder->plan); i++) {
        struct expert_values *expert = &experts_of(sublayer)[i];
        struct linear         fc1    = {.role = "fc1", .weight = fc1_of(sublayer, i), .is_whole = is_whole(builder)};
        expert->fc1                  = tp_gather_linear(builder, &fc1, "fc1 input", expert->in, NULL);
        builder->plan->tensors[expert->fc1].holds = TENSOR_FC1;
    }
}

static void append_activation(struct sublayer *sublayer)
{
    for (int64_t i = 0; i < experts_here(sublayer->builder->plan); i++) {
        struct expert_values *expert = &experts_of(sublayer)[i];
        expert->s                    = activation_forward(sublayer->builder, expert->fc1);

        sublayer->builder->plan->tensors[expert->s].holds = TENSOR_GATED;
    }
}

static void append_fc2(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    int32_t         outputs = experts_new_slots(builder, "expert outputs");
    for (int64_t i = 0; i < experts_here(builder->plan); i++) {
        int32_t slots = slots_of(sublayer, outputs, i);

        assembly_set_part(&builder->assembly, PART_EXPERT_FC2);
        int32_t out = tp_linear_reduce(
            builder, &(struct linear){.role = "fc2", .weight = fc2_of(sublayer, i), .is_whole = is_whole(builder)},
            "fc2 output", experts_of(sublayer)[i].s, output_tensor(builder, slots));
        assembly_set_part(&builder->assembly, PART_COMBINE);
        exchange(builder, "output exchange", out, slots);
    }
    sublayer->values->tensor[VALUE_EXPERT_OUT] = outputs;
    builder->plan->tensors[outputs].holds      = TENSOR_EXPERT_OUT;
}

// Sums the outputs of each row's routed experts. Adds the sum to the output of the shared experts; without shared
// experts, the sum is a new tensor. If the routed experts have a different width (expert_hidden), the sum always is a
// new tensor; append_up projects it and adds the output of the shared experts.
static void append_combine(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    int32_t        *values  = sublayer->values->tensor;
    bool            adds    = experts_are_shared(sublayer) && !is_projected(sublayer);
    int32_t         out     = adds ? experts_shared_append_fc2(sublayer) : -1;

    assembly_set_part(&builder->assembly, PART_COMBINE);
    if (!adds) {
        out =
            assembly_activation(&builder->assembly, "combined", DIMS(builder->routing.rows, builder->routing.columns));
    }
    experts_sum_choices(sublayer, "combine", values[VALUE_EXPERT_OUT],
                        scales_inputs(builder) ? -1 : values[VALUE_GATES], out, adds);
    values[is_projected(sublayer) ? VALUE_COMBINED : VALUE_OUT] = out;
}

static void append_up(struct sublayer *sublayer)
{
    struct builder *builder = sublayer->builder;
    int32_t        *values  = sublayer->values->tensor;
    struct linear   up      = {.role = "expert up", .weight = sublayer->weights[WEIGHT_UP]};
    if (!is_projected(sublayer)) {
        return;
    }
    int32_t out = experts_shared_append_fc2(sublayer);
    assembly_set_part(&builder->assembly, PART_EXPERT_UP);
    values[VALUE_OUT] = out >= 0 ? out : linear_out_of(builder, &up, values[VALUE_COMBINED]);
    linear_append(builder, &up, values[VALUE_COMBINED], values[VALUE_OUT], out >= 0);
}

// Appends the backward pass of the projection from expert_hidden, if there is one. Returns the gradient of the sum of
// the routed experts' outputs.
static int32_t up_backward(struct sublayer *sublayer, int32_t gradient)
{
    struct builder *builder = sublayer->builder;
    int32_t         up      = sublayer->weights[WEIGHT_UP];
    if (!is_projected(sublayer)) {
        return gradient;
    }
    assembly_set_part(&builder->assembly, PART_EXPERT_UP);
    int32_t combined = linear_data_gradient(builder, "expert up data gradient", gradient, up);
    linear_weight_gradient(builder, "expert up weight gradient", gradient, sublayer->values->tensor[VALUE_COMBINED],
                           up);
    return combined;
}

// Appends the first part of the backward pass. It ends with one all-to-all per local expert, which sends the expert the
// gradient of its output. Returns `gradient` unchanged, because the shared experts need it in the next part.
static int32_t combine_backward(struct sublayer *sublayer, int32_t gradient)
{
    struct builder         *builder = sublayer->builder;
    struct sublayer_values *values  = sublayer->values;
    int32_t                 rows    = up_backward(sublayer, gradient);
    assembly_set_part(&builder->assembly, PART_COMBINE);
    int32_t slots = experts_new_slots(builder, "expert output gradients");
    if (scales_inputs(builder)) {
        experts_fill_slots(sublayer, "combine gradient", rows, -1, slots);
    } else {
        values->tensor[VALUE_GATE_GRADIENTS] =
            experts_gate_gradients(sublayer, "combine gradient", rows, values->tensor[VALUE_EXPERT_OUT], slots);
    }
    values->tensor[VALUE_SLOT_GRADIENTS] = experts_new_slots(builder, "dispatched gradients");
    for (int64_t i = 0; i < experts_here(builder->plan); i++) {
        experts_of(sublayer)[i].gradient = send_rows(sublayer, "output gradient exchange", slots, i);
    }
    return gradient;
}

static void append_fc1_gradient(const struct sublayer *sublayer, int64_t index)
{
    const struct expert_values *expert = &experts_of(sublayer)[index];

    assembly_set_part(&sublayer->builder->assembly, PART_EXPERT_FC1);
    linear_weight_gradient(sublayer->builder, "fc1 weight gradient", expert->fc1_gradient, expert->gathered_again,
                           fc1_of(sublayer, index));
}

static void append_fc2_gradient(const struct sublayer *sublayer, int64_t index)
{
    const struct expert_values *expert = &experts_of(sublayer)[index];

    assembly_set_part(&sublayer->builder->assembly, PART_EXPERT_FC2);
    linear_weight_gradient(sublayer->builder, "fc2 weight gradient", expert->whole_gradient, expert->s,
                           fc2_of(sublayer, index));
}

// Appends the backward pass of one expert, which writes the gradient of its input to `slots`. With
// delay_weight_gradients, the caller appends the weight gradients later, after every expert's input gradient has been
// sent.
static void expert_backward(const struct sublayer *sublayer, int64_t index, int32_t slots)
{
    struct builder       *builder = sublayer->builder;
    struct expert_values *expert  = &experts_of(sublayer)[index];
    bool                  delays  = builder->plan->train.delay_weight_gradients != 0;
    int32_t               fc1 = fc1_of(sublayer, index), fc2 = fc2_of(sublayer, index);

    assembly_set_part(&builder->assembly, PART_EXPERT_FC2);
    int32_t ds = tp_gather_linear(
        builder,
        &(struct linear){
            .role = "fc2 data gradient", .weight = fc2, .is_gradient = true, .is_whole = is_whole(builder)},
        "fc2 output gradient", expert->gradient, &expert->whole_gradient);
    if (!delays) {
        append_fc2_gradient(sublayer, index);
    }
    assembly_set_part(&builder->assembly, PART_EXPERT_ACTIVATION);
    expert->fc1_gradient = activation_backward(builder, ds, expert->fc1);
    // With etp > 1, the reduction of the input gradient overlaps with the weight gradient GEMM, unless that GEMM runs
    // later. If sequence parallelism is on too, the all-gather of the input overlaps with the data gradient GEMM.
    assembly_set_part(&builder->assembly, PART_EXPERT_FC1);
    expert->gathered_again =
        tp_shares_matrix(builder, fc1) ? tp_gather_again(builder, "fc1 input again", expert->in, fc1) : expert->in;
    int32_t d_in = tp_linear_then_reduce(
        builder, &(struct linear){.role = "fc1 data gradient", .weight = fc1, .is_gradient = true},
        "fc1 input gradient", expert->fc1_gradient, output_tensor(builder, slots));
    assembly_set_part(&builder->assembly, PART_DISPATCH);
    exchange(builder, "input gradient exchange", d_in, slots);
    if (!delays) {
        append_fc1_gradient(sublayer, index);
    }
}

// Appends the second part of the backward pass. The shared experts come first, then the router; both overlap with the
// all-to-all of output gradients. The routed experts follow. Returns the sum of the input gradients of shared experts
// and router. If gates multiply inputs, the router needs the experts' input gradients, so dispatch_backward appends it.
static int32_t experts_backward(struct sublayer *sublayer, int32_t gradient)
{
    const struct plan *plan   = sublayer->builder->plan;
    const int32_t     *values = sublayer->values->tensor;
    int32_t            shared = experts_shared_backward(sublayer, gradient);
    int32_t            d_in   = scales_inputs(sublayer->builder)
                                    ? shared
                                    : experts_router_backward(sublayer, values[VALUE_GATE_GRADIENTS], shared);
    for (int64_t i = 0; i < experts_here(plan); i++) {
        expert_backward(sublayer, i, slots_of(sublayer, values[VALUE_SLOT_GRADIENTS], i));
    }
    for (int64_t i = 0; i < experts_here(plan) && plan->train.delay_weight_gradients != 0; i++) {
        append_fc2_gradient(sublayer, i);
        append_fc1_gradient(sublayer, i);
    }
    return d_in;
}

// Appends the backward pass of the projection to expert_hidden. Adds its input gradient to d_in.
static void down_backward(struct sublayer *sublayer, int32_t rows, int32_t d_in)
{
    struct builder *builder = sublayer->builder;
    struct linear   down    = {
             .role = "expert down data gradient", .weight = sublayer->weights[WEIGHT_DOWN], .is_gradient = true};
    assembly_set_part(&builder->assembly, PART_EXPERT_DOWN);
    linear_append(builder, &down, rows, d_in, true);
    linear_weight_gradient(builder, "expert down weight gradient", rows, sublayer->values->tensor[VALUE_N],
                           down.weight);
}

static int32_t dispatch_backward(struct sublayer *sublayer, int32_t d_in)
{
    struct builder *builder = sublayer->builder;
    const int32_t  *values  = sublayer->values->tensor;
    int32_t         slots = values[VALUE_SLOT_GRADIENTS], gates = -1;
    if (scales_inputs(builder)) {
        gates = values[VALUE_GATES];
        assembly_set_part(&builder->assembly, PART_DISPATCH);
        d_in = experts_router_backward(
            sublayer, experts_gate_gradients(sublayer, "gate gradient", values[VALUE_N], slots, -1), d_in);
    }
    assembly_set_part(&builder->assembly, PART_DISPATCH);
    if (is_projected(sublayer)) {
        int32_t rows = assembly_activation(&builder->assembly, "dispatch gradient",
                                           DIMS(builder->routing.rows, builder->routing.columns));
        experts_sum_choices(sublayer, "dispatch gradient", slots, gates, rows, false);
        down_backward(sublayer, rows, d_in);
    } else {
        experts_sum_choices(sublayer, "dispatch gradient", slots, gates, d_in, true);
    }
    return d_in;
}

// Masks of the option recompute_modules: naming one of these modules recomputes the op (forward_step.modules).
enum {
    SHARED     = 1u << MODULE_EXPERTS | 1u << MODULE_SHARED_EXPERTS,
    ACTIVATION = 1u << MODULE_EXPERTS | 1u << MODULE_EXPERT_ACTIVATION
};
enum { ROUTED = BIT(VALUE_CHOICES) | BIT(VALUE_SLOTS) | BIT(VALUE_GATES) | BIT(VALUE_SOURCES) | BIT(VALUE_COUNTS) };

// clang-format off
static const struct forward_step steps[] = {
    // append,                          part,                   reads,                                                makes,                                saved_as,                modules
    { experts_append_logits,            PART_ROUTER,            BIT(VALUE_N),                                         BIT(VALUE_LOGITS),                    1u << OUTPUT_DISPATCH,   1u << MODULE_EXPERTS },
    { experts_append_route,             PART_ROUTER,            BIT(VALUE_LOGITS),                                    ROUTED,                               1u << OUTPUT_DISPATCH,   1u << MODULE_EXPERTS },
    { append_down,                      PART_EXPERT_DOWN,       BIT(VALUE_N),                                         BIT(VALUE_DOWN),                      1u << OUTPUT_DISPATCH,   1u << MODULE_EXPERTS },
    { append_dispatch,                  PART_DISPATCH,          BIT(VALUE_N) | BIT(VALUE_DOWN) | ROUTED,              BIT(VALUE_EXPERT_IN),                 1u << OUTPUT_DISPATCH,   1u << MODULE_EXPERTS },
    { experts_shared_append_fc1,        PART_SHARED_FC1,        BIT(VALUE_N),                                         BIT(VALUE_SHARED_FC1),                1u << OUTPUT_FC1,        SHARED },
    { experts_shared_append_activation, PART_SHARED_ACTIVATION, BIT(VALUE_SHARED_FC1),                                BIT(VALUE_SHARED_S),                  1u << OUTPUT_ACTIVATION, SHARED },
    { append_fc1,                       PART_EXPERT_FC1,        BIT(VALUE_EXPERT_IN),                                 BIT(VALUE_FC1),                       1u << OUTPUT_FC1,        1u << MODULE_EXPERTS },
    { append_activation,                PART_EXPERT_ACTIVATION, BIT(VALUE_FC1),                                       BIT(VALUE_S),                         1u << OUTPUT_ACTIVATION, ACTIVATION },
    { append_fc2,                       PART_EXPERT_FC2,        BIT(VALUE_S),                                         BIT(VALUE_EXPERT_OUT),                1u << OUTPUT_FC2,        1u << MODULE_EXPERTS },
    { append_combine,                   PART_COMBINE,           BIT(VALUE_EXPERT_OUT) | ROUTED | BIT(VALUE_SHARED_S), BIT(VALUE_OUT) | BIT(VALUE_COMBINED), 0,                       0 },
    { append_up,                        PART_EXPERT_UP,         BIT(VALUE_COMBINED) | BIT(VALUE_SHARED_S),            BIT(VALUE_OUT),                       0,                       0 },
    { .append = NULL },
};
// clang-format on

static uint32_t needed_if_projected(const struct model_config *model)
{
    return model->expert_hidden > 0 ? BIT(VALUE_COMBINED) : 0;
}

const struct layer_kind experts_kind = {
    .name    = "experts",
    .norm    = &mlp_norm,
    .declare = experts_declare,
    .steps   = steps,
    .needed  = BIT(VALUE_X) | BIT(VALUE_STATISTICS) | BIT(VALUE_N) | BIT(VALUE_LOGITS) | ROUTED | BIT(VALUE_EXPERT_IN) |
              BIT(VALUE_FC1) | BIT(VALUE_S) | BIT(VALUE_EXPERT_OUT) | BIT(VALUE_SHARED_FC1) | BIT(VALUE_SHARED_S),
    .needed_also = needed_if_projected,
    .exchanged   = BIT(VALUE_EXPERT_IN) | BIT(VALUE_EXPERT_OUT),    // values that all-to-alls make: a pass is divided
                                                                    // there to interleave another microbatch
    .backward    = {combine_backward, experts_backward, dispatch_backward},
    .count       = experts_count,
    .check       = experts_check,
    .has_experts = true,
};
