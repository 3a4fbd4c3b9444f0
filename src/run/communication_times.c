// SPDX-License-Identifier: MIT
// Measures the collectives of a traced step on all ranks, and then each collective without other work. All ops that are
// the same collective form a row (struct communication_row). The members of a group enter a collective at different
// times and leave it together. So the last one to enter measures the shortest time, which is the time of the collective
// itself; the other members measure it plus their wait. No clocks of different hosts are compared.
#include "trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/predict.h"
#include "gswbench/statistics.h"

enum { READINGS = 32, ALONE = 4 };    // per row: at most READINGS ops are timed in the step, and ALONE isolated runs

// What one rank measured for one row. Ranks send it to each other. Unused elements are NaN; all are NaN if the rank
// does not issue the collective.
struct readings {
    struct comm_choice chosen;
    double             seconds[READINGS], alone[ALONE], predicted;
};

static bool are_same_row(const struct communication_row *a, const struct communication_row *b)
{
    return a->elements == b->elements && a->axes == b->axes && a->kind == b->kind && a->format == b->format &&
           a->stream == b->stream;
}

struct communication_row communication_describe(const struct plan *plan, const struct op *op)
{
    int32_t tensor =
        op->operand[COMMUNICATION_OUT] >= 0 ? op->operand[COMMUNICATION_OUT] : op->operand[COMMUNICATION_IN];
    const struct plan_group *group = &plan->groups[op->shape.communication.group];
    return (struct communication_row){.elements   = op->shape.communication.elements,
                                      .group_size = group->size,
                                      .count      = 1,
                                      .axes       = group->axes,
                                      .kind       = op->kind,
                                      .format     = (int32_t)plan->tensors[tensor].format,
                                      .stream     = op->stream};
}

// Adds a row to the list if there is room, or counts it if the list has an equal row. is_own: the row is one op of this
// rank; otherwise it is from another rank's list, and the larger count is kept. group_size 0 ends the list.
static void add_row(struct communication_row rows[COMMUNICATION_ROWS], const struct communication_row *row, bool is_own)
{
    int i = 0;
    while (i < COMMUNICATION_ROWS && rows[i].group_size > 0 && !are_same_row(&rows[i], row)) {
        i++;
    }
    if (i < COMMUNICATION_ROWS && rows[i].group_size > 0) {
        rows[i].count = is_own ? rows[i].count + 1 : rows[i].count > row->count ? rows[i].count : row->count;
    } else if (i < COMMUNICATION_ROWS) {
        rows[i] = *row;
    }
}

// Lists the different communication ops of all ranks. All ranks get the same list.
static void find_rows(const struct plan *plan, struct comm *comm, struct communication_row rows[COMMUNICATION_ROWS])
{
    struct communication_row own[COMMUNICATION_ROWS] = {{.group_size = 0}};
    for (int32_t i = 0; i < plan->op_count; i++) {
        if (op_is_communication((enum op_kind)plan->ops[i].kind)) {
            struct communication_row row = communication_describe(plan, &plan->ops[i]);
            add_row(own, &row, true);
        }
    }
    struct communication_row *all = comm_gather(comm, own, sizeof(own));
    for (int64_t i = 0; i < (int64_t)comm->topology.ranks * COMMUNICATION_ROWS; i++) {
        if (all[i].group_size > 1) {
            add_row(rows, &all[i], false);
        }
    }
    free(all);
}

// Stores the times of up to READINGS ops of the row, evenly spread over the step. Returns the first op of the row, or
// -1.
static int32_t read_times(const struct plan *plan, const struct op_time *times, const struct communication_row *row,
                          double seconds[READINGS])
{
    int64_t stride = (row->count + READINGS - 1) / READINGS, number = 0;
    int32_t first = -1;
    for (int32_t i = 0; i < plan->op_count; i++) {
        struct communication_row of = {.kind = -1};
        if (op_is_communication((enum op_kind)plan->ops[i].kind)) {
            of = communication_describe(plan, &plan->ops[i]);
        }
        if (are_same_row(&of, row)) {
            first = first < 0 ? i : first;
            if (number % stride == 0 && number / stride < READINGS) {
                seconds[number / stride] = times[i].end - times[i].begin;
            }
            number++;
        }
    }
    return first;
}

