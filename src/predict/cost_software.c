// SPDX-License-Identifier: MIT
// Corrects the cost of gswbench's ops for the framework that [software] describes. Adds kernels, bytes and launches
// that only the framework has, and removes ops that only gswbench has. docs/frameworks.md explains each correction.
#include <math.h>
#include <stddef.h>

#include "gswbench/number.h"
#include "gswbench/op_operands.h"
#include "gswbench/op_table.h"
#include "internal.h"

// Conditions on [software], the plan and the op. A row of adjustments[] applies if all of its conditions hold.
enum condition {
    ALWAYS        = 0,
    BY_PARTS      = 1 << 0,    // with cp all-gather, attention runs once per part of the keys (option context_parts)
    FP8_ATTENTION = 1 << 1,
    BY_BLOCKS     = 1 << 2,    // FP8 attention with MXFP8 block scales
    BY_SCALE      = 1 << 3,    // FP8 attention with one scale per tensor
    FP8_HEAD      = 1 << 4,
    // GEMM of an FP8 head that casts its operands; the weight-gradient GEMM reuses these casts
    CASTS_HEAD  = 1 << 5,
    HEAD_NORMS  = 1 << 6,     // norms of queries and keys are separate kernels
    BIASES      = 1 << 7,     // GPT-OSS: expert biases and clamped activation are not fused
    FP8_INPUTS  = 1 << 8,     // inputs of MLP activations are saved in FP8
    DROPOUT     = 1 << 9,     // LoRA adapters apply dropout to their inputs
    SUMS        = 1 << 10,    // separate kernels scale and add the outputs of LoRA adapters
    SCALED_ROPE = 1 << 11,    // GPT-OSS: RoPE is not fused
    SUMS_INPUTS = 1 << 12,    // Q, K and V, or gate and up, are separate linears: their input gradients are added
    SWIZZLES    = 1 << 13,    // separate kernels arrange the block scales of a GEMM's operands
};

// Returns the bytes of block scales per element of a GEMM's operands in MXFP8 or NVFP4, else 0.
static double block_scale_bytes(const struct op *op)
{
    enum scaling scaling = op->kind == OP_GEMM ? (enum scaling)op->shape.gemm.scaling_a : SCALING_WHOLE;
    return scaling == SCALING_MX                                   ? 1.0 / 32.0
           : scaling == SCALING_NV || scaling == SCALING_NV_SQUARE ? 1.0 / 16.0
                                                                   : 0.0;
}

static int conditions(const struct software_config *software, const struct plan *plan, const struct op *op)
{
    bool is_low_precision = plan->precision.low_precision_linears != 0;
    bool is_by_parts      = software->context_parts && plan->mesh.size[AXIS_CP] > 1 && plan->context == CONTEXT_GATHER;
    bool is_attention     = software->fp8_attention && is_low_precision,
         has_blocks       = plan->precision.recipe == RECIPE_MXFP8;
    bool has_biases       = plan->model.mlp_bias && plan->model.experts > 0;
    // A forward or input-gradient GEMM of a LoRA adapter: one dimension of its weight is the adapter's rank.
    int64_t rank    = plan->model.adapters.rank;
    bool is_adapter = model_is_frozen(&plan->model) && op->kind == OP_GEMM && op->tag.makes != MAKES_WEIGHT_GRADIENT &&
                      (op->shape.gemm.n == rank || op->shape.gemm.k == rank);
    bool is_head = software->fp8_head && is_low_precision && op->tag.part == PART_HEAD && op->kind == OP_GEMM;
    return (is_by_parts ? BY_PARTS : 0) | (is_attention ? FP8_ATTENTION : 0) |
           (is_attention && has_blocks ? BY_BLOCKS : 0) | (is_attention && !has_blocks ? BY_SCALE : 0) |
           (is_head ? FP8_HEAD : 0) | (is_head && op->tag.makes != MAKES_WEIGHT_GRADIENT ? CASTS_HEAD : 0) |
           (software->head_norms && plan->model.qk_norm ? HEAD_NORMS : 0) |
           (has_biases && software->expert_biases == EXPERT_BIASES_SEPARATE ? BIASES : 0) |
           (has_biases && software->expert_biases != EXPERT_BIASES_PLAN ? SCALED_ROPE : 0) |
           (software->fp8_activation_inputs && is_low_precision ? FP8_INPUTS : 0) |
           (is_adapter ? (int)software->adapter_kernels * DROPOUT : 0) |
           (software->separate_linears && op->tag.makes == MAKES_INPUT_GRADIENT ? SUMS_INPUTS : 0) |
           (software->swizzle_kernels && block_scale_bytes(op) > 0.0 ? SWIZZLES : 0);
}

