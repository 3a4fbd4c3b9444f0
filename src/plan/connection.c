// SPDX-License-Identifier: MIT
// Lists the connections that a plan's communication needs, and the SMs and device memory that they take.
#include "gswbench/connection.h"

#include <inttypes.h>
#include <stdio.h>

#include "gswbench/arena.h"

// Channels are thread blocks of a communication kernel, each with its own buffers per neighbour. Pipeline sends and
// receives get few (CHANNELS_LINK): they carry less data than collectives, and a receive that is posted early holds its
// SMs. CHANNELS_WIDE is NCCL's own limit, at which it drives the links of a node at full rate. A channel carries at
// least GRAIN_BYTES, because for less data latency dominates.
enum { CHANNELS_LINK = 2, CHANNELS_WIDE = 16, GRAIN_BYTES = 64 << 10 };

// Bytes of a channel's buffers per neighbour and direction, for all protocols together, rounded up to the granularity
// of memory mappings. Within a node only the receiver has buffers, and the sender little more than a counter. Over the
// network both sides have buffers.
enum { MIB = 1 << 20, BUFFER_BYTES = 10 * MIB, COUNTER_BYTES = 2 * MIB };

int plan_connection_processors(int stream, int64_t largest_bytes)
{
    int64_t maximum = op_stream_is_pipeline(stream) ? CHANNELS_LINK : CHANNELS_WIDE;
    int64_t used    = (largest_bytes + GRAIN_BYTES - 1) / GRAIN_BYTES;
    return (int)(used < 1 ? 1 : used < maximum ? used : maximum);
}

static uint32_t kind_bit(int kind)
{
    return 1u << (kind - OP_COMPUTE_COUNT);
}

// Returns the bytes of memory of a ring per channel, a mean over the ranks. A rank receives from one neighbour and
// sends to another. Only the rank that sends to another node, one per node, needs a send buffer.
static double ring_bytes(const struct plan_connection *connection)
{
    double crossings = connection->nodes > 1 ? (double)connection->nodes / (double)connection->members : 0.0;
    return BUFFER_BYTES + COUNTER_BYTES + crossings * (BUFFER_BYTES - COUNTER_BYTES);
}

// Returns the bytes per channel of an all-to-all. It has buffers for every pair of ranks within the node. Its network
// traffic shares one pair of buffers.
static double all_to_all_bytes(const struct plan_connection *connection)
{
    double local = (double)connection->members / (double)connection->nodes;
    return (local - 1.0) * (BUFFER_BYTES + COUNTER_BYTES) + (connection->nodes > 1 ? 2.0 * BUFFER_BYTES : 0.0);
}

// Returns the bytes of a connection. Ring collectives, rotations and all-to-alls have separate buffers.
static int64_t device_bytes(const struct plan_connection *connection)
{
    const uint32_t rotates = kind_bit(OP_ROTATE), exchanges = kind_bit(OP_ALL_TO_ALL);
    double         bytes = 0.0;
    if (connection->peer >= 0) {
        bool receives = connection->stream == STREAM_PIPELINE_RECEIVE;
        bytes         = receives || connection->nodes > 1 ? BUFFER_BYTES : COUNTER_BYTES;
    } else {
        bytes += (connection->kinds & rotates) != 0 ? ring_bytes(connection) : 0.0;
        bytes += (connection->kinds & exchanges) != 0 ? all_to_all_bytes(connection) : 0.0;
        bytes += (connection->kinds & ~(rotates | exchanges)) != 0 ? ring_bytes(connection) : 0.0;
    }
    return (int64_t)(connection->processors * bytes);
}

static struct plan_connection *find(struct plan_connections *connections, const struct op *op)
{
    int64_t peer = op_stream_is_pipeline(op->stream) ? op->shape.communication.peer : -1;
    for (int32_t i = 0; i < connections->count; i++) {
        struct plan_connection *one = &connections->list[i];
        if (one->stream == op->stream && one->group == op->shape.communication.group && one->peer == peer) {
            return one;
        }
    }
    struct plan_connection *new = &connections->list[connections->count++];
    *new = (struct plan_connection){.stream = op->stream, .group = op->shape.communication.group, .peer = peer};
    return new;
}

static void sort_by_stream(struct plan_connections *connections)
{
    for (int32_t i = 1; i < connections->count; i++) {
        for (int32_t at = i; at > 0 && connections->list[at - 1].stream > connections->list[at].stream; at--) {
            struct plan_connection swapped = connections->list[at];
            connections->list[at]          = connections->list[at - 1];
            connections->list[at - 1]      = swapped;
        }
    }
}

