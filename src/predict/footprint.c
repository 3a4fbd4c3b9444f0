// SPDX-License-Identifier: MIT
// Estimates the device memory of the modelled framework. A walk over the plan's ops sums live tensors and the memory
// that the framework keeps in addition. docs/frameworks.md gives the source of each mechanism.
#include "gswbench/predict.h"

#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/connection.h"

// clang-format off
#define NAME(part, name, key) name,
const char *const footprint_names[] = {FOOTPRINT(NAME)};

#define FIELD(part, name, key) JSON_FIELD(footprint, JSON_FIELD_INTEGER, key, bytes[FOOTPRINT_##part]),
const struct json_field footprint_fields[] = {FOOTPRINT(FIELD)
                                              ROW_INTEGER(footprint, "allocated", allocated),
                                              ROW_INTEGER(footprint, "reserved", reserved),
                                              ROW_INTEGER(footprint, "device", device),
                                              JSON_END};
// clang-format on

// A walk over the ops of a plan. change: bytes by which the live memory of a part of the footprint, such as
// activations, changes at each op. Only the parts in varying[] vary during the step.
struct walk {
    const struct plan            *plan;
    const struct software_config *software;
    int64_t                      *change[FOOTPRINT_PARTS];    // [part][op_count + 1]
    int64_t                      *ended;                      // [op_count + 1]: bytes whose last use is this op
};

static const int varying[] = {FOOTPRINT_ACTIVATIONS, FOOTPRINT_GEMMS,   FOOTPRINT_LOGITS,       FOOTPRINT_PLACEHOLDERS,
                              FOOTPRINT_ATTENTION,   FOOTPRINT_DROPOUT, FOOTPRINT_ROOT_WEIGHTS, FOOTPRINT_PIPELINE};
enum { VARYING = sizeof(varying) / sizeof(varying[0]) };

// Adds bytes that are live from op `first` to op `last`.
static void add_live(struct walk *walk, enum footprint_part part, int32_t first, int32_t last, int64_t bytes)
{
    if (first > last) {
        return;
    }
    walk->change[part][first] += bytes;
    walk->change[part][last + 1] -= bytes;
    walk->ended[last] += bytes;
}

static bool is_of_forward(const struct plan *plan, int32_t op)
{
    return plan->ops[op].tag.phase == PHASE_FORWARD;
}

static bool is_kept(const struct plan *plan, const struct tensor *tensor)
{
    return tensor->layer >= 0 && is_of_forward(plan, tensor->first_op) && !is_of_forward(plan, tensor->last_op);
}

static int64_t bytes_of(const struct plan *plan, enum tensor_content content)
{
    for (int32_t i = 0; i < plan->tensor_count; i++) {
        if (plan->tensors[i].layer >= 0 && plan->tensors[i].holds == content) {
            return plan->tensors[i].bytes;
        }
    }
    return 0;
}

// Returns the bytes of GEMM outputs that a layer saves. With selective recompute, the framework saves the output of
// every second linear of a layer. The linears are q, k, v, projection, gate, up and down, so it saves the outputs of q,
// v, gate and down. No backward op reads the output of down, so a compiler drops it. Without a compiler (option
// keeps_unread) this output stays in memory.
static int64_t second_gemms(const struct walk *walk)
{
    const struct plan *plan = walk->plan;
    int64_t            down = walk->software->keeps_unread ? bytes_of(plan, TENSOR_RESIDUAL) : 0;
    return bytes_of(plan, TENSOR_QUERIES) + bytes_of(plan, TENSOR_KEYS) / 2 + bytes_of(plan, TENSOR_FC1) / 2 + down;
}

static const struct plan_unit *unit_at(const struct plan *plan, int64_t place)
{
    for (int32_t i = 0; i < plan->unit_count; i++) {
        if (plan->units[i].place == place) {
            return &plan->units[i];
        }
    }
    return NULL;
}