enum amount {    // adjustment.each is multiplied by this
    ONE,
    MERGED_ELEMENTS,    // elements of Q, times the merges of partial outputs: cp - 1 forward, cp backward
    ATTENTION_BYTES,    // bytes to cast Q, K and V in the forward pass, dO in the backward pass
    // casts for an output-layer GEMM: input or logit gradient, and in a step's first forward pass also the weight
    HEAD_CASTS,
    HEAD_BYTES,          // bytes that these casts read and write
    EXPERT_GAPS,         // seconds of host work between experts; grouped GEMMs are one unless in FP8 or FP4
    EXPERT_ELEMENTS,     // elements of the rows that a rank's experts compute, after the all-gather over etp
    COPIED_ELEMENTS,     // elements copied to sort rows by local expert and back; 0 with one expert per rank
    GATE_ELEMENTS,       // elements of the activation's input
    ROTATED_ELEMENTS,    // elements of Q and K
    ADAPTER_INPUTS,      // elements of the input of a LoRA adapter (forward), and of its gradient (backward)
    ADAPTER_SUMS,        // elements that LoRA kernels scale or add: each output twice, each gradient once
    SUMMED_ELEMENTS,     // elements of the input gradients of separate linears, and of their sum
    ROUTER_KERNELS,      // kernels of the router, in addition to one
    SCALE_KERNELS,       // kernels that find the scale of a cast, in addition to one
    BLOCK_SCALES,        // bytes of the block scales of both operands of a GEMM
    LAUNCHES,            // launches of a GEMM: 1, or 1 / experts if a framework launches experts together
    LOSS_SECONDS,        // seconds of a loss kernel that is bound by its math per logit; the same on any GPU
    SCAN_SECONDS,        // seconds of Mamba scan kernels that are bound by their math; the same on any GPU
};

// A row of adjustments[] is work of the framework that gswbench does not have: `each` x `amount`, in one of these
// units. COPIES read and write a BF16 element, 4 bytes. GENERAL_BYTES are moved by slower kernels for any shape and
// type, such as PyTorch's without a compiler. KERNELS cost a kernel gap each. KERNELS_INSIDE cost the same, but
// factors[] multiplies it. MINIMUM is the minimum time of an op. So an op costs max((gswbench's seconds +
// KERNELS_INSIDE) x its row in factors[], MINIMUM), plus all other units.
enum unit { BYTES, COPIES, GENERAL_BYTES, KERNELS, SECONDS, KERNELS_INSIDE, MINIMUM };
struct adjustment {
    uint8_t  kind[2];    // forward op, backward op
    uint16_t when;
    uint8_t  unit;
    double   each[2];    // in the forward and backward op; multiplied by the amount
    uint8_t  amount;
};