static double find_cost(const struct communication_times_setup *setup, int32_t op)
{
    if (setup->hardware == NULL) {
        return NAN;
    }
    struct software_config software;
    option_set_defaults(software_options, &software);
    const struct machine machine = {.hardware  = setup->hardware,
                                    .software  = &software,
                                    .measured  = setup->measured,
                                    .sm_margin = setup->comm->processors,
                                    .zero_cta  = setup->config->run.zero_cta != 0};
    double               cost    = predict_cost_op(&machine, setup->plan, &setup->plan->ops[op]).seconds;
    return isfinite(cost) ? cost : NAN;
}

static struct readings read_row(const struct communication_times_setup *setup, const struct communication_row *row)
{
    struct readings own;
    struct comm    *comm = setup->comm;
    for (int i = 0; i < READINGS; i++) {
        own.seconds[i] = NAN;
    }
    int32_t op    = read_times(setup->plan, setup->times, row, own.seconds);
    own.chosen    = op >= 0 ? step_chosen(setup->step, op) : (struct comm_choice){.algorithm = ""};
    own.predicted = op >= 0 ? find_cost(setup, op) : NAN;
    for (int i = 0; i < ALONE; i++) {
        comm->ops->barrier(comm);
        bool runs    = op >= 0 && !op_is_link((enum op_kind)row->kind);
        own.alone[i] = runs ? step_time_communication(setup->step, op) : NAN;
    }
    return own;
}

// One execution of a collective by all members of a group: their shortest and longest time, and the member with the
// shortest, which entered last.
struct rendezvous {
    double  shortest, longest;
    int64_t last;
};

static struct rendezvous find_rendezvous(const double *first, size_t stride, const int64_t *members, int64_t size)
{
    struct rendezvous rendezvous = {.shortest = NAN, .longest = NAN};
    for (int64_t i = 0; i < size; i++) {
        double seconds     = first[(size_t)members[i] * stride];
        rendezvous.longest = fmax(rendezvous.longest, seconds);
        rendezvous.last = seconds <= rendezvous.shortest || isnan(rendezvous.shortest) ? members[i] : rendezvous.last;
        rendezvous.shortest = fmin(rendezvous.shortest, seconds);
    }
    return rendezvous;
}

struct series {
    double *values;
    int64_t count;
};

static void add_value(struct series *series, double value)
{
    if (!isnan(value)) {
        series->values[series->count++] = value;
    }
}

// Adds the times of a group to `moving` (collectives of the step) and `alone` (isolated runs). In one execution, the
// member that enters first waits longest. Computes the mean of these longest waits. If it exceeds the means of the
// earlier groups, stores it, and the rank that most often enters last.
static void add_group(struct result_communication_time *time, const struct readings *all, const int64_t *members,
                      struct series *moving, struct series *alone)
{
    enum { STRIDE = sizeof(struct readings) / sizeof(double) };
    int64_t size = time->group_size, count = 0;
    double  waited = 0;
    double *lasts  = memory_allocate((size_t)size * sizeof(*lasts));
    for (int i = 0; i < READINGS; i++) {
        struct rendezvous rendezvous = find_rendezvous(&all[0].seconds[i], STRIDE, members, size);
        add_value(moving, rendezvous.shortest);
        for (int64_t j = 0; j < size && !isnan(rendezvous.shortest); j++) {
            lasts[j] += members[j] == rendezvous.last;
        }
        waited += isnan(rendezvous.shortest) ? 0 : rendezvous.longest - rendezvous.shortest;
        count += !isnan(rendezvous.shortest);
    }
    for (int i = 1; i < ALONE; i++) {    // the first run is a warm-up
        add_value(alone, find_rendezvous(&all[0].alone[i], STRIDE, members, size).shortest);
    }
    if (count > 0 && waited / (double)count >= time->wait_seconds) {
        time->wait_seconds = waited / (double)count;
        time->late_share   = 0;
        for (int64_t j = 0; j < size; j++) {
            if (lasts[j] / (double)count > time->late_share) {
                time->late_share = lasts[j] / (double)count;
                time->late_rank  = members[j];
            }
        }
    }
    free(lasts);
}

