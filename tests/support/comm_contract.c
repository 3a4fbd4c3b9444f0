// SPDX-License-Identifier: MIT
// Groups of ranks, inputs whose sum depends on the order of additions, and the checks.
#include "comm_contract.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"

enum { CONTRACT_REPEATS = 20 };

// The group of the caller. All ranks are split into consecutive groups of `size` members; the last may be smaller.
struct contract_group {
    struct comm       *comm;
    struct comm_group *handle;
    int64_t            members[CONTRACT_RANKS_MAX];
    int64_t            size, index;
};

static struct contract_group contract_open(struct comm *comm, int64_t size, int stream)
{
    struct contract_group group = {.comm = comm, .index = comm->topology.rank % size};
    int64_t               first = comm->topology.rank - group.index;
    while (group.size < size && first + group.size < comm->topology.ranks) {
        group.members[group.size] = first + group.size;
        group.size++;
    }
    group.handle = comm->ops->group_open(comm, group.members, group.size, stream, 0);
    return group;
}

static void contract_close(struct contract_group *group)
{
    group->comm->ops->group_close(group->handle);
}

static void contract_communication(const struct contract_group *group, struct op op, const void *in, void *out,
                                   enum format format)
{
    group->comm->ops->run(group->handle, &op, in, out, format);
}

static struct op contract_op(enum op_kind kind, int64_t elements, int64_t peer, int32_t channel)
{
    struct op op = {.kind = (uint8_t)kind};
    op.shape.communication =
        (struct communication_shape){.elements = elements, .peer = (int32_t)peer, .channel = channel};
    return op;
}

// Returns element i of a rank's input. Signs and sizes vary, so another order of summation gives other bits.
static float contract_value(int64_t rank, int64_t i)
{
    uint32_t bits = (uint32_t)(rank + 1) * 2654435761u ^ (uint32_t)(i + 7) * 2246822519u;
    bits          = (bits ^ bits >> 15) * 739982445u;
    bits ^= bits >> 13;
    return ((float)(bits >> 8) / 16777216.0f - 0.5f) * (float)(1u << bits % 12);
}

// Stores the sum of element i over ranks[0 .. count - 1], in this order and rounded to the format.
static void contract_store(void *out, int64_t at, enum format format, const int64_t *ranks, int64_t count, int64_t i)
{
    float   real  = 0.0f;
    int32_t whole = 0;
    for (int64_t member = 0; member < count; member++) {
        float value = contract_value(ranks[member], i);
        float kept  = format == FORMAT_BF16 ? bf16_to_float(bf16_from_float(value)) : value;
        real        = member == 0 ? kept : real + kept;
        whole += (int32_t)(value * 1000.0f);
    }
    if (format == FORMAT_F32) {
        ((float *)out)[at] = real;
    } else if (format == FORMAT_BF16) {
        ((bf16 *)out)[at] = bf16_from_float(real);
    } else {
        ((int32_t *)out)[at] = whole;
    }
}

// Returns unsorted values, so that neighbouring elements have their maximum on different members.
static float contract_magnitude(int64_t member, int64_t j)
{
    return (float)((member * 7 + j * 5) % 11) * 0.25f;
}

// Checks the maximum over all members.
static int64_t check_maximum(struct comm *comm)
{
    enum { COUNT = 1027 };
    struct contract_group group = contract_open(comm, comm->topology.ranks, STREAM_TENSOR);
    float                 values[COUNT];
    int64_t               wrong = 0;
    for (int64_t j = 0; j < COUNT; j++) {
        values[j] = contract_magnitude(group.members[group.index], j);
    }
    contract_communication(&group, contract_op(OP_ALL_REDUCE_MAXIMUM, COUNT, 0, 0), NULL, values, FORMAT_F32);
    for (int64_t j = 0; j < COUNT; j++) {
        float largest = 0;
        for (int64_t i = 0; i < group.size; i++) {
            float other = contract_magnitude(group.members[i], j);
            largest     = other > largest ? other : largest;
        }
        wrong += values[j] != largest;
    }
    contract_close(&group);
    return wrong;
}