// Returns the bytes of an FSDP unit's weights after the all-gather; 0 if they are not sharded.
static int64_t gathered_bytes(const struct plan *plan, const struct plan_unit *unit)
{
    if (unit == NULL || mesh_group_size(&plan->mesh, unit->shard_axes) == 1) {
        return 0;
    }
    return unit->is_low_precision ? unit->elements : format_bytes(plan->precision.weight, unit->elements);
}

// Whether the FSDP unit is the embedding or the head, which are outside the layers.
static bool is_outside(const struct plan *plan, const struct plan_unit *unit)
{
    return unit->place == 0 || unit->place == plan->model.layers + 1;
}

static int64_t head_weight_bytes(const struct plan *plan)
{
    const struct plan_unit *head    = unit_at(plan, plan->model.layers + 1);
    int64_t                 maximum = 0;
    for (int32_t i = 0; head != NULL && i < head->weight_count; i++) {
        const struct weight *weight = &plan->weights[head->first_weight + i];
        maximum = weight->rows * weight->columns > maximum ? weight->rows * weight->columns : maximum;
    }
    return format_bytes(plan->precision.weight, maximum);
}

// Returns the last op of the head's backward pass. The ops of this pass are consecutive and start at index `back`. A
// deferred weight gradient follows later and is not included.
static int32_t end_of_head(const struct plan *plan, int32_t back)
{
    const struct op_tag *tag  = &plan->ops[back].tag;
    int32_t              last = back;
    while (last + 1 < plan->op_count && plan->ops[last + 1].tag.part == tag->part &&
           plan->ops[last + 1].tag.microbatch == tag->microbatch && plan->ops[last + 1].tag.phase == tag->phase) {
        last++;
    }
    return last;
}

// Adds memory that the modelled program (PyTorch) holds only while the logits of a microbatch are live. The loss and
// its gradient hold copies of the logits. The head's backward pass returns a second weight gradient in addition to the
// accumulated one, which PyTorch frees when this pass ends.
static void walk_logits(struct walk *walk, const struct tensor *logits)
{
    const struct plan *plan = walk->plan;
    int32_t            loss = logits->first_op, back;
    while (loss < logits->last_op && plan->ops[loss].kind != OP_CROSS_ENTROPY) {
        loss++;
    }
    for (back = loss; back < logits->last_op && is_of_forward(plan, back);) {
        back++;
    }
    double copies = plan->mesh.size[AXIS_TP] > 1 ? walk->software->parallel_logit_copies : walk->software->logit_copies;
    add_live(walk, FOOTPRINT_LOGITS, loss, back - 1,
             (int64_t)(copies * (double)format_bytes(FORMAT_F32, logits->elements)));
    if (walk->software->gradient_placeholders && !model_is_frozen(&plan->model)) {
        add_live(walk, FOOTPRINT_PLACEHOLDERS, back, end_of_head(plan, back), head_weight_bytes(plan));
    }
    if (walk->software->gather_pool) {
        add_live(walk, FOOTPRINT_ROOT_WEIGHTS, logits->first_op, logits->last_op,
                 gathered_bytes(plan, unit_at(plan, 0)));
    }
}

// Adds memory for pipeline communication. A pipeline stage has a receive buffer per microbatch and direction. It keeps
// sent activations until their gradient arrives.
static void walk_passed_on(struct walk *walk)
{
    const struct plan *plan = walk->plan;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op     *op     = &plan->ops[i];
        const struct tensor *passed = op->kind == OP_SEND      ? &plan->tensors[op->operand[COMMUNICATION_IN]]
                                      : op->kind == OP_RECEIVE ? &plan->tensors[op->operand[COMMUNICATION_OUT]]
                                                               : NULL;
        if (passed == NULL || passed->storage != STORAGE_ACTIVATION) {
            continue;
        }
        if (op->kind == OP_RECEIVE) {
            add_live(walk, FOOTPRINT_PIPELINE, 0, passed->first_op - 1, passed->bytes);
            add_live(walk, FOOTPRINT_PIPELINE, passed->last_op + 1, plan->op_count - 1, passed->bytes);
        } else if (is_of_forward(plan, i)) {
            int32_t back = i;
            while (back + 1 < plan->op_count &&
                   !(plan->ops[back].kind == OP_RECEIVE && plan->ops[back].tag.microbatch == op->tag.microbatch &&
                     plan->ops[back].tag.chunk == op->tag.chunk && !is_of_forward(plan, back))) {
                back++;
            }
            add_live(walk, FOOTPRINT_PIPELINE, passed->last_op + 1, back, passed->bytes);
        }
    }
}

