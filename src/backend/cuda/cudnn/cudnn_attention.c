// SPDX-License-Identifier: MIT
// Plans and executes attention with cuDNN. There is one entry per op kind and shape, which holds the plans, or cuDNN's
// error if there are none.
#include "../cudnn_attention.h"

#include "../internal.h"

#include <math.h>
#include <stdlib.h>

#include "cudnn_graph.h"
#include "gswbench/arena.h"

// Oldest supported version, the first with device descriptors in its headers. Versions before 9.6 would also need
// zeroed query gradient sums.
enum { OLDEST_VERSION = 90800 };

// struct planned_entry starts with its public struct cudnn_entry, so a pointer to one can be cast to the other. The
// same is true of struct cudnn_state and struct cudnn_attention.
struct planned_entry {
    struct cudnn_entry     base;
    struct attention_shape shape;
    struct cudnn_graph     graph;
    struct cudnn_plan      plans[CUDNN_PLANS];
};

struct cudnn_state {
    struct cudnn_attention base;
    struct cudnn           cudnn;
    cudnnHandle_t          handle;
};

static status load(struct cudnn_state *attention)
{
    TRY(cudnn_open(&attention->cudnn));
    if (attention->cudnn.cudnnGetVersion() < OLDEST_VERSION) {
        char version[32];
        cudnn_version(&attention->cudnn, version, sizeof(version));
        return fail("%s is too old: 9.8 or newer is needed", version);
    }
    cudnnStatus_t code = attention->cudnn.cudnnCreate(&attention->handle);
    return code == CUDNN_STATUS_SUCCESS ? OK : cudnn_failure(&attention->cudnn, "handle", code);
}

status cudnn_attention_open(struct cudnn_attention **attention)
{
    struct cudnn_state *opened = memory_allocate(sizeof(*opened));
    status              loaded = load(opened);
    if (failed(&loaded)) {
        free(opened);
        return loaded;
    }
    *attention = &opened->base;
    return OK;
}

void cudnn_attention_close(struct cudnn_attention *base)
{
    struct cudnn_state *attention = (struct cudnn_state *)base;
    while (base->entries != NULL) {
        struct planned_entry *entry = (struct planned_entry *)base->entries;
        base->entries               = entry->base.next;
        cudnn_graph_free(&entry->graph);
        free(entry);
    }
    attention->cudnn.cudnnDestroy(attention->handle);
    free(attention);
}

void cudnn_attention_version(const struct cudnn_attention *attention, char *text, size_t bytes)
{
    cudnn_version(&((const struct cudnn_state *)attention)->cudnn, text, bytes);
}

// Returns whether one plan fits both shapes. Accumulation does not matter, because the caller adds the gradients.
static bool is_equal(const struct attention_shape *a, const struct attention_shape *b)
{
    return a->batch == b->batch && a->sequence == b->sequence && a->heads == b->heads && a->kv_heads == b->kv_heads &&
           a->head_dim == b->head_dim && attention_value_dim(a) == attention_value_dim(b) && a->causal == b->causal &&
           a->earlier == b->earlier && a->window == b->window;
}

static struct cudnn_entry *find(const struct cudnn_attention *attention, const struct op *op)
{
    struct cudnn_entry *entry = attention->entries;
    while (entry != NULL &&
           (entry->kind != op->kind || !is_equal(&((struct planned_entry *)entry)->shape, &op->shape.attention))) {
        entry = entry->next;
    }
    return entry;
}

// Offsets in an op's scratch: the plan's workspace is first. Backward ops then have the row sums of dO * O and the fp32
// sums of the query gradients.
static int64_t row_sum_offset(const struct planned_entry *entry)
{
    return cuda_align(entry->plans[entry->base.taken].workspace_bytes);
}

static int64_t query_sum_offset(const struct planned_entry *entry)
{
    const struct attention_shape *shape = &entry->shape;
    return row_sum_offset(entry) + cuda_align(shape->batch * shape->heads * shape->sequence * (int64_t)sizeof(float));
}

int64_t cudnn_attention_scratch(const struct cudnn_entry *base)
{
    const struct planned_entry   *entry = (const struct planned_entry *)base;
    const struct attention_shape *shape = &entry->shape;
    if (base->kind == OP_ATTENTION_FORWARD) {
        return row_sum_offset(entry);
    }
    return query_sum_offset(entry) +
           cuda_align(shape->batch * shape->heads * shape->sequence * shape->head_dim * (int64_t)sizeof(float));
}

status cudnn_attention_prepare(struct cudnn_attention *base, const struct op *op, struct cudnn_entry **planned)
{
    struct cudnn_state *attention = (struct cudnn_state *)base;
    *planned                      = find(base, op);
    if (*planned == NULL) {
        struct planned_entry *entry = memory_allocate(sizeof(*entry));
        *entry                      = (struct planned_entry){.base  = {.kind = op->kind, .next = base->entries},
                                                             .shape = op->shape.attention,
                                                             .graph = {.cudnn = &attention->cudnn}};
        cudnn_attention_describe(&entry->graph, op);
        entry->base.refusal = cudnn_graph_plan(&entry->graph, attention->handle, entry->plans, &entry->base.count);
        base->entries       = &entry->base;
        *planned            = &entry->base;
    }
    return (*planned)->refusal;
}

int64_t cudnn_attention_engine(const struct cudnn_entry *entry)
{
    return ((const struct planned_entry *)entry)->plans[entry->taken].engine;
}

// The tensors of one execution: for each, its id in the graph and the pointer that is bound to this id.
struct binding {
    int64_t id[CUDNN_ATTENTION_ID_COUNT];
    void   *pointer[CUDNN_ATTENTION_ID_COUNT];
    int64_t count;
};

