// SPDX-License-Identifier: MIT
// The communicator for ranks that are threads of one process. The members of a group publish the addresses of their
// buffers, synchronize, do their share of the work directly on each other's buffers, and synchronize again. Waiting
// threads sleep.
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "internal.h"

enum { PIECE = 1 << 14, STREAM_CONTROL = STREAM_COUNT };

// The arguments of one member to a collective. kind, elements, format and peer must be equal on all members.
struct slot {
    enum op_kind kind;
    enum format  format;
    int32_t      peer;
    int64_t      elements;
    const void  *in;
    void        *out;

    const struct communication_parts *parts;    // NULL: equal parts
    const struct op                  *op;       // NULL: a collective of the control plane, not of the step
};

// A send whose receiver has not copied the data yet.
struct message {
    bool        is_waiting;
    int32_t     to, channel;
    int64_t     bytes;
    const void *data;
};

// The members of a group synchronize in this struct for their ops on one stream. Freed when the hub closes.
struct rendezvous {
    struct rendezvous *next;
    int64_t           *members;    // [size]
    int64_t            size;
    int                stream;
    pthread_mutex_t    mutex;
    pthread_cond_t     changed;
    int64_t            arrived;
    uint64_t           generation;
    struct slot       *slots;       // [size]
    struct message    *messages;    // [size]: pending send of each member
};

struct comm_group {
    struct rendezvous *rendezvous;
    int64_t            index;      // the caller's index in the group
    const void       **sources;    // [size]: operands of a reduction
};

struct local_hub {
    int                ranks;
    pthread_mutex_t    mutex;
    struct rendezvous *rendezvous;
};

struct local_state {
    struct local_hub  *hub;
    int                rank;
    struct comm_group *world;
};

struct local_hub *local_hub_open(int ranks)
{
    struct local_hub *hub = memory_allocate(sizeof(*hub));
    hub->ranks            = ranks;
    pthread_mutex_init(&hub->mutex, NULL);
    return hub;
}

void local_hub_close(struct local_hub *hub)
{
    while (hub->rendezvous != NULL) {
        struct rendezvous *rendezvous = hub->rendezvous;
        hub->rendezvous               = rendezvous->next;
        pthread_cond_destroy(&rendezvous->changed);
        pthread_mutex_destroy(&rendezvous->mutex);
        free(rendezvous->members);
        free(rendezvous->slots);
        free(rendezvous->messages);
        free(rendezvous);
    }
    pthread_mutex_destroy(&hub->mutex);
    free(hub);
}

// Returns the rendezvous of these members on a stream. The first caller creates it.
static struct rendezvous *rendezvous_find(struct local_hub *hub, const int64_t *members, int64_t size, int stream)
{
    pthread_mutex_lock(&hub->mutex);
    struct rendezvous *rendezvous = hub->rendezvous;
    while (rendezvous != NULL && (rendezvous->stream != stream || rendezvous->size != size ||
                                  memcmp(rendezvous->members, members, (size_t)size * sizeof(*members)) != 0)) {
        rendezvous = rendezvous->next;
    }
    if (rendezvous == NULL) {
        rendezvous  = memory_allocate(sizeof(*rendezvous));
        *rendezvous = (struct rendezvous){.next     = hub->rendezvous,
                                          .members  = comm_copy_members(members, size),
                                          .size     = size,
                                          .stream   = stream,
                                          .slots    = memory_allocate((size_t)size * sizeof(struct slot)),
                                          .messages = memory_allocate((size_t)size * sizeof(struct message))};
        pthread_mutex_init(&rendezvous->mutex, NULL);
        pthread_cond_init(&rendezvous->changed, NULL);
        hub->rendezvous = rendezvous;
    }
    pthread_mutex_unlock(&hub->mutex);
    return rendezvous;
}

static struct comm_group *group_open(struct comm *comm, const int64_t *members, int64_t size, int stream,
                                     int processors)
{
    (void)processors;
    struct local_state *state = comm->state;
    struct comm_group  *group = memory_allocate(sizeof(*group));
    group->rendezvous         = rendezvous_find(state->hub, members, size, comm_rendezvous_stream(stream));
    group->sources            = memory_allocate((size_t)size * sizeof(*group->sources));
    while (members[group->index] != state->rank) {
        group->index++;
    }
    return group;
}

static void group_close(struct comm_group *group)
{
    free(group->sources);
    free(group);
}

// Waits until all members of the rendezvous have called this function.
static void meet(struct rendezvous *rendezvous)
{
    pthread_mutex_lock(&rendezvous->mutex);
    uint64_t generation = rendezvous->generation;
    if (++rendezvous->arrived == rendezvous->size) {
        rendezvous->arrived = 0;
        rendezvous->generation++;
        pthread_cond_broadcast(&rendezvous->changed);
    }
    while (generation == rendezvous->generation) {
        pthread_cond_wait(&rendezvous->changed, &rendezvous->mutex);
    }
    pthread_mutex_unlock(&rendezvous->mutex);
}