// Stores element j of the output that the caller must get. It is element i of one member's input, or of the sum over
// all members' inputs.
static void contract_expect(const struct contract_group *group, const struct op *op, int64_t n, int64_t j,
                            enum format format, void *expected)
{
    int64_t      peer    = op->shape.communication.peer;
    enum op_kind kind    = (enum op_kind)op->kind;
    bool         reduces = kind == OP_ALL_REDUCE || kind == OP_REDUCE_SCATTER;
    bool         shifts  = kind == OP_REDUCE_SCATTER || kind == OP_ALL_TO_ALL;
    int64_t      source  = (group->index + group->size - peer) % group->size;    // the sender in a rotation
    int64_t      from    = kind == OP_BROADCAST ? peer : kind == OP_ROTATE ? source : reduces ? 0 : j / n;
    int64_t      i = (kind == OP_ALL_REDUCE || kind == OP_BROADCAST ? j : j % n) + (shifts ? group->index * n : 0);
    contract_store(expected, j, format, group->members + from, reduces ? group->size : 1, i);
}

// Runs a collective with n elements per member and compares every bit. Returns 1 if some differ. `peer` is the root of
// a broadcast, or the distance of a rotation.
static int64_t contract_check_collective(const struct contract_group *group, enum op_kind kind, int64_t peer, int64_t n,
                                         enum format format)
{
    bool      in_place = kind == OP_ALL_REDUCE || kind == OP_BROADCAST;
    int64_t   elements = in_place || kind == OP_ROTATE ? n : n * group->size;
    int64_t   results  = kind == OP_REDUCE_SCATTER ? n : elements;
    size_t    bytes    = (size_t)format_bytes(format, elements);
    struct op op       = contract_op(kind, elements, peer, 0);
    char     *in = memory_allocate(bytes), *out = memory_allocate(bytes), *expected = memory_allocate(bytes);
    for (int64_t i = 0; i < elements; i++) {
        contract_store(in_place ? out : in, i, format, &group->members[group->index], 1, i);
    }
    for (int64_t j = 0; j < results; j++) {
        contract_expect(group, &op, n, j, format, expected);
    }

    contract_communication(group, op, in_place ? NULL : in, out, format);

    int64_t wrong = memcmp(out, expected, (size_t)format_bytes(format, results)) != 0;
    free(in);
    free(out);
    free(expected);
    return wrong;
}

int64_t contract_check_collectives(struct comm *comm)
{
    static const struct {
        enum op_kind kind;
        int64_t      peer;    // root or distance, as above; 0: the last member is the root
    } collectives[]               = {{OP_ALL_REDUCE, 0}, {OP_ALL_GATHER, 0}, {OP_REDUCE_SCATTER, 0}, {OP_ALL_TO_ALL, 0},
                                     {OP_ROTATE, 1},     {OP_ROTATE, -1},    {OP_BROADCAST, 0}};
    static const int64_t counts[] = {1, 7, 1025, 20011};
    int64_t              wrong    = 0;
    for (int64_t size = 1; size <= comm->topology.ranks; size++) {
        struct contract_group group = contract_open(comm, size, STREAM_TENSOR);
        for (size_t i = 0; i < sizeof(collectives) / sizeof(collectives[0]); i++) {
            int64_t peer = collectives[i].peer != 0 ? collectives[i].peer : group.size - 1;
            for (size_t count = 0; count < sizeof(counts) / sizeof(counts[0]); count++) {
                for (int format = 0; format <= FORMAT_I32; format++) {    // FP8 is left out: it has no sums
                    wrong += contract_check_collective(&group, collectives[i].kind, peer, counts[count],
                                                       (enum format)format);
                }
            }
        }
        contract_close(&group);
    }
    return wrong;
}

// Returns the number of rows that one member sends to another. Some pairs have none, and the last member receives none.
static int64_t contract_rows(int64_t from, int64_t to, int64_t size)
{
    return to == size - 1 && size > 1 ? 0 : (from * 3 + to * 5) % 4 * 57;
}

// Returns element i of the data that `from` sends to `to`. It identifies sender, receiver and position.
static float contract_part(int64_t from, int64_t to, int64_t i)
{
    return (float)(from * 100000 + to * 10000 + i);
}