// docs/frameworks.md derives these bytes per element and names the sources.
// clang-format off
#define ATTENTION  {OP_ATTENTION_FORWARD, OP_ATTENTION_BACKWARD}
#define ROUTE      {OP_ROUTE_FORWARD, OP_ROUTE_BACKWARD}
#define ACTIVATION {OP_ACTIVATION_FORWARD, OP_ACTIVATION_BACKWARD}
#define ROPE       {OP_ROPE_FORWARD, OP_ROPE_BACKWARD}
#define SCAN       {OP_SCAN_FORWARD, OP_SCAN_BACKWARD}
#define ONLY(kind) {kind, kind}
static const struct adjustment adjustments[] = {
    // kind,                 when,          unit,           each,     amount
    {ATTENTION,              BY_PARTS,      BYTES,          {46, 60}, MERGED_ELEMENTS},
    {ATTENTION,              FP8_ATTENTION, BYTES,          {1, 1},   ATTENTION_BYTES},
    {ATTENTION,              BY_SCALE,      KERNELS,        {3, 1},   ONE},
    {ATTENTION,              BY_BLOCKS,     KERNELS,        {7, 5},   ONE},
    {ONLY(OP_GEMM),          CASTS_HEAD,    BYTES,          {1, 1},   HEAD_BYTES},
    {ONLY(OP_GEMM),          CASTS_HEAD,    KERNELS,        {1, 1},   HEAD_CASTS},
    {ROUTE,                  ALWAYS,        SECONDS,        {1, 1},   EXPERT_GAPS},
    {ROUTE,                  BIASES,        GENERAL_BYTES,  {28, 40}, EXPERT_ELEMENTS},
    {ROUTE,                  ALWAYS,        COPIES,         {1, 1},   COPIED_ELEMENTS},
    {ACTIVATION,             BIASES,        GENERAL_BYTES,  {8, 10},  GATE_ELEMENTS},
    {ROPE,                   SCALED_ROPE,   GENERAL_BYTES,  {20, 30}, ROTATED_ELEMENTS},
    {ROPE,                   HEAD_NORMS,    BYTES,          {8, 8},   ROTATED_ELEMENTS},
    {ACTIVATION,             FP8_INPUTS,    BYTES,          {3, 3},   GATE_ELEMENTS},
    {ONLY(OP_GEMM),          DROPOUT,       COPIES,         {1, 1},   ADAPTER_INPUTS},
    {ONLY(OP_GEMM),          SUMS,          COPIES,         {1, 1},   ADAPTER_SUMS},
    {ONLY(OP_GEMM),          SUMS_INPUTS,   BYTES,          {2, 2},   SUMMED_ELEMENTS},
    {ONLY(OP_GEMM),          SWIZZLES,      GENERAL_BYTES,  {2, 2},   BLOCK_SCALES},
    {ONLY(OP_GEMM),          SWIZZLES,      KERNELS,        {2, 2},   LAUNCHES},
    {ONLY(OP_ROUTE_FORWARD), ALWAYS,        KERNELS_INSIDE, {1, 1},   ROUTER_KERNELS},
    {ONLY(OP_QUANTIZE),      ALWAYS,        KERNELS_INSIDE, {1, 1},   SCALE_KERNELS},
    {ONLY(OP_CROSS_ENTROPY), ALWAYS,        MINIMUM,        {1, 1},   LOSS_SECONDS},
    {SCAN,                   ALWAYS,        KERNELS,        {4, 11},  ONE},
    {SCAN,                   ALWAYS,        MINIMUM,        {1, 1},   SCAN_SECONDS},
};

// The first row that matches an op names the option of [software] that multiplies its cost. The cost of a GEMM is
// divided by the option gemm_share instead.
enum { ANY = UINT8_MAX };
#define OF(quantity) offsetof(struct software_config, quantity)
static const struct factor {
    uint8_t cost, kind, phase;
    size_t  quantity;
} factors[] = {
    // cost,         kind,                phase,           quantity
    {OP_COST_CAST,   ANY,                 ANY,             OF(cast_bytes)},
    {OP_COST_MEMORY, ANY,                 PHASE_OPTIMIZER, OF(optimizer_bytes)},
    {OP_COST_MEMORY, OP_CROSS_ENTROPY,    ANY,             OF(loss_bytes)},
    {OP_COST_MEMORY, OP_LOGIT_STATISTICS, ANY,             OF(loss_bytes)},
    {OP_COST_MEMORY, OP_DISPATCH,         ANY,             OF(expert_bytes)},
    {OP_COST_MEMORY, OP_COMBINE,          ANY,             OF(expert_bytes)},
    {OP_COST_MEMORY, OP_COMBINE_BACKWARD, ANY,             OF(expert_bytes)},
    {OP_COST_MEMORY, ANY,                 ANY,             OF(memory_bytes)},
    {OP_COST_ROUTE,  ANY,                 ANY,             OF(memory_bytes)},
};

// The host time to launch an op is expert_launch, the time of a module with several kernels, times the `steps` of the
// first row that matches (0: none). A cast, or a collective of tp or cp, is a single call and counts half. Weight and
// bias gradients count 0, because they are launched with the GEMM of the input gradient.
static const struct launches {
    uint8_t kind, stream, makes;
    double  steps;
} launches[] = {
    // kind,        stream,         makes,                 steps
    {ANY,           STREAM_EXPERT,  ANY,                   1.0},
    {ANY,           STREAM_TENSOR,  ANY,                   0.5},
    {ANY,           STREAM_CONTEXT, ANY,                   0.5},
    {OP_QUANTIZE,   STREAM_COMPUTE, ANY,                   0.5},
    {OP_TRANSPOSE,  STREAM_COMPUTE, ANY,                   0.0},
    {OP_COLUMN_SUM, STREAM_COMPUTE, ANY,                   0.0},
    {OP_GEMM,       STREAM_COMPUTE, MAKES_WEIGHT_GRADIENT, 0.0},
    {ANY,           STREAM_COMPUTE, ANY,                   1.0},
};