// Whether gathered weights and unsharded gradients stay in memory from the first to the last microbatch, as with FSDP2
// in a pipeline.
static bool keeps_units_whole(const struct walk *walk)
{
    return walk->software->whole_gradients && walk->plan->train.accumulation > 1;
}

static bool has_low_precision_copies(const struct plan *plan)
{
    return plan->precision.low_precision_linears != 0 && !plan->precision.has_low_precision_weights;
}

// Returns the bytes of a tensor's rows in use if the router balances the experts. The plan sizes buffers for the worst
// case.
static int64_t expected_bytes(const struct plan *plan, const struct tensor *tensor)
{
    const struct row_count *row_count = tensor->row_count > 0 ? &plan->row_counts[tensor->row_count - 1] : NULL;
    return row_count == NULL
               ? tensor->bytes
               : (int64_t)((double)tensor->bytes * (double)row_count->expected / (double)row_count->maximum);
}

// Adds memory that the framework keeps in addition to this tensor. Unfused attention keeps the probabilities of all
// query-key pairs, and with dropout also the mask and the output of dropout. Each residual addition has a dropout mask,
// unless the block is recomputed. Ring attention over cp concatenates keys and values in a new tensor.
static void walk_extras(struct walk *walk, const struct tensor *tensor)
{
    const struct plan            *plan     = walk->plan;
    const struct software_config *software = walk->software;
    int32_t                       first = tensor->first_op, last = tensor->last_op;
    bool is_ring = plan->mesh.size[AXIS_CP] > 1 && plan->context == CONTEXT_RING && software->gradient_placeholders;
    if (tensor->holds == TENSOR_STATISTICS && software->unfused_attention) {
        int64_t each = format_bytes(plan->precision.activation, 1) * (software->dropout ? 2 : 1) + software->dropout;
        add_live(walk, FOOTPRINT_ATTENTION, first, last, tensor->elements * plan->train.sequence * each);
    }
    if ((tensor->holds == TENSOR_ATTENTION && software->attention_copies) ||
        (tensor->holds == TENSOR_KEYS && is_ring)) {
        add_live(walk, FOOTPRINT_ATTENTION, first, last, tensor->bytes);
    }
    if (tensor->holds == TENSOR_RESIDUAL && software->dropout && plan->train.recompute != RECOMPUTE_FULL) {
        add_live(walk, FOOTPRINT_DROPOUT, first, last, tensor->elements);
    }
    if (tensor->holds == TENSOR_GATED && software->expert_gates == EXPERT_GATES_SEPARATE) {
        add_live(walk, FOOTPRINT_GEMMS, first, last, expected_bytes(plan, tensor));
    }
}

// Returns the last op that uses the tensor. If gates scale the activations of experts instead of their outputs, the
// backward pass does not read these outputs, and the combine is their last use.
static int32_t last_use(const struct walk *walk, const struct tensor *tensor)
{
    int32_t last = tensor->last_op;
    if (tensor->holds == TENSOR_EXPERT_OUT && walk->software->expert_gates != EXPERT_GATES_OUTPUT) {
        for (last = tensor->first_op; last < tensor->last_op && walk->plan->ops[last].kind != OP_COMBINE;) {
            last++;
        }
    }
    return last;
}