static int64_t contract_check_parts_of(const struct contract_group *group, int64_t row)
{
    enum { ROWS_MAX = 4 * 57 * CONTRACT_RANKS_MAX, ROW_MAX = 3 };
    int64_t in_rows[CONTRACT_RANKS_MAX], out_rows[CONTRACT_RANKS_MAX], sent = 0, received = 0, wrong = 0;
    float  *in  = memory_allocate(ROWS_MAX * ROW_MAX * sizeof(*in));
    float  *out = memory_allocate(ROWS_MAX * ROW_MAX * sizeof(*out));
    for (int64_t i = 0; i < group->size; i++) {
        in_rows[i]  = contract_rows(group->index, i, group->size);
        out_rows[i] = contract_rows(i, group->index, group->size);
        for (int64_t j = 0; j < in_rows[i] * row; j++) {
            in[sent++] = contract_part(group->index, i, j);
        }
    }
    // Members send different numbers of rows. The op has the expected number, which is the same for all.
    struct op op                 = contract_op(OP_ALL_TO_ALL, group->size * row, 0, 0);
    op.shape.communication.parts = &(struct communication_parts){.in = in_rows, .out = out_rows, .row = row};
    contract_communication(group, op, in, out, FORMAT_F32);
    for (int64_t i = 0; i < group->size; i++) {
        for (int64_t j = 0; j < out_rows[i] * row; j++) {
            wrong += out[received++] != contract_part(i, group->index, j);
        }
    }
    wrong += out[received] != 0;
    free(in);
    free(out);
    return wrong;
}

int64_t contract_check_parts(struct comm *comm)
{
    int64_t wrong = 0;
    for (int64_t size = 1; size <= comm->topology.ranks; size++) {
        struct contract_group group = contract_open(comm, size, STREAM_EXPERT);
        wrong += contract_check_parts_of(&group, 1) + contract_check_parts_of(&group, 3);
        contract_close(&group);
    }
    return wrong;
}

// Checks messages that are larger than the pieces in which a communicator may send them.
static int64_t check_large(struct comm *comm)
{
    struct contract_group group = contract_open(comm, comm->topology.ranks, STREAM_TENSOR);
    int64_t               wrong = contract_check_collective(&group, OP_ALL_REDUCE, 0, 4300003, FORMAT_F32) +
                    contract_check_collective(&group, OP_REDUCE_SCATTER, 0, 4300003 / group.size, FORMAT_F32);
    contract_close(&group);
    return wrong;
}

// Checks sums that depend on order and rounding: 1e8 + 1 rounds to 1e8, and a running sum in BF16 would stop at 256.
static int64_t check_rank_order(struct comm *comm)
{
    static const float swallowed[] = {1e8f, 1.0f, -1e8f}, kept[] = {1e8f, -1e8f, 1.0f},
                       rounded[] = {256.0f, 1.0f, 1.0f};
    if (comm->topology.ranks < 3) {
        return 0;
    }
    struct contract_group group = contract_open(comm, 3, STREAM_TENSOR);
    int64_t               wrong = 0;
    if (group.size == 3) {
        float first = swallowed[group.index], second = kept[group.index];
        bf16  third = bf16_from_float(rounded[group.index]);
        contract_communication(&group, contract_op(OP_ALL_REDUCE, 1, 0, 0), NULL, &first, FORMAT_F32);
        contract_communication(&group, contract_op(OP_ALL_REDUCE, 1, 0, 0), NULL, &second, FORMAT_F32);
        contract_communication(&group, contract_op(OP_ALL_REDUCE, 1, 0, 0), NULL, &third, FORMAT_BF16);
        wrong = (first != 0.0f) + (second != 1.0f) + (bf16_to_float(third) != 258.0f);
    }
    contract_close(&group);
    return wrong;
}

// A stream of a rank, which repeats a collective on its own group and compares results.
struct contract_stream {
    struct contract_group group;
    enum op_kind          kind;
    int64_t               n;
    int64_t               wrong;
};

static void *contract_run_stream(void *argument)
{
    struct contract_stream *stream = argument;
    for (int repeat = 0; repeat < CONTRACT_REPEATS; repeat++) {
        stream->wrong += contract_check_collective(&stream->group, stream->kind, 0, stream->n, FORMAT_F32);
    }
    return NULL;
}

