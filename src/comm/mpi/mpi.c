// SPDX-License-Identifier: MIT
// The communicator for ranks that are MPI processes: startup, topology, control plane and collectives. Collectives are
// non-blocking messages between pairs of ranks. Reductions run in this file, in rank order.
#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/text.h"
#include "../internal.h"
#include "../mpi_module.h"

enum {
    PIECE_BYTES = 1 << 24,    // reductions run in pieces, to limit the receive buffer
    TAGS        = 32749,      // a prime below every MPI's tag limit
    EAGER_POLLS = 512,        // polls with a yield of the core before a waiting thread sleeps between polls
    PAUSE_NS    = 50000,      // duration of such a sleep
};

#define MPI_CHECK(call) check((call), #call, __FILE__, __LINE__)

// Ends the job if an MPI call failed.
static void check(int error, const char *call, const char *file, int line)
{
    if (error != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int  length;
        MPI_Error_string(error, text, &length);
        fatal_at(file, line, EXIT_LOST, "%s: %s", call, text);
    }
}

// Waits until all requests are complete. Polls and yields the core at first, and later sleeps between polls, for other
// streams and ranks. Fills `statuses`; their MPI_ERROR fields are set only if the result is MPI_ERR_IN_STATUS.
static int test_all(MPI_Request *requests, int count, MPI_Status *statuses)
{
    static const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int polls = 0;; polls++) {
        int is_done;
        int error = MPI_Testall(count, requests, &is_done, statuses);
        if (is_done || error != MPI_SUCCESS) {
            return error;
        }
        if (polls < EAGER_POLLS) {
            sched_yield();
        } else {
            nanosleep(&pause, NULL);
        }
    }
}

static void wait_all(MPI_Request *requests, int count)
{
    MPI_CHECK(test_all(requests, count, MPI_STATUSES_IGNORE));
}

// The MPI communicator of a group on one stream. The two pipeline streams share one.
struct mpi_link {
    struct mpi_link *next;
    int64_t         *members;    // [size]
    int64_t          size;
    int              stream;
    int              users;
    MPI_Comm         communicator;
};

// Data to send to and to receive from one member.
struct exchange {
    const char *from;
    char       *to;
    int64_t     from_bytes, to_bytes;
};

struct comm_group {
    struct mpi_link  *link;
    struct mpi_state *state;
    int64_t           size, index;
    struct exchange  *exchanges;    // [size]
    MPI_Request      *requests;     // [2 * size]
    MPI_Status       *statuses;     // [2 * size]
    int              *expected;     // [2 * size] bytes of a receive; -1: a send
    int              *peers;        // [2 * size] source of a receive
    const void      **sources;      // [size]: operands of a reduction
    comm_reduction   *reduction;    // of the current op
    int               tag;          // of the current op
    const struct op  *op;           // the current op
    char             *scratch;      // receive buffer for one piece
};

// Returns the communicator of these members on a stream. The first caller creates it.
static struct mpi_link *link_open(struct mpi_state *state, const int64_t *members, int64_t size, int stream)
{
    struct mpi_link *link = state->links;
    while (link != NULL && (link->stream != stream || link->size != size ||
                            memcmp(link->members, members, (size_t)size * sizeof(*members)) != 0)) {
        link = link->next;
    }
    if (link == NULL) {
        link  = memory_allocate(sizeof(*link));
        *link = (struct mpi_link){
            .next = state->links, .members = comm_copy_members(members, size), .size = size, .stream = stream};
        int      *ranks = memory_allocate((size_t)size * sizeof(*ranks));
        MPI_Group world, group;
        for (int64_t i = 0; i < size; i++) {
            ranks[i] = (int)members[i];
        }
        MPI_CHECK(MPI_Comm_group(MPI_COMM_WORLD, &world));
        MPI_CHECK(MPI_Group_incl(world, (int)size, ranks, &group));
        MPI_CHECK(MPI_Comm_create_group(MPI_COMM_WORLD, group, stream, &link->communicator));
        MPI_CHECK(MPI_Group_free(&group));
        MPI_CHECK(MPI_Group_free(&world));
        free(ranks);
        state->links = link;
    }
    link->users++;
    return link;
}