// For each part of a layer, the smallest value of option launch_graphs with which the framework captures the part in a
// CUDA graph. Parts without an entry (0) need LAUNCH_GRAPHS_ATTENTION. The framework never captures dense MLPs, nor
// routed experts from dispatch to PART_EXPERT_UP, because the row counts of experts depend on the router.
enum { NEVER = ANY };
static const uint8_t graphs[MODEL_PARTS] = {
    [PART_MLP_NORM] = LAUNCH_GRAPHS_ROUTER,   [PART_ROUTER] = LAUNCH_GRAPHS_ROUTER,
    [PART_SHARED_FC1] = LAUNCH_GRAPHS_ROUTER, [PART_SHARED_FC2] = LAUNCH_GRAPHS_ROUTER,
    [PART_SHARED_ACTIVATION] = LAUNCH_GRAPHS_ROUTER,
    [PART_EXPERT_DOWN] = LAUNCH_GRAPHS_ROUTER,
    [PART_FC1] = NEVER,        [PART_ACTIVATION] = NEVER,        [PART_FC2] = NEVER,
    [PART_EXPERT_FC1] = NEVER, [PART_EXPERT_ACTIVATION] = NEVER, [PART_EXPERT_FC2] = NEVER,
    [PART_DISPATCH] = NEVER,   [PART_COMBINE] = NEVER,          [PART_EXPERT_UP] = NEVER,
};
// clang-format on

static double attention_bytes(const struct software_config *software, const struct plan *plan, const struct op *op)
{
    const struct attention_shape *shape  = &op->shape.attention;
    enum scaling_recipe           recipe = plan->precision.recipe;
    int64_t                       values = attention_value_dim(shape), keys = shape->head_dim;
    double                        bytes    = recipe == RECIPE_MXFP8 ? 4.3125 : recipe == RECIPE_DELAYED ? 3.0 : 5.0;
    int64_t                       elements = op->kind == OP_ATTENTION_BACKWARD
                                                 ? shape->sequence * shape->heads * values
                                                 : shape->sequence * shape->heads * keys +
                                 (shape->sequence + shape->earlier) * shape->kv_heads * (keys + values);
    return software->cast_bytes.value * bytes * (double)(shape->batch * elements);
}

// In a LoRA GEMM, one matrix does not have the adapter's rank as a dimension, such as x in t = x A^T. Returns the
// elements of this matrix, times an entry of copies[]. The entries are for the GEMMs t = x A^T, y = t B^T, dt = dy B
// and dx = dt A. gswbench's GEMM adds to its output. A framework that writes the product and then adds it has one copy
// more. Megatron shards B of row-parallel linears over tp.
static double adapter_elements(const struct plan *plan, const struct op *op, const double copies[4])
{
    const struct gemm_shape *shape = &op->shape.gemm;
    // the output has the adapter's rank as a dimension
    bool    is_down   = shape->n == plan->model.adapters.rank;
    bool    is_back   = op->tag.phase == PHASE_BACKWARD;
    bool    is_summed = op->tag.part == PART_PROJECTION || op->tag.part == PART_FC2;
    int64_t parts     = is_summed && is_down == is_back ? plan->mesh.size[AXIS_TP] : 1;
    return copies[2 * is_back + !is_down] * (double)(shape->m * (is_down ? shape->k : shape->n)) / (double)parts;
}

static double expert_gaps(const struct software_config *software, const struct plan *plan,
                          const struct routing_shape *routing)
{
    bool   is_low = plan->precision.low_precision_linears != 0;
    double groups = software->expert_groups && !is_low ? 1.0 : (double)routing->experts / (double)routing->owners;
    double steps  = is_low && !software->expert_groups ? 2.0 : 1.0;
    return software->expert_gap.value * (1.0 + steps * groups) / 2.0;
}