// Adds an offloaded activation, which is on the device only while its layer runs, in the forward and in the backward
// pass.
static void walk_offloaded(struct walk *walk, const struct tensor *tensor, int64_t bytes)
{
    const struct op *ops   = walk->plan->ops;
    int32_t          leave = tensor->first_op, back = tensor->last_op;
    while (leave < tensor->last_op && ops[leave].tag.layer == ops[tensor->first_op].tag.layer) {
        leave++;
    }
    while (back > leave && ops[back].tag.layer == ops[tensor->last_op].tag.layer) {
        back--;
    }
    add_live(walk, FOOTPRINT_ACTIVATIONS, tensor->first_op, leave, bytes);
    add_live(walk, FOOTPRINT_ACTIVATIONS, back > leave ? back : leave + 1, tensor->last_op, bytes);
}

// Whether MXFP8 copies replace the BF16 weights. A copy and a transposed copy together take the bytes of the BF16
// weight, plus 1/32 for scales.
static bool stores_mxfp8(const struct walk *walk)
{
    return walk->software->weights_in_mxfp8 && walk->plan->precision.low_precision_linears != 0 &&
           walk->plan->precision.recipe == RECIPE_MXFP8;
}

static void walk_tensor(struct walk *walk, const struct tensor *tensor)
{
    const struct plan *plan = walk->plan;
    // the framework keeps GEMM outputs (second_gemms) instead of this tensor
    bool replaces =
        walk->software->second_gemms && plan->train.recompute == RECOMPUTE_SELECTIVE && is_kept(plan, tensor);
    bool is_attention = tensor->holds == TENSOR_ATTENTION;
    if (replaces && is_attention) {
        add_live(walk, FOOTPRINT_GEMMS, tensor->first_op, tensor->last_op, second_gemms(walk));
    }
    if (tensor->holds == TENSOR_WEIGHT_COPY &&
        ((keeps_units_whole(walk) && has_low_precision_copies(plan)) || stores_mxfp8(walk))) {
        return;    // the framework keeps no copy, but casts for each GEMM, or it stores the copy instead of the weight
    }
    if (!replaces || is_attention || tensor->holds == TENSOR_STATISTICS || tensor->holds == TENSOR_RESIDUAL) {
        int64_t bytes = expected_bytes(plan, tensor);
        if (tensor->holds == TENSOR_FC1 && walk->software->fp8_activation_inputs && is_kept(plan, tensor)) {
            bytes /= format_bytes(tensor->format, 1);
        }
        if (is_kept(plan, tensor) && tensor->layer < walk->software->offloaded_layers) {
            walk_offloaded(walk, tensor, bytes);
        } else {
            add_live(walk, FOOTPRINT_ACTIVATIONS, tensor->first_op, last_use(walk, tensor), bytes);
        }
    }
    walk_extras(walk, tensor);
    if (tensor->layer < 0 && tensor->holds == TENSOR_LOGITS) {
        walk_logits(walk, tensor);
    }
}

// Returns the bytes of gradient placeholders. Megatron's GEMMs add weight gradients directly to the accumulated
// gradients. Autograd still needs a gradient to return, so Megatron allocates one placeholder per shape of linear
// weights.
static int64_t placeholder_bytes(const struct plan *plan)
{
    int64_t elements = 0;
    for (int32_t i = 0; i < plan->weight_count; i++) {
        const struct weight *weight = &plan->weights[i];
        bool counts = weight->rows > 1 && weight->columns > 1 && !is_outside(plan, &plan->units[weight->unit]) &&
                      !plan->units[weight->unit].is_frozen;
        for (int32_t j = 0; j < i && counts; j++) {
            counts = plan->weights[j].rows != weight->rows || plan->weights[j].columns != weight->columns ||
                     is_outside(plan, &plan->units[plan->weights[j].unit]);
        }
        elements += counts ? weight->rows * weight->columns : 0;
    }
    return format_bytes(plan->precision.weight, elements);
}