static struct comm_group *group_open(struct comm *comm, const int64_t *members, int64_t size, int stream,
                                     int processors)
{
    (void)processors;
    struct mpi_state  *state = comm->state;
    struct comm_group *group = memory_allocate(sizeof(*group));
    *group                   = (struct comm_group){
                          .link      = link_open(state, members, size, comm_rendezvous_stream(stream)),
                          .state     = state,
                          .size      = size,
                          .exchanges = memory_allocate((size_t)size * sizeof(*group->exchanges)),
                          .requests  = memory_allocate((size_t)size * 2 * sizeof(MPI_Request)),
                          .statuses  = memory_allocate((size_t)size * 2 * sizeof(MPI_Status)),
                          .expected  = memory_allocate((size_t)size * 2 * sizeof(*group->expected)),
                          .peers     = memory_allocate((size_t)size * 2 * sizeof(*group->peers)),
                          .sources   = memory_allocate((size_t)size * sizeof(*group->sources)),
                          .scratch   = size > 1 ? memory_allocate(PIECE_BYTES + (size_t)size * 4) : NULL,
    };
    while (members[group->index] != comm->topology.rank) {
        group->index++;
    }
    return group;
}

static void group_close(struct comm_group *group)
{
    struct mpi_link  *link = group->link;
    struct mpi_link **next = &group->state->links;
    if (--link->users == 0) {
        while (*next != link) {
            next = &(*next)->next;
        }
        *next = link->next;
        MPI_CHECK(MPI_Comm_free(&link->communicator));
        free(link->members);
        free(link);
    }
    free(group->exchanges);
    free(group->requests);
    free(group->statuses);
    free(group->expected);
    free(group->peers);
    free(group->sources);
    free(group->scratch);
    free(group);
}

// Returns the bytes of the next message, after `done` of `bytes` are sent.
static int message_bytes(int64_t bytes, int64_t done, int maximum)
{
    int64_t left = bytes - done;
    return left <= 0 ? 0 : left < maximum ? (int)left : maximum;
}

// Waits for the messages of an all-to-all with row counts. Sender and receiver compute the counts independently. A
// message of an unexpected size therefore means that counts are corrupt, and ends the job.
static void wait_for_parts(struct comm_group *group, int count)
{
    int error = test_all(group->requests, count, group->statuses), cause = error;
    for (int i = 0; i < count; i++) {
        const MPI_Status *one   = &group->statuses[i];
        int               bytes = -1, class = MPI_SUCCESS;
        if (error == MPI_ERR_IN_STATUS) {
            MPI_CHECK(MPI_Error_class(one->MPI_ERROR, &class));
        }
        if (class == MPI_SUCCESS && group->expected[i] >= 0) {
            MPI_CHECK(MPI_Get_count(one, MPI_BYTE, &bytes));
        }
        if (class == MPI_ERR_TRUNCATE || (class == MPI_SUCCESS && bytes >= 0 && bytes != group->expected[i])) {
            DAMAGE("%s \"%s\", layer %d: this rank expects %d bytes of rank %" PRId64 ", which sends %s",
                   op_name((enum op_kind)group->op->kind), group->op->tag.role, group->op->tag.layer,
                   group->expected[i], group->link->members[group->peers[i]], bytes < 0 ? "more" : "fewer");
        }
        if (class != MPI_SUCCESS && class != MPI_ERR_PENDING) {
            cause = one->MPI_ERROR;
        }
    }
    check(cause, "MPI_Testall", __FILE__, __LINE__);
}

// Sends and receives the data in group->exchanges[i], for every other member i.
static void exchange_all(struct comm_group *group, bool are_parts)
{
    MPI_Comm communicator = group->link->communicator;
    int      count = 1, maximum = group->state->message_bytes;
    for (int64_t done = 0; count > 0; done += maximum) {
        count = 0;
        // Each member starts with the member after itself, so that not all members send to the same one at once.
        for (int64_t i = 1; i < group->size; i++) {
            int                    peer     = (int)((group->index + i) % group->size);
            const struct exchange *exchange = &group->exchanges[peer];
            int                    receives = message_bytes(exchange->to_bytes, done, maximum);
            int                    sends    = message_bytes(exchange->from_bytes, done, maximum);
            if (receives > 0) {
                group->expected[count] = receives;
                group->peers[count]    = peer;
                MPI_CHECK(MPI_Irecv(exchange->to + done, receives, MPI_BYTE, peer, group->tag, communicator,
                                    &group->requests[count++]));
            }
            if (sends > 0) {
                group->expected[count] = -1;
                MPI_CHECK(MPI_Isend(exchange->from + done, sends, MPI_BYTE, peer, group->tag, communicator,
                                    &group->requests[count++]));
            }
        }
        if (are_parts) {
            wait_for_parts(group, count);
        } else {
            wait_all(group->requests, count);
        }
    }
}

