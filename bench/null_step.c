// SPDX-License-Identifier: MIT
// Measures the overhead of the step executor. It runs handmade plans on the null backend, and prints the median
// nanoseconds per op, for one stream and for two streams with dependencies.
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/clock.h"
#include "gswbench/statistics.h"
#include "gswbench/step.h"

enum { OPS = 20000, OPERANDS = 4, WARMUP = 20, STEPS = 201, NEVER = OPS };

// Every interval-th op is a collective on another stream. It waits for the op before it, and the op `distance` later
// waits for it.
struct shape {
    const char *name;
    int32_t     interval, distance;
};

static void make_op(struct op *ops, int32_t i, const struct shape *shape)
{
    struct op *op = &ops[i];
    *op           = (struct op){.kind = OP_NORM_FORWARD, .stream = STREAM_COMPUTE, .operand_count = OPERANDS};
    if (i % shape->interval == shape->interval - 1) {
        op->kind                = OP_ALL_REDUCE;
        op->stream              = STREAM_GRADIENT_REDUCE;
        op->operand[0]          = -1;
        op->operand_count       = 2;
        op->wait[0]             = i - 1;
        op->wait_count          = 1;
        op->shape.communication = (struct communication_shape){.elements = 64};
    }
    int32_t awaited = i - shape->distance;
    if (op->stream == STREAM_COMPUTE && awaited >= 0 && ops[awaited].stream != STREAM_COMPUTE) {
        op->wait[0]    = awaited;
        op->wait_count = 1;
    }
}

static double measure(const struct shape *shape, struct backend *backend, struct comm *comm)
{
    static struct op  ops[OPS];
    struct tensor     tensor = {.name = "data", .elements = 64, .bytes = 256, .dims = 1, .dim = {64}};
    int64_t           rank   = 0;
    struct plan_group group  = {.size = 1, .ranks = &rank};
    struct plan       plan   = {.tensors       = &tensor,
                                .tensor_count  = 1,
                                .ops           = ops,
                                .op_count      = OPS,
                                .groups        = &group,
                                .group_count   = 1,
                                .storage_bytes = {[STORAGE_WEIGHT] = 256}};
    for (int32_t i = 0; i < OPS; i++) {
        make_op(ops, i, shape);
    }
    struct step *step;
    status       opened = step_open(&step, &plan, backend, comm);
    if (failed(&opened)) {
        fprintf(stderr, "%s\n", opened.text);
        exit(opened.exit_code);
    }

    double nanoseconds[STEPS];
    for (int i = -WARMUP; i < STEPS; i++) {
        double begin = clock_seconds();
        step_run(step);
        double seconds = clock_seconds() - begin;
        if (i >= 0) {
            nanoseconds[i] = 1e9 * seconds;
        }
    }
    step_close(step);
    struct statistics statistics;
    statistics_compute(&statistics, nanoseconds, STEPS);
    return statistics.median / OPS;
}

int main(void)
{
    static const struct shape shapes[] = {
        {"one stream", NEVER + 1, 1},
        {"two streams, a collective every 64 ops, awaited 32 ops later", 64, 32},
        {"two streams, a collective every 8 ops, awaited 4 ops later", 8, 4},
    };
    struct backend backend;
    struct comm    comm;
    status         opened = backend_open(&backend, "null", &(struct backend_setup){.threads = 1});
    if (failed(&opened)) {
        fprintf(stderr, "%s\n", opened.text);
        return opened.exit_code;
    }
    struct local_hub *hub = local_hub_open(1);
    comm_open_local(&comm, hub, 0);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        printf("%-60s %8.1f ns per op\n", shapes[i].name, measure(&shapes[i], &backend, &comm));
    }
    comm_close(&comm);
    local_hub_close(hub);
    backend_close(&backend);
    return EXIT_VALID;
}