double communication_bus_factor(int32_t kind, double size)
{
    switch ((enum op_kind)kind) {
    case OP_ALL_REDUCE:
    case OP_ALL_REDUCE_MAXIMUM:
        return 2 * (size - 1) / size;
    case OP_ALL_GATHER:
    case OP_REDUCE_SCATTER:
    case OP_ALL_TO_ALL:
        return (size - 1) / size;
    case OP_ROTATE:
    case OP_SEND:
    case OP_RECEIVE:
    case OP_BROADCAST:
        return 1;
    case OP_ANY_COMPUTE:
        break;
    }
    return NAN;
}

// Adds a row to rank 0's result, computed from the times of every rank.
static void add_time(const struct communication_times_setup *setup, const struct communication_row *row,
                     const struct readings *all, const struct comm_choice *chosen)
{
    int                              ranks = setup->comm->topology.ranks;
    bool                             meets = !op_is_link((enum op_kind)row->kind);
    size_t                           room  = (size_t)ranks * READINGS * sizeof(double);
    struct series                    seen = {memory_allocate(room), 0}, moving = {memory_allocate(room), 0};
    struct series                    alone   = {memory_allocate(room), 0};
    int64_t                         *members = memory_allocate((size_t)row->group_size * sizeof(*members));
    struct result_communication_time time    = {.elements          = row->elements,
                                                .group_size        = row->group_size,
                                                .count             = row->count,
                                                .late_rank         = -1,
                                                .predicted_seconds = NAN,
                                                .channels          = chosen->channels};
    text_copy(time.algorithm, sizeof(time.algorithm), chosen->algorithm);
    text_copy(time.protocol, sizeof(time.protocol), chosen->protocol);
    for (int rank = 0; rank < ranks; rank++) {
        for (int i = 0; i < READINGS; i++) {
            add_value(&seen, all[rank].seconds[i]);
        }
        time.predicted_seconds = fmax(time.predicted_seconds, all[rank].predicted);
        mesh_group_ranks(&setup->plan->mesh, rank, row->axes, members);
        if (meets && members[0] == rank) {
            add_group(&time, all, members, &moving, &alone);
        }
    }
    double bytes         = (double)format_bytes((enum format)row->format, row->elements);
    time.bytes           = bytes;
    time.seconds         = statistics_median(seen.values, seen.count);
    time.moving_seconds  = meets ? statistics_median(moving.values, moving.count) : time.seconds;
    time.alone_seconds   = statistics_median(alone.values, alone.count);
    time.bandwidth       = communication_bus_factor(row->kind, (double)row->group_size) * bytes / time.moving_seconds;
    time.alone_bandwidth = communication_bus_factor(row->kind, (double)row->group_size) * bytes / time.alone_seconds;
    time.wait_seconds    = meets ? time.wait_seconds : NAN;
    time.late_share      = meets ? time.late_share : NAN;
    result_add_communication_time(setup->result, &time, (enum op_kind)row->kind, row->axes, (enum format)row->format);
    free(seen.values);
    free(moving.values);
    free(alone.values);
    free(members);
}

// Returns the algorithm that NCCL chose, from the first rank that knows it: only the first member of a group does.
static struct comm_choice find_choice(const struct readings *all, int ranks)
{
    int rank = 0;
    while (rank < ranks - 1 && all[rank].chosen.algorithm[0] == '\0') {
        rank++;
    }
    return all[rank].chosen;
}

void communication_times_add(const struct communication_times_setup *setup, struct communication_rows *rows)
{
    struct comm *comm = setup->comm;
    find_rows(setup->plan, comm, rows->rows);
    for (int i = 0; i < COMMUNICATION_ROWS && rows->rows[i].group_size > 0; i++) {
        struct readings  own = read_row(setup, &rows->rows[i]);
        struct readings *all = comm_gather(comm, &own, sizeof(own));
        rows->chosen[i]      = find_choice(all, comm->topology.ranks);
        if (comm->topology.rank == 0) {
            add_time(setup, &rows->rows[i], all, &rows->chosen[i]);
        }
        free(all);
    }
}

const struct comm_choice *communication_chosen(const struct communication_rows *rows,
                                               const struct communication_row  *row)
{
    for (int i = 0; i < COMMUNICATION_ROWS && rows->rows[i].group_size > 0; i++) {
        if (are_same_row(&rows->rows[i], row)) {
            return &rows->chosen[i];
        }
    }
    return NULL;
}