// Sends every member its slice (exchanges[member].from), receives the other members' values of this member's slice, and
// reduces them.
static void reduce_own(struct comm_group *group, void *out, int64_t elements, enum format format)
{
    int64_t bytes = format_bytes(format, elements);
    for (int64_t i = 0; i < group->size; i++) {
        struct exchange *exchange = &group->exchanges[i];
        exchange->to              = group->scratch != NULL ? group->scratch + i * bytes : NULL;
        exchange->to_bytes        = bytes;
        group->sources[i]         = i == group->index ? exchange->from : exchange->to;
    }
    exchange_all(group, false);
    group->reduction(out, group->sources, group->size, elements, format);
}

static void all_reduce_piece(struct comm_group *group, char *data, int64_t elements, enum format format)
{
    int64_t begin = comm_slice_begin(elements, group->size, group->index);
    int64_t end   = comm_slice_begin(elements, group->size, group->index + 1);
    for (int64_t i = 0; i < group->size; i++) {
        int64_t first       = comm_slice_begin(elements, group->size, i);
        int64_t last        = comm_slice_begin(elements, group->size, i + 1);
        group->exchanges[i] = (struct exchange){.from       = data + format_offset(format, first),
                                                .from_bytes = format_bytes(format, last - first)};
    }
    reduce_own(group, data + format_offset(format, begin), end - begin, format);

    for (int64_t i = 0; i < group->size; i++) {
        int64_t first       = comm_slice_begin(elements, group->size, i);
        int64_t last        = comm_slice_begin(elements, group->size, i + 1);
        group->exchanges[i] = (struct exchange){.from       = data + format_offset(format, begin),
                                                .from_bytes = format_bytes(format, end - begin),
                                                .to         = data + format_offset(format, first),
                                                .to_bytes   = format_bytes(format, last - first)};
    }
    exchange_all(group, false);
}

static void all_reduce(struct comm_group *group, char *data, int64_t elements, enum format format)
{
    int64_t piece = format_elements(format, PIECE_BYTES);
    for (int64_t first = 0; first < elements && group->size > 1; first += piece) {
        int64_t left = elements - first;
        all_reduce_piece(group, data + format_offset(format, first), left < piece ? left : piece, format);
    }
}

static void reduce_scatter(struct comm_group *group, const char *in, char *out, int64_t elements, enum format format)
{
    int64_t share = elements / group->size;
    int64_t piece = format_elements(format, PIECE_BYTES) / group->size;
    for (int64_t first = 0; first < share; first += piece) {
        int64_t count = share - first < piece ? share - first : piece;
        for (int64_t i = 0; i < group->size; i++) {
            group->exchanges[i] = (struct exchange){.from       = in + format_offset(format, i * share + first),
                                                    .from_bytes = format_bytes(format, count)};
        }
        reduce_own(group, out + format_offset(format, first), count, format);
    }
}

// Sends the data at in + i * in_stride to member i, and receives its data at out + i * bytes.
static void scatter_and_gather(struct comm_group *group, const char *in, int64_t in_stride, char *out, int64_t bytes)
{
    for (int64_t i = 0; i < group->size; i++) {
        group->exchanges[i] = (struct exchange){
            .from = in + i * in_stride, .from_bytes = bytes, .to = out + i * bytes, .to_bytes = bytes};
    }
    comm_copy(out + group->index * bytes, in + group->index * in_stride, bytes);
    exchange_all(group, false);
}

