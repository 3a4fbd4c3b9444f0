// SPDX-License-Identifier: MIT
// Checks a whole config: every section by its own module, then what ties sections together.
#include <inttypes.h>
#include <string.h>

#include "gswbench/backend.h"
#include "gswbench/job.h"
#include "gswbench/layers.h"

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
    divides(errors, "[model] expert_ffn", model->expert_ffn, "tp", mesh->size[AXIS_TP]);
    divides(errors, "[model] experts", model->experts, "ep", mesh->size[AXIS_EP]);
    if (model->experts == 0 && mesh->size[AXIS_EP] > 1) {
        status_add(errors, fail("[parallel] ep = %" PRId64 " needs experts: set [model] experts, or leave ep out",
                                mesh->size[AXIS_EP]));
    }
    // Each rank holds two pieces of a sequence, one from either end: causal work is then even.
    int64_t pieces = mesh->size[AXIS_CP] > 1 ? 2 * mesh->size[AXIS_CP] : 1;
    divides(errors, "[train] sequence", config->train.sequence, "2 x cp", pieces);
}

struct plan_sections job_sections(const struct config *config)
{
    return (struct plan_sections){.model     = &config->model,
                                  .parallel  = &config->parallel,
                                  .train     = &config->train,
                                  .precision = &config->precision,
                                  .world     = config->ranks};
}

bool job_is_open(const struct config *config)
{
    return config->ranks == 0 && mesh_has_auto(&config->parallel);
}

static void check_run(status *errors, const struct config *config)
{
    if (config->run.warmup >= config->run.steps) {
        status_add(errors,
                   fail("[run] warmup = %" PRId64 " leaves nothing to measure of steps = %" PRId64 ": at most %" PRId64
                        " (--set run.warmup=%" PRId64 ")",
                        config->run.warmup, config->run.steps, config->run.steps - 1, run_warmup(config->run.steps)));
    }
    if (config->precision.compute == COMPUTE_FP32 && backend_lacks_fp32(config->run.backend)) {
        status_add(
            errors,
            fail("[run] backend = %s has no attention in fp32: take backend = host, or [precision] compute = bf16",
                 config->run.backend));
    }
    if (config->run.output[0] == '\0') {
        status_add(errors, fail("[run] output is empty: name a folder, or . for the present one"));
    }
}

status job_check_sections(const struct config *config)
{
    struct plan_sections sections = job_sections(config);
    status               errors   = plan_check(&sections);
    check_run(&errors, config);
    return errors;
}

status job_check(struct plan_request *request, const struct config *config)
{
    if (job_is_open(config)) {
        return job_check_sections(config);    // the layout is known when the ranks are
    }
    struct plan_sections sections = job_sections(config);
    status               errors   = plan_resolve(request, &sections);
    check_run(&errors, config);
    if (request->mesh.world > 0) {
        check_layout(&errors, config, &request->mesh);
        note(&errors, trace_config_check(&config->trace, request->mesh.world));
    }
    return errors;
}