static double find_amount(enum amount amount, const struct software_config *software, const struct plan *plan,
                          const struct op *op)
{
    const struct attention_shape *attention = &op->shape.attention;
    const struct routing_shape   *routing   = &op->shape.routing;
    const struct gemm_shape      *gemm      = &op->shape.gemm;
    bool                          is_first  = op->tag.phase == PHASE_FORWARD && op->tag.microbatch == 0;
    switch (amount) {
    case ONE:
        return 1.0;
    case MERGED_ELEMENTS:
        return (double)((plan->mesh.size[AXIS_CP] - (op->kind == OP_ATTENTION_FORWARD)) * attention->batch *
                        attention->sequence * attention->heads * attention->head_dim);
    case ATTENTION_BYTES:
        return attention_bytes(software, plan, op);
    case HEAD_CASTS:
        return is_first ? 2.0 : 1.0;
    case HEAD_BYTES:
        return software->cast_bytes.value * (plan->precision.recipe == RECIPE_CURRENT ? 6.0 : 4.0) *
               (double)(gemm->m * gemm->k + (is_first ? gemm->n * gemm->k : 0));
    case EXPERT_GAPS:
        return expert_gaps(software, plan, routing);
    case EXPERT_ELEMENTS:
        return (double)((routing->multiple == 0 ? routing_slots(routing) : routing->rows * routing->top_k) *
                        routing->columns * (plan->mesh.etp > 1 ? plan->mesh.etp : 1));
    case COPIED_ELEMENTS:
        return routing->experts > routing->owners
                   ? software->expert_copies.value * find_amount(EXPERT_ELEMENTS, software, plan, op)
                   : 0.0;
    case GATE_ELEMENTS:
        return (double)op_operand_elements(op, op->kind == OP_ACTIVATION_FORWARD ? (int)ACTIVATION_IN
                                                                                 : (int)ACTIVATION_GRADIENT_IN);
    case ROTATED_ELEMENTS:
        return (double)(attention->batch * attention->sequence * (attention->heads + attention->kv_heads) *
                        attention->head_dim);
    case ADAPTER_INPUTS:
        return adapter_elements(plan, op, (const double[4]){1, 0, 0, 1});
    case ADAPTER_SUMS:
        return adapter_elements(plan, op, (const double[4]){0, 2, 1, 1});
    case SUMMED_ELEMENTS: {
        int count = predict_software_gemms(software, plan, op, NULL);
        return count > 1 ? (double)((count + 1) * gemm->m * gemm->n) : 0.0;
    }
    case ROUTER_KERNELS:
        return (double)(software->router_kernels - 1);
    case SCALE_KERNELS:
        return op_finds_scale(op) ? (double)(software->scale_kernels - 1) : 0.0;
    case BLOCK_SCALES:
        return block_scale_bytes(op) * (double)(gemm->m * gemm->k + gemm->k * gemm->n);
    case LAUNCHES:
        return 1.0 / predict_group(software, plan, op);
    case LOSS_SECONDS:
        return software->loss_rate.value > 0.0
                   ? (double)op_operand_elements(op, CROSS_ENTROPY_LOGITS) / software->loss_rate.value
                   : 0.0;
    case SCAN_SECONDS:
        return software->scan_rate.value > 0.0 ? op_flops(op) / software->scan_rate.value : 0.0;
    }
    return 0.0;
}

static double gemm_share(const struct software_config *software, const struct plan *plan, const struct op *op)
{
    bool is_fp4 = plan->tensors[op->operand[GEMM_A]].format == FORMAT_E2M1;
    return software->gemm_share.value * (is_fp4 ? software->gemm_share_fp4.value : 1.0);
}

static double find_factor(const struct software_config *software, const struct plan *plan, const struct op *op)
{
    uint8_t cost = op_table[op->kind].cost;
    for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
        const struct factor *row = &factors[i];
        if (row->cost == cost && (row->kind == ANY || row->kind == op->kind) &&
            (row->phase == ANY || row->phase == op->tag.phase)) {
            return ((const struct quantity *)(const void *)((const char *)software + row->quantity))->value;
        }
    }
    return cost == OP_COST_GEMM ? 1.0 / gemm_share(software, plan, op) : 1.0;
}