// Publishes the caller's arguments, waits until every member has published its own, and checks that they agree.
static void publish(struct comm_group *group, const struct slot *own)
{
    struct rendezvous *rendezvous   = group->rendezvous;
    rendezvous->slots[group->index] = *own;
    meet(rendezvous);
    for (int64_t i = 0; i < rendezvous->size; i++) {
        const struct slot *other = &rendezvous->slots[i];
        if (other->kind != own->kind || other->elements != own->elements || other->format != own->format ||
            other->peer != own->peer) {
            FATAL(EXIT_INTERNAL,
                  "the members of a group disagree: rank %" PRId64 " brings %" PRId64 " elements to %s, rank %" PRId64
                  " brings %" PRId64 " to %s",
                  rendezvous->members[group->index], own->elements, op_name(own->kind), rendezvous->members[i],
                  other->elements, op_name(other->kind));
        }
    }
}

// Each member reduces one slice of the buffers and writes it to every member's buffer. No two members write the same
// bytes.
static void all_reduce(struct comm_group *group, const struct slot *own)
{
    const struct rendezvous *rendezvous = group->rendezvous;
    int64_t                  end        = comm_slice_begin(own->elements, rendezvous->size, group->index + 1);
    for (int64_t first = comm_slice_begin(own->elements, rendezvous->size, group->index); first < end; first += PIECE) {
        int64_t count = end - first < PIECE ? end - first : PIECE;
        for (int64_t i = 0; i < rendezvous->size; i++) {
            group->sources[i] = (const char *)rendezvous->slots[i].out + format_offset(own->format, first);
        }
        char *reduced = (char *)own->out + format_offset(own->format, first);
        comm_reduction_of(own->kind)(reduced, group->sources, rendezvous->size, count, own->format);
        for (int64_t i = 0; i < rendezvous->size; i++) {
            comm_copy((char *)rendezvous->slots[i].out + format_offset(own->format, first), reduced,
                      format_bytes(own->format, count));
        }
    }
}

static void reduce_scatter(struct comm_group *group, const struct slot *own)
{
    const struct rendezvous *rendezvous = group->rendezvous;
    int64_t                  count      = own->elements / rendezvous->size;
    for (int64_t i = 0; i < rendezvous->size; i++) {
        group->sources[i] = (const char *)rendezvous->slots[i].in + format_offset(own->format, group->index * count);
    }
    comm_sum(own->out, group->sources, rendezvous->size, count, own->format);
}

// Copies the bytes at `offset` of each member's input to `out`, in member order.
static void gather(const struct comm_group *group, void *out, int64_t offset, int64_t bytes)
{
    const struct rendezvous *rendezvous = group->rendezvous;
    for (int64_t i = 0; i < rendezvous->size; i++) {
        comm_copy((char *)out + i * bytes, (const char *)rendezvous->slots[i].in + offset, bytes);
    }
}

// Executes the all-to-all of dropless experts, with a row count per pair of ranks. Copies to `out` the rows that each
// member has for the caller.
static void gather_parts(const struct comm_group *group, const struct slot *own)
{
    const struct rendezvous *rendezvous = group->rendezvous;
    for (int64_t i = 0; i < rendezvous->size; i++) {
        const struct slot *other = &rendezvous->slots[i];
        int64_t            row = own->parts->row, rows = own->parts->out[i];
        if (other->parts == NULL || other->parts->in[group->index] != rows) {
            DAMAGE("%s \"%s\", layer %d: this rank expects %" PRId64 " rows of rank %" PRId64 ", which has %" PRId64
                   " for it",
                   op_name(own->kind), own->op->tag.role, own->op->tag.layer, rows, rendezvous->members[i],
                   other->parts != NULL ? other->parts->in[group->index] : -1);
        }
        comm_copy((char *)own->out + format_offset(own->format, comm_rows_before(own->parts->out, i) * row),
                  (const char *)other->in +
                      format_offset(own->format, comm_rows_before(other->parts->in, group->index) * row),
                  format_bytes(own->format, rows * row));
    }
}

