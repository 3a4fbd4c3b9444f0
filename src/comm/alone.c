// SPDX-License-Identifier: MIT
// A communicator for emulation, which runs one rank of a job without the other ranks. Collectives fill the parts of
// other ranks with copies of this rank's data; reductions return this rank's data. A pipeline receive returns normally
// distributed numbers, so that ops see realistic values.
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/random.h"
#include "internal.h"

enum { NOISE_ELEMENTS = 1 << 16 };

struct comm_group {
    int64_t     size;
    void       *noise;     // [NOISE_ELEMENTS]; NULL: not generated yet
    enum format format;    // of noise
};

static struct comm_group *group_open(struct comm *comm, const int64_t *members, int64_t size, int stream,
                                     int processors)
{
    (void)comm, (void)members, (void)stream, (void)processors;
    struct comm_group *group = memory_allocate(sizeof(*group));
    group->size              = size;
    return group;
}

static void group_close(struct comm_group *group)
{
    free(group->noise);
    free(group);
}

static void make_noise(struct comm_group *group, enum format format)
{
    group->noise  = memory_resize(group->noise, (size_t)format_bytes(format, NOISE_ELEMENTS));
    group->format = format;
    for (int64_t i = 0; i < NOISE_ELEMENTS; i++) {
        element_write(format, group->noise, i, random_normal(0, (uint64_t)i));
    }
}

static void receive(struct comm_group *group, char *out, int64_t elements, enum format format)
{
    if (group->noise == NULL || group->format != format) {
        make_noise(group, format);
    }
    for (int64_t done = 0; done < elements; done += NOISE_ELEMENTS) {
        int64_t count = elements - done < NOISE_ELEMENTS ? elements - done : NOISE_ELEMENTS;
        comm_copy(out + format_offset(format, done), group->noise, format_bytes(format, count));
    }
}

static void run(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format)
{
    int64_t bytes = format_bytes(format, op->shape.communication.elements),
            part  = format_bytes(format, op->shape.communication.elements / group->size);
    switch ((enum op_kind)op->kind) {
    case OP_ALL_GATHER:
        for (int64_t i = 0; i < group->size; i++) {
            comm_copy((char *)out + i * part, in, part);
        }
        break;
    case OP_REDUCE_SCATTER:
        comm_copy(out, in, part);
        break;
    case OP_ALL_TO_ALL:
        if (op->shape.communication.parts != NULL) {    // row counts per member; `out`: received rows
            bytes = format_bytes(format, comm_rows_before(op->shape.communication.parts->out, group->size) *
                                             op->shape.communication.parts->row);
        }
        comm_copy(out, in, bytes);
        break;
    case OP_ROTATE:
        comm_copy(out, in, bytes);
        break;
    case OP_RECEIVE:
        receive(group, out, op->shape.communication.elements, format);
        break;
    case OP_ALL_REDUCE:    // the rank keeps its own data
    case OP_ALL_REDUCE_MAXIMUM:
    case OP_SEND:
    case OP_BROADCAST:
        break;
    case OP_ANY_COMPUTE:
        FATAL(EXIT_INTERNAL, "%s is not a communication op", op_name((enum op_kind)op->kind));
    }
}

static void close_comm(struct comm *comm)
{
    (void)comm;
}

static void barrier(struct comm *comm)
{
    (void)comm;
}

static void gather_all(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    (void)comm;
    comm_copy(out, in, bytes);
}

static void share(struct comm *comm, void *data, int64_t bytes, int from)
{
    (void)comm, (void)data, (void)bytes, (void)from;
}

static const struct comm_ops alone_ops = {
    .name        = "none",
    .close       = close_comm,
    .group_open  = group_open,
    .group_close = group_close,
    .run         = run,
    .barrier     = barrier,
    .gather_all  = gather_all,
    .share       = share,
};

void comm_open_alone(struct comm *comm)
{
    *comm = (struct comm){.ops = &alone_ops, .topology = comm_one_host(0, 1)};
}