// Whether the all-gather gathers the rows of experts. Its input then comes from an all-to-all. On a rank that has all
// experts, its input is a slice of the rows sorted by expert, and the gather is the first op with this slice.
static bool gathers_expert_rows(const struct plan *plan, const struct op *op)
{
    int32_t in = op->operand[COMMUNICATION_IN], made = in >= 0 ? plan->tensors[in].first_op : -1;
    return made >= 0 && (plan->ops[made].kind == OP_ALL_TO_ALL || &plan->ops[made] == op);
}

// Whether the framework can cast to FP8 or FP4 before this gather over tp, because the gathered tensor is quantized
// next. It cannot in two cases: token dispatchers gather expert rows before the cast, and with one scale per row
// (recipe rows) the framework gathers BF16.
static bool gathers_casts(const struct plan *plan, const struct op *op)
{
    int32_t out = op->operand[COMMUNICATION_OUT];
    if (op->stream != STREAM_TENSOR || plan->precision.recipe == RECIPE_ROWS ||
        !(op->kind == OP_ROTATE || (op->kind == OP_ALL_GATHER && !gathers_expert_rows(plan, op)))) {
        return false;
    }
    for (int32_t i = plan->tensors[out].first_op + 1; i <= plan->tensors[out].last_op; i++) {
        if (plan->ops[i].kind == OP_QUANTIZE && plan->ops[i].operand[QUANTIZE_IN] == out) {
            return true;
        }
    }
    return false;
}

// Whether FP8 GEMMs with one scale per tensor read both operands along k, so that some operands need a transposed copy.
// They do on Hopper. On Blackwell (GPUs with FP4), only GEMMs with a scale per block do.
static bool reads_along_k(const struct hardware_config *hardware)
{
    return hardware->peak[RATE_FP4].value == 0.0;
}

// Whether the op casts a tensor to two copies, one of them transposed, with one scale for the whole tensor.
static bool casts_transposed(const struct op *op)
{
    return op->kind == OP_QUANTIZE && op->shape.quantize.scaling == SCALING_WHOLE &&
           op->operand_count > QUANTIZE_TRANSPOSED && op->operand[QUANTIZE_OUT] >= 0 &&
           op->operand[QUANTIZE_TRANSPOSED] >= 0;
}

// Returns the seconds in which a cast reads or writes an FP8 copy of its tensor.
static double fp8_copy_seconds(const struct hardware_config *hardware, const struct op *op)
{
    return (double)op_operand_elements(op, QUANTIZE_OUT) /
           (hardware->cast_efficiency.value * hardware->memory_bandwidth.value);
}

double predict_software_seconds(const struct machine *machine, const struct plan *plan, const struct op *op,
                                double seconds)
{
    const struct software_config *software = machine->software;
    const struct hardware_config *hardware = machine->hardware;
    double                        added = 0.0, minimum = 0.0;
    if (!software->fp8_transposes && !reads_along_k(hardware) && casts_transposed(op)) {
        seconds -= fp8_copy_seconds(hardware, op);
    }
    int32_t made = op->kind == OP_QUANTIZE ? plan->tensors[op->operand[QUANTIZE_IN]].first_op : -1;
    if (software->fp8_gathers && made >= 0 && gathers_casts(plan, &plan->ops[made])) {
        // Each rank casts its own rows before the all-gather. If a transposed copy is needed, the gathered tensor is
        // transposed for the weight gradient. With one scale per block nothing is transposed, because the framework
        // gathers the tensor and its transpose.
        bool transposes = reads_along_k(hardware) && casts_transposed(op);
        seconds =
            seconds / (double)plan->mesh.size[AXIS_TP] + (transposes ? 2.0 * fp8_copy_seconds(hardware, op) : 0.0);
    }
    for (size_t i = 0; i < sizeof(adjustments) / sizeof(adjustments[0]); i++) {
        const struct adjustment *row         = &adjustments[i];
        bool                     is_backward = op->kind != row->kind[0];
        if (op->kind != row->kind[is_backward] || (row->when & ~conditions(software, plan, op)) != 0) {
            continue;
        }
        double amount = find_amount((enum amount)row->amount, software, plan, op);
        double value  = row->each[is_backward] * amount;
        switch ((enum unit)row->unit) {
        case BYTES:
            added += predict_memory_seconds(hardware, value);
            break;
        case GENERAL_BYTES:
            added += value / (hardware->general_efficiency.value * hardware->memory_bandwidth.value);
            break;
        case COPIES:
            added += row->each[is_backward] * predict_memory_seconds(hardware, 4.0 * amount);
            break;
        case KERNELS:
            added += value * hardware->kernel_gap.value;
            break;
        case SECONDS:
            added += value;
            break;
        case KERNELS_INSIDE:
            seconds += value * hardware->kernel_gap.value;
            break;
        case MINIMUM:
            minimum = value;
            break;
        }
    }
    return fmax(seconds * find_factor(software, plan, op), minimum) + added;
}

