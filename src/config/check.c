// SPDX-License-Identifier: MIT
// Checks a whole config: every section by its own module, then what ties sections together.
#include <inttypes.h>
#include <string.h>

#include "gswbench/config.h"

static void note(status *errors, status result)
{
    if (failed(&result)) {
        status_add(errors, result);
    }
}

static void divides(status *errors, const char *what, int64_t number, const char *axis, int64_t size)
{
    if (size > 0 && number % size != 0) {
        status_add(errors, fail("[parallel] %s = %" PRId64 " does not divide %s = %" PRId64, axis, size, what, number));
    }
}

static void check_layout(status *errors, const struct config *config, const struct mesh *mesh)
{
    const struct model_config *model = &config->model;
    divides(errors, "[model] heads", model->heads, "tp", mesh->size[AXIS_TP]);
    divides(errors, "[model] kv_heads", model->kv_heads, "tp", mesh->size[AXIS_TP]);
    divides(errors, "[model] ffn", model->ffn, "tp", mesh->size[AXIS_TP]);
    divides(errors, "[model] experts", model->experts, "ep", mesh->size[AXIS_EP]);
    if (model->experts == 0 && mesh->size[AXIS_EP] > 1) {
        status_add(errors, fail("[parallel] ep = %" PRId64 " needs experts: set [model] experts, or leave ep out",
                                mesh->size[AXIS_EP]));
    }
    // Each rank holds two pieces of a sequence, one from either end: causal work is then even.
    int64_t pieces = mesh->size[AXIS_CP] > 1 ? 2 * mesh->size[AXIS_CP] : 1;
    divides(errors, "[train] sequence", config->train.sequence, "2 x cp", pieces);

    struct train_config train = config->train;
    note(errors, train_resolve(&train, mesh_group_size(mesh, MESH_BATCH_AXES)));
}

status config_check(const struct config *config)
{
    status           errors = model_check(&config->model);
    struct precision precision;
    note(&errors, precision_init(&precision, &config->precision));
    if (config->run.warmup >= config->run.steps) {
        status_add(&errors, fail("[run] warmup = %" PRId64 " leaves nothing to measure of steps = %" PRId64
                                 ": at most %" PRId64 " (--set run.warmup=%" PRId64 ")",
                                 config->run.warmup, config->run.steps, config->run.steps - 1, config->run.steps / 5));
    }
    if (strcmp(config->run.backend, "cuda") == 0 && config->precision.compute == COMPUTE_FP32) {
        status_add(
            &errors,
            fail("[run] backend = cuda has no attention in fp32: take backend = host, or [precision] compute = bf16"));
    }
    if (config->run.output[0] == '\0') {
        status_add(&errors, fail("[run] output is empty: name a folder, or . for the present one"));
    }
    const struct parallel_config *axes     = &config->parallel;
    bool                          has_auto = axes->tp * axes->cp * axes->fsdp * axes->dp * axes->pp == 0;
    if (config->ranks == 0 && has_auto) {
        return errors;    // the layout is known when the ranks are
    }
    struct mesh mesh;
    status      layout = mesh_init(&mesh, axes, config->ranks);
    if (failed(&layout)) {
        status_add(&errors, layout);
    } else {
        check_layout(&errors, config, &mesh);
        note(&errors, profile_check(&config->profile, mesh.world));
    }
    return errors;
}
