// SPDX-License-Identifier: MIT
// Measures each collective of the plan with its buffer sizes, capped at 256 MiB (1 MiB without devices). All groups run
// it at the same time, as in a step.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "internal.h"

enum { REPEATS = 4, RUNS = 3 };
const double flight_group_limit = 15.0;    // tolerated slowdown in percent
// Caps of the larger of the input and output buffers.
static const int64_t device_bytes = 256 << 20, host_bytes = 1 << 20;

struct groups {
    struct distinct_ops gap;     // a list with one op, which separates two collectives
    struct distinct_op  op;      // the collective being measured
    double              best;    // shortest time in seconds
    int64_t class;               // index of its class in the report
};

// Halves the sizes of input and output until the larger buffer has at most `bytes`, or a size is odd. Returns the
// divisor.
static int64_t halve_sizes(struct distinct_op *op, int64_t bytes)
{
    int64_t halves = 1;
    for (;; halves *= 2) {
        int64_t *in = &op->elements[COMMUNICATION_IN], *out = &op->elements[COMMUNICATION_OUT];
        int64_t  maximum = format_bytes(op->format[COMMUNICATION_OUT], *out > *in ? *out : *in);
        if (maximum <= bytes || *in % 2 != 0 || *out % 2 != 0 || op->op.shape.communication.elements % 2 != 0) {
            return halves;
        }
        *in /= 2;
        *out /= 2;
        op->op.shape.communication.elements /= 2;
    }
}

// Sets the time of every group to the time of its slowest rank.
static void gather_groups(struct flight *flight, const struct groups *groups)
{
    const struct mesh *mesh = &flight->setup.request->mesh;
    int64_t size = mesh_group_size(mesh, groups->op.axes), *members = memory_allocate((size_t)size * sizeof(*members));
    int     ranks = flight->comm->topology.ranks;
    double *all   = comm_gather(flight->comm, &groups->best, sizeof(groups->best));
    for (int rank = 0; rank < ranks; rank++) {
        double slowest = 0.0;
        mesh_group_ranks(mesh, rank, groups->op.axes, members);
        for (int64_t i = 0; i < size; i++) {
            slowest = fmax(slowest, all[members[i]]);
        }
        flight_set_value(&flight->report.classes[groups->class], members[0], members[size - 1], slowest);
    }
    free(all);
    free(members);
}

static status run_group(struct flight *flight, void *state)
{
    struct groups        *groups = state;
    struct microbenchmark bench  = {.repeats = REPEATS};
    const char           *name   = flight->report.classes[groups->class].name;
    flight_run(flight, NULL, NULL, "opening %s", name);
    status opened = microbenchmark_open(&bench, &groups->op, &groups->gap.ops[0], &flight->setup);
    flight_meet(flight, "opening a group");
    opened = comm_agree(flight->comm, opened);
    for (int i = 0; i <= RUNS && !failed(&opened); i++) {
        flight->comm->ops->barrier(flight->comm);
        flight_run(flight, &bench.plan, bench.step, "%s", name);
        double seconds = microbenchmark_run(&bench);
        flight_meet(flight, name);
        groups->best = i > 0 ? fmin(groups->best, seconds) : groups->best;    // the first run has page faults
    }
    microbenchmark_close(&bench);
    TRY(opened);
    gather_groups(flight, groups);
    return OK;
}

static void add_class(struct flight *flight, struct groups *groups, int64_t halves)
{
    char                    name[224], key[OP_KEY_BYTES];
    const struct quantity  *known = measured_find_key(&flight->measured, &groups->op.key);
    struct preflight_class *added;
    snprintf(name, sizeof(name), "%s", op_key_print(&groups->op.key, key));
    groups->class = flight->report.class_count;
    added = flight_add_class(flight, PREFLIGHT_GROUP, "s", flight->takes_turns ? 0.0 : flight_group_limit, name);
    if (halves > 1) {
        snprintf(added->note, sizeof(added->note), "at 1/%" PRId64 " of its size", halves);
    } else {
        added->profile = known != NULL ? known->value : NAN;
    }
    if (flight->takes_turns) {
        snprintf(added->note, sizeof(added->note), "no limit applied: %s", flight->sharing);
    }
}

static status measure_group(struct flight *flight, struct groups *groups, const struct distinct_op *op)
{
    groups->op     = *op;
    groups->best   = INFINITY;
    int64_t halves = halve_sizes(&groups->op, flight->environment.backend.ops->is_device ? device_bytes : host_bytes);
    add_class(flight, groups, halves);
    const struct flight_series series = {
        .run = run_group, .state = groups, .batch = 1, .first_class = groups->class, .share = 0.95};
    return flight_repeat(flight, &series);
}

status flight_measure_groups(struct flight *flight)
{
    const enum format format = FORMAT_F32;
    struct groups     groups = {.class = 0};
    status            result = OK;
    distinct_add_probe(&groups.gap, (struct op){.kind = OP_CLEAR, .shape.elements = {.elements = 1}}, &format, 1);
    for (int32_t i = 0; i < flight->list.count && !failed(&result); i++) {
        const struct distinct_op *op = &flight->list.ops[i];
        if (op_is_communication((enum op_kind)op->op.kind) && flight_has_time(flight, 0.95)) {
            result = measure_group(flight, &groups, op);
        }
    }
    calibrate_free(&groups.gap);
    return result;
}