int predict_software_gemms(const struct software_config *software, const struct plan *plan, const struct op *op,
                           struct op gemm[3])
{
    const struct model_config *model    = &plan->model;
    bool                       is_split = software->separate_linears && op->kind == OP_GEMM;
    double                     heads    = (double)(model->heads + 2 * model->kv_heads);
    double                     share[3] = {0.5, 0.5};
    int                        count    = 1;
    if (is_split && op->tag.part == PART_QKV) {
        share[0] = (double)model->heads / heads;
        share[1] = share[2] = (double)model->kv_heads / heads;
        count               = 3;
    } else if (is_split && op->tag.part == PART_FC1 && model_is_gated(model)) {
        count = 2;
    }
    for (int i = 0; i < count && count > 1 && gemm != NULL; i++) {
        gemm[i]                  = *op;
        struct gemm_shape *shape = &gemm[i].shape.gemm;
        int64_t           *size  = op->tag.makes == MAKES_OUTPUT           ? &shape->n
                                   : op->tag.makes == MAKES_INPUT_GRADIENT ? &shape->k
                                                                           : &shape->m;
        *size                    = (int64_t)((double)*size * share[i] + 0.5);
    }
    return count;
}

struct op predict_software_blocks(const struct software_config *software, const struct plan *plan, const struct op *op)
{
    struct op framework = *op;
    int64_t   tp = plan->mesh.size[AXIS_TP], rows = plan->train.sequence * plan->train.micro_batch;
    bool      is_block = op->kind == OP_GEMM && op->tag.makes != MAKES_WEIGHT_GRADIENT && tp > 1 &&
                    op->tag.part != PART_ROUTER &&    // has one tp rank's rows, too, but is no part of a larger GEMM
                    op->shape.gemm.m * tp * plan->mesh.size[AXIS_CP] == rows;
    bool is_reduced = op->tag.makes == MAKES_OUTPUT && (op->tag.part == PART_PROJECTION || op->tag.part == PART_FC2);
    if (!is_block || (is_reduced && software->reduce_parts == 0)) {
        return framework;
    }
    framework.shape.gemm.m *=
        is_reduced ? number_max(1, tp / software->reduce_parts) : number_min(software->gather_blocks, tp);
    framework.accumulates = op->accumulates && !is_reduced;
    return framework;
}

bool predict_is_low_precision_head(const struct software_config *software, const struct plan *plan, const struct op *op)
{
    return (conditions(software, plan, op) & FP8_HEAD) != 0;
}

double predict_group(const struct software_config *software, const struct plan *plan, const struct op *op)
{
    bool is_grouped =
        software->expert_groups &&
        (op->kind == OP_GEMM || op->kind == OP_ACTIVATION_FORWARD || op->kind == OP_ACTIVATION_BACKWARD) &&
        (op->tag.part == PART_EXPERT_FC1 || op->tag.part == PART_EXPERT_ACTIVATION || op->tag.part == PART_EXPERT_FC2);
    return is_grouped ? (double)plan->model.experts / (double)mesh_group_size(&plan->mesh, plan->mesh.owner_axes) : 1.0;
}

bool predict_software_has(const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const struct software_config *software = machine->software;
    int32_t made = op->kind == OP_QUANTIZE ? plan->tensors[op->operand[QUANTIZE_IN]].first_op : -1;
    // The norm before the cast writes the FP8 copies itself, except in layers with experts, whose router reads its
    // output.
    if (software->mxfp8_norms && made >= 0 && op->shape.quantize.scaling == SCALING_MX &&
        plan->ops[made].kind == OP_NORM_FORWARD && (op->tag.part == PART_QKV || op->tag.part == PART_FC1)) {
        return true;
    }
    if (op->kind != OP_TRANSPOSE || plan->tensors[op->operand[TRANSPOSE_IN]].storage != STORAGE_WEIGHT) {
        return false;
    }
    if (!software->fp8_transposes && !reads_along_k(machine->hardware)) {
        return true;
    }
    return model_is_frozen(&plan->model) ? !software->frozen_transposes
                                         : software->fp8_transposes_once && op->tag.microbatch > 0;
}