// Executes an all-to-all with the row counts in `parts`. The rows of each member are contiguous in both buffers.
static void exchange_parts(struct comm_group *group, const struct communication_parts *parts, const char *in, char *out,
                           enum format format)
{
    for (int64_t i = 0; i < group->size; i++) {
        struct exchange *exchange = &group->exchanges[i];
        *exchange                 = (struct exchange){.from       = in,
                                                      .to         = out,
                                                      .from_bytes = format_bytes(format, parts->in[i] * parts->row),
                                                      .to_bytes   = format_bytes(format, parts->out[i] * parts->row)};
        in += exchange->from_bytes;
        out += exchange->to_bytes;
    }
    const struct exchange *own = &group->exchanges[group->index];
    if (own->to_bytes != own->from_bytes) {
        DAMAGE("%s \"%s\", layer %d: this rank expects %" PRId64 " rows of itself, and has %" PRId64,
               op_name((enum op_kind)group->op->kind), group->op->tag.role, group->op->tag.layer,
               parts->out[group->index], parts->in[group->index]);
    }
    comm_copy(own->to, own->from, own->to_bytes);
    exchange_all(group, true);
}

static void broadcast(struct comm_group *group, int32_t root, char *data, int64_t bytes)
{
    for (int64_t i = 0; i < group->size; i++) {
        struct exchange *exchange = &group->exchanges[i];
        *exchange                 = (struct exchange){.from = data, .to = data};
        exchange->from_bytes      = group->index == root ? bytes : 0;
        exchange->to_bytes        = i == root ? bytes : 0;
    }
    exchange_all(group, false);
}

static void rotate(struct comm_group *group, int64_t places, const char *in, char *out, int64_t bytes)
{
    struct exchange *target = &group->exchanges[comm_ring_member(group->index + places, group->size)];
    struct exchange *source = &group->exchanges[comm_ring_member(group->index - places, group->size)];
    memset(group->exchanges, 0, (size_t)group->size * sizeof(*group->exchanges));
    target->from       = in;
    target->from_bytes = bytes;
    source->to         = out;
    source->to_bytes   = bytes;
    if (target == &group->exchanges[group->index]) {
        comm_copy(out, in, bytes);
    }
    exchange_all(group, false);
}

static void pass(struct comm_group *group, const struct op *op, const char *in, char *out, int64_t bytes)
{
    const struct communication_shape *shape = &op->shape.communication;
    memset(group->exchanges, 0, (size_t)group->size * sizeof(*group->exchanges));
    group->exchanges[shape->peer] = op->kind == OP_SEND ? (struct exchange){.from = in, .from_bytes = bytes}
                                                        : (struct exchange){.to = out, .to_bytes = bytes};
    exchange_all(group, false);
}

// Returns the message tag of an op: a hash of its kind, size, format and channel. So an op does not receive the message
// of a different op. If a rank skips an op, its peers then wait, and the watchdog names this rank. With one tag for all
// ops, a rank that skips none would report a wrong message size instead.
static int tag_of(const struct op *op, enum format format)
{
    const struct communication_shape *shape = &op->shape.communication;
    bool                              pairs = op->kind == OP_SEND || op->kind == OP_RECEIVE;
    int64_t                           kind  = pairs ? OP_COUNT + shape->channel : op->kind;
    return (int)((shape->elements % TAGS * 31 + kind * 7 + format) % TAGS);
}

static void run(struct comm_group *group, const struct op *op, const void *in, void *out, enum format format)
{
    int64_t elements = op->shape.communication.elements;
    int64_t bytes    = format_bytes(format, elements);
    int64_t share    = format_bytes(format, elements / group->size);
    group->reduction = comm_reduction_of((enum op_kind)op->kind);
    group->tag       = tag_of(op, format);
    group->op        = op;
    switch ((enum op_kind)op->kind) {
    case OP_ALL_REDUCE:
    case OP_ALL_REDUCE_MAXIMUM:
        all_reduce(group, out, elements, format);
        break;
    case OP_REDUCE_SCATTER:
        reduce_scatter(group, in, out, elements, format);
        break;
    case OP_ALL_GATHER:
        scatter_and_gather(group, in, 0, out, share);
        break;
    case OP_ALL_TO_ALL:
        if (op->shape.communication.parts != NULL) {
            exchange_parts(group, op->shape.communication.parts, in, out, format);
        } else {
            scatter_and_gather(group, in, share, out, share);
        }
        break;
    case OP_ROTATE:
        rotate(group, op->shape.communication.peer, in, out, bytes);
        break;
    case OP_BROADCAST:
        broadcast(group, op->shape.communication.peer, out, bytes);
        break;
    case OP_SEND:
    case OP_RECEIVE:
        pass(group, op, in, out, bytes);
        break;
    case OP_ANY_COMPUTE:
        FATAL(EXIT_INTERNAL, "%s is not a communication op", op_name((enum op_kind)op->kind));
    }
}

