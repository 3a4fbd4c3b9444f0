// SPDX-License-Identifier: MIT
// Estimates upper bounds of the ops and bytes of a job's plans without building them.

#include <math.h>

#include "gswbench/plan_build.h"
#include "block.h"

// Upper bounds of the number of ops that a plan has per sublayer, linear or step, as each line says. Forward, recompute
// and backward ops count together. The bounds were counted in the code and rounded up; a test compares them with plans
// of every layout.
enum {
    OPS_OF_SUBLAYER = 12,    // per microbatch and sublayer: norms, activation, RoPE, attention, gathers, reductions
    OPS_OF_LINEAR   = 4,     // per microbatch and linear: GEMMs
    OPS_OF_ADAPTERS = 16,    // per microbatch and sublayer with adapters: GEMMs of A and B
    OPS_OF_BIAS     = 1,     // per microbatch and linear: gradient of the bias
    OPS_OF_SINKS    = 3,     // per microbatch and attention with sinks: forward, recompute, gradient of the sinks
    OPS_OF_COPIES   = 7,     // per microbatch and FP8 linear: quantization of its operands
    OPS_OF_SHARDS   = 4,     // per microbatch and linear that tp shards: collectives
    OPS_OF_BLOCK    = 8,     // with tp_overlap, per microbatch, linear and ring step: GEMM, and send and receive
    OPS_OF_LATENT   = 16,    // per microbatch and latent attention: splits, norms, RoPE, collectives of the shared key
    OPS_OF_MAMBA    = 8,     // per microbatch and Mamba-2 sublayer: convolution, scan and gated norm
    OPS_OF_ROUTING  = 10,    // per microbatch and sublayer with experts: router, dispatch, combine, token counts
    OPS_OF_EXPERT   = 10,    // per microbatch and expert of this rank: activation, all-to-alls
    OPS_OF_RUN      = 6,     // with cp, per microbatch, query chunk and key block: attention, merge, reordering
    OPS_OF_EXCHANGE = 30,    // per microbatch and Ulysses attention: all-to-alls and reordering
    OPS_OF_ACTION   = 20,    // per microbatch and pipeline chunk: embedding, head, sends and receives
    OPS_OF_UPDATE   = 5,     // per step and weight: gradient norm, optimizer, gathers, quantization
    OPS_OF_MUON     = 66,    // per step and linear with Muon: all ops of three matrices (Mamba-2: five and one)
    OPS_OF_STEP     = 32,    // per step: all other ops
};

// Limits of the ops in the plan of one rank, and in the plans of one rank per pipeline stage together. Verifying that
// many ops takes some gigabytes and minutes. bytes_max limits the bytes of a rank, so that their sums do not overflow
// int64_t.
enum { RANK_OPS_MAX = 1 << 21, STAGE_OPS_MAX = 9 << 20 };
static const double bytes_max = 0x1p62;

// Maximum bytes per element of an op's output, with scales and statistics, and maximum bytes per parameter, with
// gradient and optimizer state. Both are maxima over all formats.
enum { OP_ELEMENT_BYTES = 32, PARAMETER_BYTES = 64 };

// A request and its parsed layer pattern. Sizes are computed as doubles, because the product of the largest options
// overflows 64-bit integers.
struct size {
    const struct plan_request *request;
    struct layer_pattern       pattern;
};

// Returns the ops of this number of linear layers per microbatch. is_sharded: tp shards the layers.
static double ops_of_linears(const struct plan_request *request, double linears, bool is_sharded)
{
    double of_linear = OPS_OF_LINEAR + (request->precision.low_precision_linears != 0 ? OPS_OF_COPIES : 0);
    of_linear += request->model.attention_bias || request->model.mlp_bias ? OPS_OF_BIAS : 0;
    if (is_sharded) {
        of_linear += OPS_OF_SHARDS;
        of_linear += request->parallel.tp_overlap != 0 ? OPS_OF_BLOCK * (double)request->mesh.size[AXIS_TP] : 0;
    }
    return of_linear * linears;
}