static void add_units(struct footprint *footprint, const struct walk *walk)
{
    const struct plan *plan = walk->plan;
    int64_t            root = 0, block = 0, gradients = 0, weights = 0;
    bool               has_masters = false;
    for (int32_t i = 0; i < plan->unit_count; i++) {
        const struct plan_unit *unit  = &plan->units[i];
        int64_t                 bytes = gathered_bytes(plan, unit);
        root += is_outside(plan, unit) ? bytes : 0;
        weights += is_outside(plan, unit) ? 0 : bytes;
        block = !is_outside(plan, unit) && bytes > block ? bytes : block;
        gradients += bytes > 0 && !unit->is_frozen ? format_bytes(FORMAT_F32, unit->elements) : 0;
        has_masters = has_masters || (bytes > 0 && unit->master >= 0);
    }
    footprint->bytes[FOOTPRINT_WEIGHTS] *= !(walk->software->fp32_shards && has_masters);
    footprint->bytes[FOOTPRINT_GATHER_POOL]     = walk->software->gather_pool ? root + 2 * block : 0;
    footprint->bytes[FOOTPRINT_WHOLE_GRADIENTS] = keeps_units_whole(walk) ? gradients : 0;
    footprint->bytes[FOOTPRINT_WHOLE_WEIGHTS] = keeps_units_whole(walk) && has_low_precision_copies(plan) ? weights : 0;
}

// Live bytes during the forward pass of one layer: peak (maximum) and at its end (left). excess: peak minus end,
// maximum over the layers. The allocator keeps the segments that a layer has freed. The logits do not fit into them, so
// the excess adds to the memory (FOOTPRINT_CACHED).
struct layer_live {
    int64_t layer, maximum, left, excess;
};

static void follow(struct layer_live *run, const struct op *op, int64_t live, int64_t ended)
{
    int64_t layer = op->tag.phase == PHASE_FORWARD ? op->tag.layer : -1;
    if (layer != run->layer) {
        run->excess =
            run->layer >= 0 && run->maximum - run->left > run->excess ? run->maximum - run->left : run->excess;
        run->layer   = layer;
        run->maximum = 0;
    }
    run->maximum = live > run->maximum ? live : run->maximum;
    run->left    = live - ended;
}

static void find_worst_moment(struct footprint *footprint, const struct walk *walk)
{
    int64_t           live[VARYING] = {0}, maximum = -1;
    struct layer_live run     = {.layer = -1};
    int64_t           lasting = footprint->bytes[FOOTPRINT_PLACEHOLDERS];
    for (int32_t i = 0; i < walk->plan->op_count; i++) {
        int64_t sum = 0;
        for (int part = 0; part < VARYING; part++) {
            live[part] += walk->change[varying[part]][i];
            sum += live[part];
        }
        follow(&run, &walk->plan->ops[i], sum, walk->ended[i]);
        if (sum > maximum) {
            maximum = sum;
            for (int part = 0; part < VARYING; part++) {
                footprint->bytes[varying[part]] = live[part];
            }
        }
    }
    footprint->bytes[FOOTPRINT_PLACEHOLDERS] += lasting;
    footprint->bytes[FOOTPRINT_ACTIVATIONS] +=
        walk->plan->storage_bytes[STORAGE_INPUT] + walk->plan->storage_bytes[STORAGE_RESULT];
    if (footprint->bytes[FOOTPRINT_LOGITS] > 0) {
        footprint->bytes[FOOTPRINT_CACHED] = run.excess;
    }
}