static void barrier(struct comm *comm)
{
    (void)comm;
    MPI_Request request;
    MPI_CHECK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    wait_all(&request, 1);
}

static int control_count(int64_t bytes)
{
    if (bytes > INT_MAX) {
        FATAL(EXIT_INTERNAL, "%lld bytes are too many for the control plane", (long long)bytes);
    }
    return (int)bytes;
}

static void gather_all(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    (void)comm;
    MPI_Request request;
    int         count = control_count(bytes);
    MPI_CHECK(MPI_Iallgather(in, count, MPI_BYTE, out, count, MPI_BYTE, MPI_COMM_WORLD, &request));
    wait_all(&request, 1);
}

static void share(struct comm *comm, void *data, int64_t bytes, int from)
{
    (void)comm;
    MPI_Request request;
    MPI_CHECK(MPI_Ibcast(data, control_count(bytes), MPI_BYTE, from, MPI_COMM_WORLD, &request));
    wait_all(&request, 1);
}

static void close_mpi(struct comm *comm)
{
    free(comm->state);
    fatal_set_hook(NULL);
    MPI_CHECK(MPI_Finalize());
}

static const struct comm_ops mpi_ops = {
    .name        = "mpi",
    .close       = close_mpi,
    .group_open  = group_open,
    .group_close = group_close,
    .run         = run,
    .barrier     = barrier,
    .gather_all  = gather_all,
    .share       = share,
};

// Finds the caller's local rank and the number of its host. Hosts are numbered in the order of their lowest ranks.
static void find_node(struct comm_topology *topology)
{
    MPI_Comm node, leaders;
    MPI_CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, topology->rank, MPI_INFO_NULL, &node));
    MPI_CHECK(MPI_Comm_rank(node, &topology->local_rank));
    MPI_CHECK(MPI_Comm_size(node, &topology->local_ranks));
    MPI_CHECK(MPI_Comm_split(MPI_COMM_WORLD, topology->local_rank == 0 ? 0 : MPI_UNDEFINED, topology->rank, &leaders));
    int where[2] = {0, 0};
    if (leaders != MPI_COMM_NULL) {
        MPI_CHECK(MPI_Comm_rank(leaders, &where[0]));
        MPI_CHECK(MPI_Comm_size(leaders, &where[1]));
        MPI_CHECK(MPI_Comm_free(&leaders));
    }
    MPI_CHECK(MPI_Bcast(where, 2, MPI_INT, 0, node));
    MPI_CHECK(MPI_Comm_free(&node));
    topology->node  = where[0];
    topology->nodes = where[1];
}

// Stores the library's name and version. Shortens "Open MPI v4.1.4, package: ..." or "MPICH Version:\t4.0.2\n..." at
// the first comma or newline.
static void name_library(struct comm *comm)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int  length;
    MPI_CHECK(MPI_Get_library_version(text, &length));
    text[strcspn(text, ",\n")] = '\0';
    text_printable(comm->library, sizeof(comm->library), text);
}

static void abort_job(int exit_code)
{
    MPI_Abort(MPI_COMM_WORLD, exit_code);
}

status mpi_module_open(struct comm *comm)
{
    int provided, rank, ranks;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) {
        return fail_as(EXIT_LAUNCH, "MPI does not start: see its message above");
    }
    MPI_CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    fatal_set_hook(abort_job);
    struct mpi_state *state = memory_allocate(sizeof(*state));
    state->message_bytes    = MPI_MESSAGE_BYTES;
    *comm                   = (struct comm){.ops         = &mpi_ops,
                                            .state       = state,
                                            .topology    = comm_one_host(rank, ranks),
                                            .is_threaded = provided == MPI_THREAD_MULTIPLE};
    find_node(&comm->topology);
    name_library(comm);
    return OK;
}

// Returns whether this MPI library needs PMIx. Assumes it for every Open MPI: version 5 requires PMIx, and builds of
// version 4 with PMI-2 are rare.
bool mpi_module_asks_for_pmix(void)
{
#ifdef OPEN_MPI
    return true;
#else
    return false;
#endif
}

bool mpi_module_has_opened(void)
{
    int has;
    MPI_CHECK(MPI_Initialized(&has));
    return has;
}