static double ops_of_sublayer(const struct plan_request *request, const struct layer_kind *kind)
{
    const struct mesh *mesh  = &request->mesh;
    struct layer_count count = kind->count(&request->model);
    double  ops     = OPS_OF_SUBLAYER + (kind == &latent_kind ? OPS_OF_LATENT : kind == &mamba_kind ? OPS_OF_MAMBA : 0);
    int64_t experts = kind->has_experts ? MLP_LINEARS * request->model.experts : 0;
    if (kind->has_experts) {
        double here = (double)experts / (double)mesh_group_size(mesh, mesh->owner_axes);
        ops += OPS_OF_ROUTING + ops_of_linears(request, here, mesh->etp > 1);
        ops += (double)OPS_OF_EXPERT / MLP_LINEARS * here;
    }
    ops += ops_of_linears(request, (double)(count.linears - experts), mesh->size[AXIS_TP] > 1);
    bool attends = count.attended + count.windowed > 0;
    ops += count.adapters > 0 ? OPS_OF_ADAPTERS : 0;
    ops += attends && request->model.attention_sinks ? OPS_OF_SINKS : 0;
    ops += kind->has_experts && request->model.router_offset ? OPS_OF_BIAS : 0;
    if (attends && mesh->size[AXIS_CP] > 1) {
        double visits =
            request->model.positions == POSITIONS_ALIBI ? HALVES : 1;    // maximum attention ops per chunk and block
        double runs = (double)mesh->size[AXIS_CP] * (visits * (double)(HALVES * request->train.micro_batch) + 1);
        ops += request->parallel.context == CONTEXT_EXCHANGE ? OPS_OF_EXCHANGE : OPS_OF_RUN * runs;
    }
    return ops;
}

// Returns the ops of one layer in a step, over all microbatches and in the optimizer.
static double ops_of_layer(const struct plan_request *request, const struct layer_run *run)
{
    double  ops     = 0;
    int64_t experts = MLP_LINEARS * request->model.experts;
    int64_t here    = experts / mesh_group_size(&request->mesh, request->mesh.owner_axes);
    for (int32_t kind = 0; kind < run->count; kind++) {
        int64_t linears    = run->kinds[kind]->count(&request->model).linears;
        int64_t of_experts = run->kinds[kind]->has_experts ? experts : 0, own = of_experts > 0 ? here : 0;
        double  of_weights = OPS_OF_UPDATE * (double)(model_is_frozen(&request->model) ? 1 : linears + 4);
        if (request->train.optimizer == OPTIMIZER_MUON) {    // the two linears of an expert have up to three matrices
            of_weights += OPS_OF_MUON * ((double)(linears - of_experts) + (double)own / MLP_LINEARS);
        }
        ops += (double)request->train.accumulation * ops_of_sublayer(request, run->kinds[kind]) + of_weights;
    }
    return ops;
}

// Returns the ops of the layers from `first` to end - 1 in a step.
static double ops_of_layers(const struct size *size, int64_t first, int64_t end)
{
    const struct plan_request *request = size->request;
    double                     ops     = 0;
    int64_t                    begin   = 0;
    for (int i = 0; i < size->pattern.count; i++) {
        const struct layer_run *run    = &size->pattern.runs[i];
        int64_t                 from   = first > begin ? first : begin;
        int64_t                 to     = end < begin + run->layers ? end : begin + run->layers;
        double                  layers = to > from ? (double)(to - from) : 0;
        ops += layers * ops_of_layer(request, run);
        begin += run->layers;
    }
    return ops;
}

static double ops_of_stage(const struct size *size, int64_t stage)
{
    const struct plan_request *request    = size->request;
    const struct mesh         *mesh       = &request->mesh;
    struct schedule_assignment assignment = plan_assignment(request);
    double                     ops        = OPS_OF_STEP;
    for (int64_t chunk = 0; chunk < mesh->vp; chunk++) {
        struct schedule_layers held = schedule_layers(&assignment, chunk * mesh->size[AXIS_PP] + stage);
        ops += OPS_OF_ACTION * (double)request->train.accumulation +
               ops_of_layers(size, held.first, held.first + held.count);
    }
    bool is_last = stage == mesh->size[AXIS_PP] - 1;
    return ops +
           (is_last ? (double)size->pattern.prediction.layers * ops_of_layer(request, &size->pattern.prediction) : 0);
}

