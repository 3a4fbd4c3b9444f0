// SPDX-License-Identifier: MIT
// Checks that a checkpoint has exactly the tensors of a model, with the right shapes. Also verifies all data of a
// checkpoint, and exports its weights to Hugging Face's layout.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/json.h"
#include "gswbench/plan_build.h"
#include "catalogue.h"

static status refuse_shape(const struct catalogue *catalogue, const struct stored_tensor *stored,
                           const struct weight_part *part)
{
    char problem[160];
    snprintf(problem, sizeof(problem), "is [%" PRId64 ", %" PRId64 "], but the model has [%" PRId64 ", %" PRId64 "]",
             stored->rows, stored->columns, part->rows, part->columns);
    return catalogue_refuse(catalogue, stored->slices[0].tensor, problem);
}

static status check_state(const struct catalogue *catalogue, const struct stored_tensor *stored,
                          const struct weight_part *part)
{
    if (stored->count == 0) {
        return OK;
    }
    bool is_vector = stored->slices[0].entry.dims == 1;
    if (stored->rows != part->rows || stored->columns != part->columns || is_vector != part->is_vector) {
        return refuse_shape(catalogue, stored, part);
    }
    enum format format = stored->slices[0].entry.format;
    return format == FORMAT_F32 || format == FORMAT_BF16
               ? OK
               : catalogue_refuse(catalogue, stored->slices[0].tensor, "has a type that weights cannot have");
}

// Checks the states (weights, masters, moments) of a weight part, and adds the number of their slices to *slices.
static status check_part(const struct catalogue *catalogue, const struct export *export, bool has_moments,
                         int64_t *slices)
{
    const struct weight_part *part = export->part;
    struct stored_tensor      stored[STATE_COUNT];
    for (enum state state = 0; state < STATE_COUNT; state++) {
        stored[state] = catalogue_find(catalogue, state, part->name);
        *slices += stored[state].count;
        TRY(check_state(catalogue, &stored[state], part));
    }
    if (stored[STATE_WEIGHT].count == 0 && stored[STATE_MASTER].count == 0) {
        return catalogue_refuse(catalogue, part->name, "the model has it, the checkpoint does not");
    }
    if (has_moments && stored[STATE_FIRST_MOMENT].count == 0) {
        return catalogue_refuse(catalogue, part->name, "has no moments, though other tensors have");
    }
    return !has_moments || (stored[STATE_SECOND_MOMENT].count > 0) == !export->is_muon
               ? OK
               : catalogue_refuse(catalogue, part->name,
                                  export->is_muon ? "has second moments: it was saved with train.optimizer=adamw"
                                                  : "has no second moments: it was saved with train.optimizer=muon");
}

bool catalogue_has(const struct catalogue *catalogue, const char *name)
{
    return catalogue_find(catalogue, STATE_WEIGHT, name).count > 0 ||
           catalogue_find(catalogue, STATE_MASTER, name).count > 0;
}