// Returns the bits of an element that is cast before it is gathered. In NVFP4 they include its share of the block's
// scale.
static double cast_bits(const struct plan *plan)
{
    const struct format_row *format = &format_table[plan->precision.low_precision_format[ROLE_INPUT]];
    bool                     is_nv  = plan->precision.recipe == RECIPE_NVFP4;
    return is_nv ? format->bits + (double)format_table[FORMAT_E4M3].bits / SCALING_NV_BLOCK
                 : format_table[FORMAT_E4M3].bits;
}

// Returns the bytes of a communication op in the framework, divided by its bytes in gswbench. With option context_parts
// and GQA, PyTorch expands K and V to the number of query heads before attention. The gradients of K and V travel a
// full round of the cp ring in fp32, one step more than in gswbench's reduce-scatter.
double predict_software_bytes(const struct software_config *software, const struct plan *plan, const struct op *op)
{
    int32_t out   = op->operand[COMMUNICATION_OUT];
    double  bits  = out >= 0 ? (double)format_table[plan->tensors[out].format].bits : 0.0;
    double  share = 1.0;
    if (out < 0) {
        return share;
    }
    if (op->stream == STREAM_CONTEXT && (conditions(software, plan, op) & BY_PARTS) != 0) {
        double ranks = (double)plan->mesh.size[AXIS_CP];
        share        = (double)plan->model.heads / (double)plan->model.kv_heads;
        share *= op->kind == OP_REDUCE_SCATTER ? format_table[FORMAT_F32].bits / bits * ranks / (ranks - 1.0) : 1.0;
    }
    // Transformer Engine casts Q, K and V before the all-to-all if the scales are known then
    // (AttnFuncWithCPAndQKVOA2A).
    bool casts_first = plan->precision.recipe == RECIPE_DELAYED || plan->precision.recipe == RECIPE_NVFP4;
    if (op->kind == OP_ALL_TO_ALL && op->stream == STREAM_CONTEXT && casts_first &&
        (conditions(software, plan, op) & FP8_ATTENTION) != 0) {
        share *= format_table[FORMAT_E4M3].bits / bits;
    }
    bool is_cast = software->fp8_gathers && plan->precision.low_precision_linears != 0 && gathers_casts(plan, op);
    return is_cast ? share * cast_bits(plan) / bits : share;
}

// Sets the host time to launch an op. Only layers of models with experts have launch times. If a token is sent once per
// node (expert_nodes), one kernel sorts the rows and sends them. Only the sorting op then has a launch time, and the
// all-to-all has none. Dropless routing synchronizes: the host reads the tokens per expert before it continues.
void predict_cost_launch(struct cost *cost, const struct machine *machine, const struct plan *plan, const struct op *op)
{
    const struct software_config *software = machine->software;
    const struct launches        *row = launches, *end = launches + sizeof(launches) / sizeof(launches[0]);
    if (software->expert_launch.value == 0.0 || plan->model.experts == 0 || op->tag.layer < 0 ||
        op->tag.microbatch < 0) {
        return;
    }
    while (row < end && !((row->kind == ANY || row->kind == op->kind) && row->stream == op->stream &&
                          (row->makes == ANY || row->makes == op->tag.makes))) {
        row++;
    }
    double step  = software->expert_launch.value * machine->hardware->launch_share.value;
    double steps = row == end || (op->stream == STREAM_EXPERT && software->expert_nodes) ? 0.0 : row->steps;
    int    scope = graphs[op->tag.part] != 0 ? graphs[op->tag.part] : LAUNCH_GRAPHS_ATTENTION;

    cost->is_in_graph    = scope <= software->launch_graphs;
    cost->launch_seconds = (cost->is_in_graph ? 1.0 : steps) * step;
    cost->launch_alone   = cost->launch_seconds * machine->hardware->launch_alone.value;
    cost->is_read        = op->kind == OP_ROUTE_FORWARD && plan->model.capacity_factor == 0.0;
}
