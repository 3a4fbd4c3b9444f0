// SPDX-License-Identifier: MIT
// Verifies a checkpoint by itself, and exports its weights to Hugging Face's layout.
#include <stdlib.h>
#include <string.h>

#include "catalogue.h"
#include "gswbench/plan_build.h"

status checkpoint_plan(struct plan *plan, const struct model_config *model, int64_t sequence)
{
    struct plan_request     request;
    struct parallel_config  parallel;
    struct train_config     train;
    struct precision_config precision;
    option_set_defaults(parallel_options, &parallel);
    option_set_defaults(train_options, &train);
    option_set_defaults(precision_options, &precision);
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        mesh_ask(&parallel, (enum axis)axis, 1);
    }
    train.sequence     = sequence;
    train.micro_batch  = 1;
    train.global_batch = 0;
    train.accumulation = 1;
    TRY(plan_resolve(&request, &(struct plan_sections){model, &parallel, &train, &precision, 1}));
    return plan_build(plan, &request);
}

// Checks against the manifest's model; an invalid model is an error of the checkpoint.
static status open_with_plan(struct catalogue *catalogue, const char *path, struct plan *plan)
{
    struct model_config model;
    TRY(catalogue_open(catalogue, path, true));
    if (!catalogue->is_ours) {
        return OK;
    }
    status planned = manifest_model(&catalogue->manifest, &model);
    planned        = failed(&planned) ? planned : checkpoint_plan(plan, &model, catalogue->manifest.sequence);
    if (failed(&planned)) {
        return fail_as(EXIT_CHECKPOINT, "%.600s/%s: its model is invalid: %.300s", catalogue->path, MANIFEST_NAME,
                       planned.text);
    }
    return catalogue_check(catalogue, plan);
}

static int compare_place(const void *a, const void *b)
{
    const struct stored *x = a, *y = b;
    return x->file != y->file ? (x->file > y->file) - (x->file < y->file)
                              : (x->begin > y->begin) - (x->begin < y->begin);
}

// Reads in file order. The catalogue is no longer sorted by tensor afterwards.
static status read_all(struct catalogue *catalogue)
{
    qsort(catalogue->slices, (size_t)catalogue->count, sizeof(*catalogue->slices), compare_place);
    for (int64_t i = 0; i < catalogue->count; i++) {
        struct rectangle at = catalogue->slices[i].at;
        const void      *data;
        TRY(catalogue_read(catalogue, &catalogue->slices[i], &at, &data));
    }
    return OK;
}

status checkpoint_verify(const char *path, struct checkpoint_contents *contents)
{
    struct catalogue catalogue;
    struct plan      plan   = {.tensor_count = 0};
    status           result = open_with_plan(&catalogue, path, &plan);
    *contents               = (struct checkpoint_contents){.step    = catalogue.manifest.origin.step,
                                                           .slices  = catalogue.count,
                                                           .files   = catalogue.file_count,
                                                           .is_ours = catalogue.is_ours};
    for (int64_t i = 0; i < catalogue.count; i++) {
        contents->tensors += i == 0 || strcmp(catalogue.slices[i].tensor, catalogue.slices[i - 1].tensor) != 0;
    }
    result          = failed(&result) ? result : read_all(&catalogue);
    contents->bytes = catalogue.read_bytes;
    catalogue_close(&catalogue);
    plan_free(&plan);
    return result;
}

status checkpoint_export(const char *path, const char *folder, struct model_config *model)
{
    struct catalogue catalogue;
    struct plan      plan   = {.tensor_count = 0};
    status           result = open_with_plan(&catalogue, path, &plan);
    if (!failed(&result) && !catalogue.is_ours) {
        result = fail_as(EXIT_CHECKPOINT,
                         "%.900s: has no " MANIFEST_NAME ": it is not a gswbench checkpoint, and needs no export",
                         catalogue.path);
    }
    if (!failed(&result)) {
        result = checkpoint_write_stored(&plan, &catalogue, folder);
        *model = plan.model;
    }
    catalogue_close(&catalogue);
    plan_free(&plan);
    return result;
}