// Returns an upper bound of the elements of the largest tensor that an op makes: an activation of a layer, the tokens
// for the experts, or the logits.
static double largest_elements(const struct plan_request *request)
{
    const struct model_config *model   = &request->model;
    double                     tokens  = (double)request->train.micro_batch * (double)request->train.sequence;
    double                     experts = model->experts > 0 ? (double)model->experts : 1;
    double                     width   = (double)model->heads * (double)model_key_dim(model) +
                   (double)model->kv_heads * (double)(model_key_dim(model) + model_value_dim(model));
    width      = fmax(width, (double)model->adapters.rank);
    double ffn = fmax(fmax((double)model->ffn, (double)model->shared_ffn), (double)model_expert_ffn(model));
    width      = fmax(fmax(width, (double)model->hidden), 2.0 * ffn);
    width      = fmax(width, 2.0 * (double)(model_mamba_inner(model) + model->mamba_groups * model->mamba_state) +
                                 (double)model->mamba_heads);
    return tokens / (double)request->mesh.size[AXIS_CP] *
           fmax(width * experts, (double)model_padded_vocab(model, request->mesh.size[AXIS_TP]));
}

struct plan_size plan_size(const struct plan_request *request)
{
    struct size      size   = {.request = request};
    struct plan_size bounds = {.rank_ops = 0};
    status           read   = pattern_read(&size.pattern, &request->model);
    for (int64_t stage = 0; stage < request->mesh.size[AXIS_PP] && !failed(&read); stage++) {
        double ops      = ops_of_stage(&size, stage);
        bounds.rank_ops = ops > bounds.rank_ops ? ops : bounds.rank_ops;
        bounds.stage_ops += ops;
    }
    double padded     = (double)model_padded_vocab(&request->model, request->mesh.size[AXIS_TP]);
    double parameters = (double)layers_parameters(&request->model) +
                        2 * padded * (double)request->model.hidden;    // embedding and output layer, with padding
    bounds.rank_bytes = PARAMETER_BYTES * parameters + OP_ELEMENT_BYTES * bounds.rank_ops * largest_elements(request);
    return bounds;
}

struct plan_request plan_shorten(const struct plan_request *request, int64_t microbatches)
{
    struct plan_request  shorter = *request;
    struct train_config *train   = &shorter.train;
    int64_t              all     = train->accumulation;
    if (microbatches < all) {
        train->accumulation = microbatches;
        train->global_batch = train->global_batch / all * microbatches;
    }
    return shorter;
}

// Returns 3 (f + d). Predictions extrapolate long steps from this number of microbatches and two thirds of it. f is the
// number that fills the pipeline: one per stage, or two if microbatches overlap in pairs. d is the number with deferred
// head gradients, rounded up to a multiple of the stages.
int64_t plan_enough_microbatches(const struct plan_request *request)
{
    int64_t stages = request->mesh.size[AXIS_PP], deferred = request->parallel.deferred_head_gradients;
    int64_t filled = stages * (request->train.overlap_microbatches != 0 ? 2 : 1);
    return 3 * (filled + (deferred + stages - 1) / stages * stages);
}

bool plan_is_long(const struct plan_request *request)
{
    struct plan_request shorter = plan_shorten(request, plan_enough_microbatches(request));
    status              whole = plan_check_size(request), reduced = plan_check_size(&shorter);
    return failed(&whole) && !failed(&reduced);
}

status plan_check_size(const struct plan_request *request)
{
    struct plan_size size = plan_size(request);
    FAIL_IF(size.rank_ops > RANK_OPS_MAX || size.stage_ops > STAGE_OPS_MAX,
            "a step of about %.3g ops per rank, %.3g over one rank of each stage: the limits are %d and %d; lower "
            "[train] accumulation (larger micro_batch or smaller global_batch), [model] layers or experts, or "
            "[parallel] cp, or use more pipeline stages",
            size.rank_ops, size.stage_ops, RANK_OPS_MAX, STAGE_OPS_MAX);
    FAIL_IF(size.rank_bytes > bytes_max,
            "tensors of up to %.3g bytes per rank: the limit is %.3g bytes; lower [train] micro_batch or sequence, or "
            "[model] layers, experts, ffn or vocab",
            size.rank_bytes, bytes_max);
    return OK;
}
