// SPDX-License-Identifier: MIT
// Ranks as threads of one process. The members of a group publish their buffers, synchronize, do their share of the
// work directly in the others' memory, and synchronize again. Waiting threads sleep.
#include "local_meeting.h"

#include <inttypes.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"

enum { PIECE = 1 << 14, LANE_CONTROL = LANE_COUNT };

struct local_hub {
    int             ranks;
    pthread_mutex_t mutex;
    struct meeting *meetings;
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
    while (hub->meetings != NULL) {
        struct meeting *meeting = hub->meetings;
        hub->meetings           = meeting->next;
        pthread_cond_destroy(&meeting->changed);
        pthread_mutex_destroy(&meeting->mutex);
        free(meeting->members);
        free(meeting->posts);
        free(meeting->letters);
        free(meeting);
    }
    pthread_mutex_destroy(&hub->mutex);
    free(hub);
}

static struct meeting *meeting_create(const int64_t *members, int64_t size, int lane)
{
    struct meeting *meeting = memory_allocate(sizeof(*meeting));
    meeting->members        = memory_allocate((size_t)size * sizeof(*members));
    meeting->posts          = memory_allocate((size_t)size * sizeof(*meeting->posts));
    meeting->letters        = memory_allocate((size_t)size * sizeof(*meeting->letters));
    meeting->size           = size;
    meeting->lane           = lane;
    memcpy(meeting->members, members, (size_t)size * sizeof(*members));
    pthread_mutex_init(&meeting->mutex, NULL);
    pthread_cond_init(&meeting->changed, NULL);
    return meeting;
}

// Finds the rendezvous of these members on a stream; the first caller creates it.
static struct meeting *meeting_find(struct local_hub *hub, const int64_t *members, int64_t size, int lane)
{
    pthread_mutex_lock(&hub->mutex);
    struct meeting *meeting = hub->meetings;
    while (meeting != NULL && (meeting->lane != lane || meeting->size != size ||
                               memcmp(meeting->members, members, (size_t)size * sizeof(*members)) != 0)) {
        meeting = meeting->next;
    }
    if (meeting == NULL) {
        meeting       = meeting_create(members, size, lane);
        meeting->next = hub->meetings;
        hub->meetings = meeting;
    }
    pthread_mutex_unlock(&hub->mutex);
    return meeting;
}