// Each stream runs in its own thread on a group of another size. They must neither block each other nor mix messages.
static int64_t check_streams(struct comm *comm)
{
    int64_t                ranks     = comm->topology.ranks;
    struct contract_stream streams[] = {
        {contract_open(comm, ranks, STREAM_GRADIENT_REDUCE), OP_ALL_REDUCE, 30001, 0},
        {contract_open(comm, ranks, STREAM_WEIGHT_GATHER), OP_ALL_GATHER, 5003, 0},
        {contract_open(comm, ranks < 2 ? ranks : 2, STREAM_TENSOR), OP_REDUCE_SCATTER, 7001, 0},
    };
    enum { COUNT = sizeof(streams) / sizeof(streams[0]) };
    pthread_t threads[COUNT];
    int64_t   wrong = 0;
    // Each rank starts its streams in another order.
    for (int i = 0; i < COUNT; i++) {
        int stream = (i + comm->topology.rank) % COUNT;
        pthread_create(&threads[stream], NULL, contract_run_stream, &streams[stream]);
    }
    for (int stream = 0; stream < COUNT; stream++) {
        pthread_join(threads[stream], NULL);
        wrong += streams[stream].wrong;
        contract_close(&streams[stream].group);
    }
    return wrong;
}

struct contract_sender {
    struct contract_group group;
    float                 values[2];
};

static void *contract_send(void *argument)
{
    struct contract_sender *sender = argument;
    int64_t                 next   = (sender->group.index + 1) % sender->group.size;
    for (int32_t channel = 0; channel < 2; channel++) {
        contract_communication(&sender->group, contract_op(OP_SEND, 1, next, channel), &sender->values[channel], NULL,
                               FORMAT_F32);
    }
    return NULL;
}

// In a ring, each rank sends to the next rank on one stream while it receives from the previous rank on another.
static int64_t check_ring(struct comm *comm)
{
    int64_t ranks = comm->topology.ranks, rank = comm->topology.rank;
    if (ranks == 1) {
        return 0;
    }
    struct contract_sender sender = {.group  = contract_open(comm, ranks, STREAM_PIPELINE_SEND),
                                     .values = {(float)rank + 0.25f, (float)rank + 0.5f}};
    struct contract_group  group  = contract_open(comm, ranks, STREAM_PIPELINE_RECEIVE);
    pthread_t              thread;
    pthread_create(&thread, NULL, contract_send, &sender);
    int64_t before = (rank + ranks - 1) % ranks, wrong = 0;
    for (int32_t channel = 0; channel < 2; channel++) {
        float value = 0.0f;
        contract_communication(&group, contract_op(OP_RECEIVE, 1, before, channel), NULL, &value, FORMAT_F32);
        wrong += value != (float)before + (channel == 0 ? 0.25f : 0.5f);
    }
    pthread_join(thread, NULL);
    contract_close(&group);
    contract_close(&sender.group);
    return wrong;
}

int64_t contract_check_control(struct comm *comm)
{
    int64_t own = 100 + comm->topology.rank, all[CONTRACT_RANKS_MAX] = {0}, shared = own, last = own, wrong = 0;
    comm->ops->barrier(comm);
    comm->ops->gather_all(comm, &own, all, sizeof(own));
    comm->ops->share(comm, &shared, sizeof(shared), 0);
    comm->ops->share(comm, &last, sizeof(last), comm->topology.ranks - 1);
    for (int rank = 0; rank < comm->topology.ranks; rank++) {
        wrong += all[rank] != 100 + rank;
    }
    return wrong + (shared != 100) + (last != 99 + comm->topology.ranks);
}

const struct contract_check contract_checks[] = {
    {"collectives give the bits of a sum in rank order", contract_check_collectives},
    {"unequal parts go where they belong", contract_check_parts},
    {"large buffers are reduced whole", check_large},
    {"a maximum is the largest of all members", check_maximum},
    {"a sum shows the order and the single rounding", check_rank_order},
    {"streams run beside each other and repeat their bits", check_streams},
    {"a ring of sends and receives passes every value", check_ring},
    {"the control plane reaches all ranks", contract_check_control},
    {NULL, NULL},
};