static void walk_plan(struct footprint *footprint, struct walk *walk)
{
    const struct plan *plan = walk->plan;
    for (int part = 0; part < VARYING; part++) {
        walk->change[varying[part]] = memory_allocate((size_t)(plan->op_count + 1) * sizeof(int64_t));
    }
    bool has_experts = false;
    walk->ended      = memory_allocate((size_t)(plan->op_count + 1) * sizeof(int64_t));
    for (int32_t i = 0; i < plan->tensor_count; i++) {
        const struct tensor *tensor = &plan->tensors[i];
        has_experts                 = has_experts || tensor->holds == TENSOR_EXPERT_OUT;
        if (tensor->storage == STORAGE_ACTIVATION && tensor->first_op >= 0 && tensor->whole == i) {
            walk_tensor(walk, tensor);
        }
    }
    if (walk->software->pipeline_buffers) {
        walk_passed_on(walk);
    }
    double workspaces = walk->software->workspace_mib + (has_experts ? walk->software->expert_workspace_mib : 0.0);
    footprint->bytes[FOOTPRINT_WEIGHTS] += stores_mxfp8(walk) ? footprint->bytes[FOOTPRINT_WEIGHTS] / 32 : 0;
    footprint->bytes[FOOTPRINT_WORKSPACES]   = (int64_t)(workspaces * (1 << 20));
    footprint->bytes[FOOTPRINT_PLACEHOLDERS] = walk->software->gradient_placeholders ? placeholder_bytes(plan) : 0;
    add_units(footprint, walk);
    find_worst_moment(footprint, walk);
    for (int part = 0; part < VARYING; part++) {
        free(walk->change[varying[part]]);
    }
    free(walk->ended);
}

// Returns the bytes of NCCL's buffers. DeepEP and HybridEP move tokens without NCCL, so with them expert communicators
// have no buffers.
static int64_t connection_bytes(const struct plan_connections *connections, const struct software_config *software)
{
    int64_t bytes = connections->bytes;
    for (int32_t i = 0; i < connections->count && software->expert_nodes; i++) {
        bytes -= connections->list[i].stream == STREAM_EXPERT ? connections->list[i].bytes : 0;
    }
    return bytes;
}

bool footprint_is_modelled(const struct software_config *software)
{
    return software->caching_allocator != 0;
}

int64_t footprint_find(struct footprint *footprint, const struct plan *plan, const struct software_config *software,
                       const struct hardware_config *hardware, int64_t ranks_per_node)
{
    struct plan_connections connections;
    plan_connections(&connections, plan, ranks_per_node);
    *footprint                 = (struct footprint){.allocated = 0};
    int64_t *bytes             = footprint->bytes;
    bytes[FOOTPRINT_WEIGHTS]   = plan->storage_bytes[STORAGE_WEIGHT];
    bytes[FOOTPRINT_GRADIENTS] = plan->storage_bytes[STORAGE_GRADIENT];
    bytes[FOOTPRINT_OPTIMIZER] = plan->storage_bytes[STORAGE_OPTIMIZER];
    bytes[FOOTPRINT_ACTIVATIONS] =
        plan_total_bytes(plan) - bytes[FOOTPRINT_WEIGHTS] - bytes[FOOTPRINT_GRADIENTS] - bytes[FOOTPRINT_OPTIMIZER];
    if (footprint_is_modelled(software)) {
        walk_plan(footprint, &(struct walk){.plan = plan, .software = software});
    }
    bytes[FOOTPRINT_CONNECTIONS] = connection_bytes(&connections, software);
    bytes[FOOTPRINT_CONTEXT]     = hardware_context_bytes(hardware);
    for (int part = 0; part < FOOTPRINT_FRAGMENTS; part++) {
        bytes[FOOTPRINT_FRAGMENTS] += (int64_t)(software->fragmentation * (double)bytes[part]);
    }
    for (int part = 0; part < FOOTPRINT_PARTS; part++) {
        footprint->device += bytes[part];
        footprint->reserved += part < FOOTPRINT_CONNECTIONS ? bytes[part] : 0;
        footprint->allocated += part < FOOTPRINT_GATHER_POOL ? bytes[part] : 0;
    }
    free(connections.list);
    return connections.bytes + bytes[FOOTPRINT_CONTEXT];
}