static struct comm_group *group_open(struct comm *comm, const int64_t *members, int64_t size, int lane, int processors)
{
    (void)processors;
    struct local_state *state = comm->state;
    struct comm_group  *group = memory_allocate(sizeof(*group));
    group->meeting            = meeting_find(state->hub, members, size, comm_rendezvous_lane(lane));
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

// Barrier of the members.
static void meet(struct meeting *meeting)
{
    pthread_mutex_lock(&meeting->mutex);
    uint64_t generation = meeting->generation;
    if (++meeting->arrived == meeting->size) {
        meeting->arrived = 0;
        meeting->generation++;
        pthread_cond_broadcast(&meeting->changed);
    }
    while (generation == meeting->generation) {
        pthread_cond_wait(&meeting->changed, &meeting->mutex);
    }
    pthread_mutex_unlock(&meeting->mutex);
}

// Publishes the caller's arguments, waits for every member's, and checks that they agree.
static void post(struct comm_group *group, const struct post *own)
{
    struct meeting *meeting      = group->meeting;
    meeting->posts[group->index] = *own;
    meet(meeting);
    for (int64_t i = 0; i < meeting->size; i++) {
        const struct post *other = &meeting->posts[i];
        if (other->kind != own->kind || other->elements != own->elements || other->format != own->format ||
            other->peer != own->peer) {
            FATAL(EXIT_INTERNAL,
                  "the members of a group disagree: rank %" PRId64 " brings %" PRId64 " elements to %s, rank %" PRId64
                  " brings %" PRId64 " to %s",
                  meeting->members[group->index], own->elements, op_name(own->kind), meeting->members[i],
                  other->elements, op_name(other->kind));
        }
    }
}

// Each member reduces one slice and writes it to every member, so no two members write the same bytes.
static void all_reduce(struct comm_group *group, const struct post *own)
{
    const struct meeting *meeting = group->meeting;
    int64_t               end     = comm_slice_begin(own->elements, meeting->size, group->index + 1);
    for (int64_t first = comm_slice_begin(own->elements, meeting->size, group->index); first < end; first += PIECE) {
        int64_t count = end - first < PIECE ? end - first : PIECE;
        for (int64_t i = 0; i < meeting->size; i++) {
            group->sources[i] = (const char *)meeting->posts[i].out + format_offset(own->format, first);
        }
        char *reduced = (char *)own->out + format_offset(own->format, first);
        comm_reduction_of(own->kind)(reduced, group->sources, meeting->size, count, own->format);
        for (int64_t i = 0; i < meeting->size; i++) {
            comm_copy((char *)meeting->posts[i].out + format_offset(own->format, first), reduced,
                      format_bytes(own->format, count));
        }
    }
}

static void reduce_scatter(struct comm_group *group, const struct post *own)
{
    const struct meeting *meeting = group->meeting;
    int64_t               count   = own->elements / meeting->size;
    for (int64_t i = 0; i < meeting->size; i++) {
        group->sources[i] = (const char *)meeting->posts[i].in + format_offset(own->format, group->index * count);
    }
    comm_sum(own->out, group->sources, meeting->size, count, own->format);
}

// Copies bytes at offset in each member's input to out, in member order.
static void gather(const struct comm_group *group, void *out, int64_t offset, int64_t bytes)
{
    const struct meeting *meeting = group->meeting;
    for (int64_t i = 0; i < meeting->size; i++) {
        comm_copy((char *)out + i * bytes, (const char *)meeting->posts[i].in + offset, bytes);
    }
}

// The same with per-member row counts.
static void gather_parts(const struct comm_group *group, const struct post *own)
{
    const struct meeting *meeting = group->meeting;
    for (int64_t i = 0; i < meeting->size; i++) {
        const struct post *other = &meeting->posts[i];
        int64_t            row = own->parts->row, rows = own->parts->out[i];
        if (other->parts == NULL || other->parts->in[group->index] != rows) {
            DAMAGE("%s \"%s\", layer %d: this rank expects %" PRId64 " rows of rank %" PRId64 ", which has %" PRId64
                   " for it",
                   op_name(own->kind), own->op->tag.role, own->op->tag.layer, rows, meeting->members[i],
                   other->parts != NULL ? other->parts->in[group->index] : -1);
        }
        comm_copy((char *)own->out + format_offset(own->format, comm_rows_before(own->parts->out, i) * row),
                  (const char *)other->in +
                      format_offset(own->format, comm_rows_before(other->parts->in, group->index) * row),
                  format_bytes(own->format, rows * row));
    }
}

static void collective(struct comm_group *group, const struct post *own)
{
    int64_t bytes = format_bytes(own->format, own->elements);
    int64_t part  = format_bytes(own->format, own->elements / group->meeting->size);
    post(group, own);
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
        comm_copy(own->out, group->meeting->posts[comm_ring_member(group->index - own->peer, group->meeting->size)].in,
                  bytes);
        break;
    case OP_BROADCAST:
        comm_copy(own->out, group->meeting->posts[own->peer].out, bytes);
        break;
    case OP_SEND:
    case OP_RECEIVE:
    case OP_ANY_COMPUTE:
        FATAL(EXIT_INTERNAL, "%s is not a transfer among all members of a group", op_name(own->kind));
    }
    meet(group->meeting);
}

static void run(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format)
{
    const struct transfer_shape *shape = &op->shape.transfer;
    int64_t                      bytes = format_bytes(format, shape->elements);
    if (op->kind == OP_SEND) {
        letter_send(group, shape, in, bytes);
    } else if (op->kind == OP_RECEIVE) {
        letter_receive(group, shape, out, bytes);
    } else {
        collective(group, &(struct post){.kind     = op->kind,
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
    meet(((struct local_state *)comm->state)->world->meeting);
}

static void gather_all(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    struct comm_group *world = ((struct local_state *)comm->state)->world;
    post(world, &(struct post){.kind = OP_ALL_GATHER, .elements = bytes, .in = in});
    gather(world, out, 0, bytes);
    meet(world->meeting);
}

static void share(struct comm *comm, void *data, int64_t bytes, int from)
{
    struct comm_group *world = ((struct local_state *)comm->state)->world;
    post(world, &(struct post){.kind = OP_BROADCAST, .elements = bytes, .out = data});
    comm_copy(data, world->meeting->posts[from].out, bytes);
    meet(world->meeting);
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
    state->world = group_open(comm, members, hub->ranks, LANE_CONTROL, 0);
    free(members);
}