static void bind(struct binding *binding, enum cudnn_attention_id id, void *pointer)
{
    binding->id[binding->count]        = id;
    binding->pointer[binding->count++] = pointer;
}

// Binds keys and values, or their gradients. They are in one tensor, and each row has the keys first.
static void bind_pair(struct binding *binding, enum cudnn_attention_id key, enum cudnn_attention_id value,
                      const struct buffer *pair, const struct attention_shape *shape)
{
    bind(binding, key, pair->data);
    bind(binding, value, (char *)pair->data + format_offset(pair->format, shape->kv_heads * shape->head_dim));
}

static status execute(const struct cudnn_state *attention, const struct planned_entry *entry, void *workspace,
                      const struct binding *binding)
{
    const struct cudnn      *cudnn = &attention->cudnn;
    cudnnBackendDescriptor_t pack  = NULL;
    cudnnStatus_t            code  = cudnn->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    const struct {
        cudnnBackendAttributeName_t name;
        cudnnBackendAttributeType_t type;
        int64_t                     count;
        const void                 *data;
    } attributes[] = {
        {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, binding->count, binding->id},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, binding->count, binding->pointer},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace},
    };
    for (int i = 0; i < 3 && code == CUDNN_STATUS_SUCCESS; i++) {
        code = cudnn->cudnnBackendSetAttribute(pack, attributes[i].name, attributes[i].type, attributes[i].count,
                                               attributes[i].data);
    }
    code          = code == CUDNN_STATUS_SUCCESS ? cudnn->cudnnBackendFinalize(pack) : code;
    code          = code == CUDNN_STATUS_SUCCESS
                        ? cudnn->cudnnBackendExecute(attention->handle, entry->plans[entry->base.taken].descriptor, pack)
                        : code;
    status result = code == CUDNN_STATUS_SUCCESS ? OK : cudnn_failure(cudnn, "attention", code);
    if (pack != NULL) {
        cudnn->cudnnBackendDestroyDescriptor(pack);
    }
    return result;
}

static void bind_forward(struct binding *binding, const struct buffer buffers[], const struct attention_shape *shape)
{
    bind(binding, CUDNN_ATTENTION_QUERY, buffers[ATTENTION_QUERY].data);
    bind_pair(binding, CUDNN_ATTENTION_KEY, CUDNN_ATTENTION_VALUE, &buffers[ATTENTION_KEY_VALUE], shape);
    bind(binding, CUDNN_ATTENTION_OUT, buffers[ATTENTION_OUT].data);
    bind(binding, CUDNN_ATTENTION_STATISTICS, buffers[ATTENTION_STATISTICS].data);
}

static void bind_backward(struct binding *binding, const struct buffer buffers[], const struct attention_shape *shape)
{
    bind(binding, CUDNN_ATTENTION_QUERY, buffers[ATTENTION_GRADIENT_QUERY_IN].data);
    bind_pair(binding, CUDNN_ATTENTION_KEY, CUDNN_ATTENTION_VALUE, &buffers[ATTENTION_GRADIENT_KEY_VALUE_IN], shape);
    bind(binding, CUDNN_ATTENTION_OUT, buffers[ATTENTION_GRADIENT_OUT_IN].data);
    bind(binding, CUDNN_ATTENTION_STATISTICS, buffers[ATTENTION_GRADIENT_STATISTICS].data);
    bind(binding, CUDNN_ATTENTION_OUT_GRADIENT, buffers[ATTENTION_GRADIENT_OUT].data);
    bind(binding, CUDNN_ATTENTION_QUERY_GRADIENT, buffers[ATTENTION_GRADIENT_QUERY].data);
    bind_pair(binding, CUDNN_ATTENTION_KEY_GRADIENT, CUDNN_ATTENTION_VALUE_GRADIENT,
              &buffers[ATTENTION_GRADIENT_KEY_VALUE], shape);
}

status cudnn_attention_run(struct cudnn_attention *base, const struct cudnn_entry *planned, const struct op *op,
                           const struct cudnn_memory *memory)
{
    const struct cudnn_state   *attention = (const struct cudnn_state *)base;
    const struct planned_entry *entry     = (const struct planned_entry *)planned;
    struct binding              binding   = {.count = 0};
    float                       scale = op->shape.attention.scale, infinity = -INFINITY, one = 1;
    int32_t earlier = (int32_t)op->shape.attention.earlier, window = (int32_t)op->shape.attention.window;

    cudnnStatus_t code = attention->cudnn.cudnnSetStream(attention->handle, memory->stream);
    if (code != CUDNN_STATUS_SUCCESS) {
        return cudnn_failure(&attention->cudnn, "stream", code);
    }
    bind(&binding, CUDNN_ATTENTION_SCALE, &scale);
    if (op->shape.attention.causal) {
        bind(&binding, CUDNN_ATTENTION_MINUS_INFINITY, &infinity);
        if (earlier > 0) {
            bind(&binding, CUDNN_ATTENTION_EARLIER, &earlier);
        }
        if (window > 0) {
            bind(&binding, CUDNN_ATTENTION_WINDOW, &window);
        }
    }
    if (op->kind == OP_ATTENTION_FORWARD) {
        bind_forward(&binding, memory->buffers, &entry->shape);
    } else {
        bind_backward(&binding, memory->buffers, &entry->shape);
        bind(&binding, CUDNN_ATTENTION_ONE, &one);
        bind(&binding, CUDNN_ATTENTION_ROW_SUM, (char *)memory->scratch + row_sum_offset(entry));
        bind(&binding, CUDNN_ATTENTION_QUERY_SUM, (char *)memory->scratch + query_sum_offset(entry));
    }
    return execute(attention, entry, memory->scratch, &binding);
}