static void complete(struct plan_connection *connection, const struct plan *plan, int64_t ranks_per_node)
{
    const struct plan_group *group   = &plan->groups[connection->group];
    bool                     is_link = connection->peer >= 0;
    connection->members              = is_link ? 2 : group->size;
    connection->nodes                = !is_link ? plan_group_nodes(group, ranks_per_node)
                                       : plan_group_is_apart(group, connection->peer, ranks_per_node) ? 2
                                                                                                      : 1;
    connection->processors           = plan_connection_processors(connection->stream, connection->largest_bytes);
    connection->bytes                = device_bytes(connection);
}

// Returns the maximum number of SMs that communication occupies at a time: one op per stream, but all pipeline
// connections together, because they do not wait for each other. maximum: SM limit per op; 0: none.
static int concurrent_processors(const struct plan_connections *connections, int64_t maximum)
{
    int sum = 0, streams[STREAM_COUNT] = {0};
    for (int32_t i = 0; i < connections->count; i++) {
        const struct plan_connection *one = &connections->list[i];
        int processors                    = maximum > 0 && maximum < one->processors ? (int)maximum : one->processors;
        if (one->peer >= 0) {
            sum += processors;
        } else if (processors > streams[one->stream]) {
            streams[one->stream] = processors;
        }
    }
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        sum += streams[stream];
    }
    return sum;
}

const char *plan_connections_excess(const struct plan_connections *connections, int64_t device, int64_t maximum,
                                    char *text, size_t bytes)
{
    int held = concurrent_processors(connections, maximum), enough = CHANNELS_WIDE;
    if (device == 0 || held < device) {
        return NULL;
    }
    while (enough > 0 && concurrent_processors(connections, enough) >= device) {
        enough--;
    }
    int used = snprintf(text, bytes,
                        "collectives may use %d SMs at a time, and the device has %" PRId64 ": none is left to compute",
                        held, device);
    if (enough > 0) {
        snprintf(text + used, bytes - (size_t)used, "; run.sm_margin = %d would do", enough);
    }
    return text;
}

void plan_connections(struct plan_connections *connections, const struct plan *plan, int64_t ranks_per_node)
{
    // Upper bound: each stream has one connection per group, or one to each of two pipeline neighbours.
    size_t maximum = (size_t)(2 * STREAM_COUNT * plan->group_count + 1);
    *connections   = (struct plan_connections){.list = memory_allocate(maximum * sizeof(*connections->list))};
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (op_is_communication((enum op_kind)op->kind)) {
            struct plan_connection *connection = find(connections, op);
            int64_t                 bytes      = (int64_t)plan_op_bytes(plan, op);
            connection->kinds |= kind_bit(op->kind);
            connection->largest_bytes = bytes > connection->largest_bytes ? bytes : connection->largest_bytes;
        }
    }
    sort_by_stream(connections);
    for (int32_t i = 0; i < connections->count; i++) {
        complete(&connections->list[i], plan, ranks_per_node);
        connections->bytes += connections->list[i].bytes;
    }
    connections->processors = concurrent_processors(connections, 0);
}

static uint64_t mix(uint64_t hash, int64_t value)
{
    uint64_t mixed = (hash ^ (uint64_t)value) * UINT64_C(0x9e3779b97f4a7c15);
    return mixed ^ mixed >> 29;
}

// Returns the offset of an operand that other members access in this rank's symmetric memory, where all members need
// the same offset. Returns -1 for an operand that only its own rank accesses (input of a gather or rotation, output of
// a reduce-scatter). For the output of a rotation, returns the offset of the whole tensor: members may receive
// different parts of it, because `ahead` in the op's shape is the distance from the sender's part to the receiver's.
static int64_t met_offset(const struct plan *plan, const struct op *op, int slot)
{
    const struct tensor *tensor = &plan->tensors[op->operand[slot]];
    bool                 is_own =
        slot == COMMUNICATION_IN ? op->kind == OP_ALL_GATHER || op->kind == OP_ROTATE : op->kind == OP_REDUCE_SCATTER;
    return is_own ? -1 : op->kind == OP_ROTATE ? plan->tensors[tensor->whole].offset : tensor->offset;
}

uint64_t plan_communication_layout(const struct plan *plan, int stream, int32_t group, enum storage storage)
{
    uint64_t hash    = mix(1, plan->storage_bytes[storage]);
    bool     is_used = false;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (!op_is_communication((enum op_kind)op->kind) || op->stream != stream ||
            op->shape.communication.group != group) {
            continue;
        }
        for (int slot = 0; slot < op->operand_count; slot++) {
            const struct tensor *tensor = op->operand[slot] >= 0 ? &plan->tensors[op->operand[slot]] : NULL;
            bool                 is_in  = tensor != NULL && tensor->storage == storage;
            is_used |= is_in;
            if (is_in && tensor->is_packed) {    // offsets of packed rows differ per rank: no common layout
                hash = mix(hash, plan->rank);
            }
            hash = mix(hash, is_in ? met_offset(plan, op, slot) : -1);
        }
    }
    return !is_used ? 0 : hash != 0 ? hash : 1;
}