static bool is_part(const struct export_list *list, const char *name)
{
    for (int32_t i = 0; i < list->count; i++) {
        if (strcmp(list->exports[i].part->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_scale_or_bias(const struct plan *plan, const char *tensor)
{
    struct scaling_tensor tensors[SCALING_TENSORS];
    char                  name[SAFETENSORS_NAME_BYTES];
    bool                  is_one = strcmp(tensor, ROUTER_BIAS) == 0;
    for (int32_t i = 0, count = exports_name_bias(plan, 0, name); i < count; i++) {
        exports_name_bias(plan, i, name);
        is_one |= strcmp(tensor, name) == 0;
    }
    scaling_list(plan, tensors);
    for (int i = 0; i < SCALING_TENSORS; i++) {
        is_one |= strcmp(tensor, tensors[i].name) == 0;
    }
    return is_one;
}

static bool is_known(const struct plan *plan, const struct export_list *list, const char *tensor)
{
    for (enum state state = 0; state < STATE_COUNT; state++) {
        size_t length = strlen(state_prefixes[state]);
        if (strncmp(tensor, state_prefixes[state], length) == 0 && is_part(list, tensor + length)) {
            return true;
        }
    }
    return is_scale_or_bias(plan, tensor);
}

static status find_unknown(const struct catalogue *catalogue, const struct plan *plan, const struct export_list *list)
{
    for (int64_t i = 0; i < catalogue->count; i++) {
        const char *tensor = catalogue->slices[i].tensor;
        bool        is_new = i == 0 || strcmp(catalogue->slices[i - 1].tensor, tensor) != 0;
        if (is_new && !is_known(plan, list, tensor)) {
            return catalogue_refuse(catalogue, tensor, "the model has no such tensor");
        }
    }
    return OK;
}

// Returns whether a checkpoint must have optimizer moments. gswbench always saves them; weights of other programs may
// have none.
static bool has_any_moments(const struct catalogue *catalogue, const struct export_list *list)
{
    bool has = catalogue->is_ours;
    for (int32_t i = 0; i < list->count && !has; i++) {
        has = catalogue_find(catalogue, STATE_FIRST_MOMENT, list->exports[i].part->name).count > 0;
    }
    return has;
}

// Checks the state of delayed FP8 scaling. A checkpoint has all four tensors or none, each as one fp32 slice. There are
// equally many scales, inverse scales and amaxes, and a history of each amax.
static status check_scaling(const struct catalogue *catalogue, const struct plan *plan)
{
    struct scaling_tensor tensors[SCALING_TENSORS];
    int64_t               slots = 0;
    scaling_list(plan, tensors);
    for (int i = 0; i < SCALING_TENSORS; i++) {
        struct stored_tensor stored   = catalogue_find(catalogue, STATE_WEIGHT, tensors[i].name);
        int64_t              elements = stored.count > 0 ? stored.rows * stored.columns : 0;
        slots                         = i == 0 ? elements : slots;
        bool is_history               = i == SCALING_TENSORS - 1;
        if ((elements == 0) != (slots == 0) || (is_history && slots > 0 ? elements % slots != 0 : elements != slots)) {
            return catalogue_refuse(catalogue, tensors[i].name, "does not fit the size of the other FP8 scales");
        }
        if (stored.count > 1 || (stored.count == 1 && stored.slices[0].entry.format != FORMAT_F32)) {
            return catalogue_refuse(catalogue, tensors[i].name, "is not one slice of fp32");
        }
    }
    return OK;
}

// Returns whether the checkpoint has the model's LoRA adapters, or the model has none. Training can start from a
// checkpoint without them.
static bool has_adapters(const struct catalogue *catalogue, const struct plan *plan, const struct export_list *list)
{
    bool has = !model_is_frozen(&plan->model);
    for (int32_t i = 0; i < list->count && !has; i++) {
        has = !list->exports[i].is_frozen && catalogue_has(catalogue, list->exports[i].part->name);
    }
    return has;
}

static status check_parts(const struct catalogue *catalogue, const struct plan *plan, const struct export_list *list)
{
    int64_t slices      = 0;
    bool    has_moments = has_any_moments(catalogue, list), has_all = has_adapters(catalogue, plan, list);
    for (int32_t i = 0; i < list->count; i++) {
        const struct export *export = &list->exports[i];
        if (export->is_frozen || has_all) {
            TRY(check_part(catalogue, export, has_moments && !export->is_frozen, &slices));
        }
    }
    return slices == catalogue->count ? OK : find_unknown(catalogue, plan, list);
}

static status check_config(const struct catalogue *catalogue, const struct plan *plan)
{
    char                 path[CATALOGUE_PATH_BYTES];
    json_t              *found;
    struct manifest_file file;
    TRY(catalogue_load_json(catalogue, CONFIG_NAME, &found, &file));
    json_t *expected = describe_model(&plan->model, plan->train.sequence, FORMAT_F32);
    status  result   = describe_compare(catalogue_join(catalogue->path, CONFIG_NAME, path), expected, found);
    json_decref(expected);
    json_decref(found);
    return result;
}

status catalogue_check(const struct catalogue *catalogue, const struct plan *plan)
{
    TRY(check_config(catalogue, plan));
    struct export_list list   = exports_list(plan, FORMAT_F32, INT64_MAX);
    status             result = check_parts(catalogue, plan, &list);
    exports_free(&list);
    return failed(&result) ? result : check_scaling(catalogue, plan);
}

enum format catalogue_weight_format(const struct catalogue *catalogue)
{
    size_t length      = strlen(state_prefixes[STATE_MASTER]);
    bool   has_masters = false;
    for (int64_t i = 0; i < catalogue->count; i++) {
        const char *tensor = catalogue->slices[i].tensor;
        if (strncmp(tensor, state_prefixes[STATE_MASTER], length) == 0) {
            struct stored_tensor weight = catalogue_find(catalogue, STATE_WEIGHT, tensor + length);
            has_masters                 = true;
            if (weight.count == 0) {
                return FORMAT_F32;
            }
        }
    }
    return has_masters ? FORMAT_BF16 : FORMAT_F32;
}

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

// Opens a checkpoint and compares it with the model in its manifest. Fails with EXIT_CHECKPOINT if that model is
// invalid.
static status open_with_plan(struct catalogue *catalogue, const char *path, struct plan *plan)
{
    struct model_config model;
    TRY(catalogue_open(catalogue, path, true));
    if (!catalogue->is_ours) {
        return OK;
    }
    status planned = manifest_model(&catalogue->manifest, &model);
    planned        = failed(&planned) ? planned : checkpoint_plan(plan, &model, catalogue->manifest.sequence);
    FAIL_AS_IF(failed(&planned), EXIT_CHECKPOINT, "%.600s/%s: its model is invalid: %.300s", catalogue->path,
               MANIFEST_NAME, planned.text);
    return catalogue_check(catalogue, plan);
}

static int compare_position(const void *a, const void *b)
{
    const struct stored *x = a, *y = b;
    return x->file != y->file ? (x->file > y->file) - (x->file < y->file)
                              : (x->begin > y->begin) - (x->begin < y->begin);
}

// Reads every slice, in the order of the files. Afterwards the slices are no longer sorted by tensor.
static status read_all(struct catalogue *catalogue)
{
    qsort(catalogue->slices, (size_t)catalogue->count, sizeof(*catalogue->slices), compare_position);
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