static void collective(struct comm_group *group, const struct slot *own)
{
    int64_t bytes = format_bytes(own->format, own->elements);
    int64_t part  = format_bytes(own->format, own->elements / group->rendezvous->size);
    publish(group, own);
    switch (own->kind) {
    case OP_ALL_REDUCE:
    case OP_ALL_REDUCE_MAXIMUM:
        all_reduce(group, own);
        break;
    case OP_REDUCE_SCATTER:
        reduce_scatter(group, own);
        break;
    case OP_ALL_GATHER:
        gather(group, own->out, 0, part);
        break;
    case OP_ALL_TO_ALL:
        if (own->parts != NULL) {
            gather_parts(group, own);
        } else {
            gather(group, own->out, group->index * part, part);
        }
        break;
    case OP_ROTATE:
        comm_copy(own->out,
                  group->rendezvous->slots[comm_ring_member(group->index - own->peer, group->rendezvous->size)].in,
                  bytes);
        break;
    case OP_BROADCAST:
        comm_copy(own->out, group->rendezvous->slots[own->peer].out, bytes);
        break;
    case OP_SEND:
    case OP_RECEIVE:
    case OP_ANY_COMPUTE:
        FATAL(EXIT_INTERNAL, "%s is not a collective", op_name(own->kind));
    }
    meet(group->rendezvous);
}

// Publishes the data, and sleeps until the receiver has copied it.
static void send_message(struct comm_group *group, const struct communication_shape *shape, const void *data,
                         int64_t bytes)
{
    struct rendezvous *rendezvous = group->rendezvous;
    struct message    *message    = &rendezvous->messages[group->index];
    pthread_mutex_lock(&rendezvous->mutex);
    *message = (struct message){
        .is_waiting = true, .to = shape->peer, .channel = shape->channel, .bytes = bytes, .data = data};
    pthread_cond_broadcast(&rendezvous->changed);
    while (message->is_waiting) {
        pthread_cond_wait(&rendezvous->changed, &rendezvous->mutex);
    }
    pthread_mutex_unlock(&rendezvous->mutex);
}

static void receive_message(struct comm_group *group, const struct communication_shape *shape, void *data,
                            int64_t bytes)
{
    struct rendezvous *rendezvous = group->rendezvous;
    struct message    *message    = &rendezvous->messages[shape->peer];
    pthread_mutex_lock(&rendezvous->mutex);
    while (!message->is_waiting || message->to != group->index || message->channel != shape->channel) {
        pthread_cond_wait(&rendezvous->changed, &rendezvous->mutex);
    }
    pthread_mutex_unlock(&rendezvous->mutex);
    if (message->bytes != bytes) {
        FATAL(EXIT_INTERNAL, "a receive of %" PRId64 " bytes met a send of %" PRId64, bytes, message->bytes);
    }
    memcpy(data, message->data, (size_t)bytes);
    pthread_mutex_lock(&rendezvous->mutex);
    message->is_waiting = false;
    pthread_cond_broadcast(&rendezvous->changed);
    pthread_mutex_unlock(&rendezvous->mutex);
}

static void run(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format)
{
    const struct communication_shape *shape = &op->shape.communication;
    int64_t                           bytes = format_bytes(format, shape->elements);
    if (op->kind == OP_SEND) {
        send_message(group, shape, in, bytes);
    } else if (op->kind == OP_RECEIVE) {
        receive_message(group, shape, out, bytes);
    } else {
        collective(group, &(struct slot){.kind     = op->kind,
                                         .format   = format,
                                         .peer     = shape->peer,
                                         .elements = shape->elements,
                                         .in       = in,
                                         .out      = out,
                                         .parts    = shape->parts,
                                         .op       = op});
    }
}

static void barrier(struct comm *comm)
{
    meet(((struct local_state *)comm->state)->world->rendezvous);
}

static void gather_all(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    struct comm_group *world = ((struct local_state *)comm->state)->world;
    publish(world, &(struct slot){.kind = OP_ALL_GATHER, .elements = bytes, .in = in});
    gather(world, out, 0, bytes);
    meet(world->rendezvous);
}

static void share(struct comm *comm, void *data, int64_t bytes, int from)
{
    struct comm_group *world = ((struct local_state *)comm->state)->world;
    publish(world, &(struct slot){.kind = OP_BROADCAST, .elements = bytes, .out = data});
    comm_copy(data, world->rendezvous->slots[from].out, bytes);
    meet(world->rendezvous);
}

static void close_local(struct comm *comm)
{
    group_close(((struct local_state *)comm->state)->world);
    free(comm->state);
}

static const struct comm_ops local_ops = {
    .name        = "local",
    .close       = close_local,
    .group_open  = group_open,
    .group_close = group_close,
    .run         = run,
    .barrier     = barrier,
    .gather_all  = gather_all,
    .share       = share,
};

void comm_open_local(struct comm *comm, struct local_hub *hub, int rank)
{
    struct local_state *state = memory_allocate(sizeof(*state));
    *state                    = (struct local_state){.hub = hub, .rank = rank};
    *comm                     = (struct comm){
                            .ops = &local_ops, .state = state, .topology = comm_one_host(rank, hub->ranks), .is_threaded = true};

    int64_t *members = memory_allocate((size_t)hub->ranks * sizeof(*members));
    for (int i = 0; i < hub->ranks; i++) {
        members[i] = i;
    }
    state->world = group_open(comm, members, hub->ranks, STREAM_CONTROL, 0);
    free(members);
}
