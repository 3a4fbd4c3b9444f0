// SPDX-License-Identifier: MIT
// Writes the logits of a checkpoint on one rank of the host backend, for a test with an independent reference:
// logits CONFIG CHECKPOINT OUT
//
// Computes the logits of the next step: fp32 [samples x sequence, vocabulary], as the loss op reads them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/backend.h"
#include "gswbench/checkpoint.h"
#include "gswbench/fatal.h"
#include "gswbench/format.h"
#include "gswbench/job.h"
#include "gswbench/step.h"

static FILE *out;

static void require(status result)
{
    if (failed(&result)) {
        FATAL(EXIT_INTERNAL, "%s", result.text);
    }
}

// Replaces the loss op, which would overwrite the logits with their gradient, and writes the logits to OUT.
static void write_logits(struct backend *backend, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct rows_shape *shape = &op->shape.rows;
    const struct buffer     *from  = &buffers[CROSS_ENTROPY_LOGITS];
    float                   *row   = memory_allocate((size_t)shape->valid_columns * sizeof(*row));
    for (int64_t i = 0; i < shape->rows; i++) {
        for (int64_t column = 0; column < shape->valid_columns; column++) {
            row[column] = shape->multiplier * element_read(from->format, from->data, i * shape->columns + column);
        }
        if (fwrite(row, sizeof(*row), (size_t)shape->valid_columns, out) != (size_t)shape->valid_columns) {
            FATAL(EXIT_OUTPUT, "cannot write the logits");
        }
    }
    free(row);
    backend_host.run[op->kind](backend, op, buffers);
}

static void run_step(const struct config *config, const struct plan *plan, struct step *step, const char *checkpoint)
{
    struct catalogue      *loaded;
    struct checkpoint_cost cost;
    require(checkpoint_open(&loaded, checkpoint, plan, true));
    data_initialise_state(step, plan);
    require(checkpoint_load(loaded, plan, step, &(struct checkpoint_watch){0}, &cost));
    step_make_weights(step);
    data_fill(step, plan, (enum data_kind)config->run.data, (uint64_t)config->run.seed,
              checkpoint_origin(loaded)->step);
    step_run(step);
    checkpoint_close(loaded);
}

int main(int count, char **words)
{
    static op_run       *run[OP_COUNT];
    struct backend_ops   ops       = backend_host;
    struct backend       backend   = {.ops = &ops};
    struct text_buffer   errors    = {.text = NULL};
    struct job_selection selection = {.name = words[1], .ranks = 1, .errors = &errors};
    struct config        config;
    struct plan_request  request = {.rank = 0};
    struct plan          plan;
    struct local_hub    *hub = local_hub_open(1);
    struct comm          comm;
    struct step         *step;
    if (count != 4) {
        FATAL(EXIT_USAGE, "usage: logits CONFIG CHECKPOINT OUT");
    }
    require(job_read_config(&config, &selection));
    require(job_check(&request, &config));
    require(plan_build(&plan, &request));
    memcpy(run, backend_host.run, sizeof(run));
    run[OP_CROSS_ENTROPY] = write_logits;
    ops.run               = run;
    out                   = fopen(words[3], "wb");
    comm_open_local(&comm, hub, 0);
    require(ops.open(&backend, &(struct backend_setup){.threads = 1}));
    require(step_open(&step, &plan, &backend, &comm));
    run_step(&config, &plan, step, words[2]);
    step_close(step);
    backend_close(&backend);
    comm_close(&comm);
    local_hub_close(hub);
    plan_free(&plan);
    return out == NULL || fclose(out) != 0;
}
