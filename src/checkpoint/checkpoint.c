// SPDX-License-Identifier: MIT
// Writes weights in Hugging Face's layout: safetensors shards, index and config.json.
#include "gswbench/checkpoint.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/safetensors.h"
#include "gswbench/step.h"
#include "catalogue.h"

enum { NAME_BYTES = 64 };    // of a file in the folder

static const int64_t shard_bytes_default = 5000000000;    // same as Hugging Face's writer

// Reads this rank's optimizer share of a unit as fp32: masters, or weights without masters. The caller frees it.
static float *read_updated(const struct weight_source *source, const struct plan_unit *unit)
{
    bool                 has_master = unit->master >= 0;
    const struct tensor *tensor     = &source->plan->tensors[has_master ? unit->master : unit->weight];
    float               *values     = memory_allocate((size_t)tensor->elements * sizeof(*values));
    if (unit->is_low_precision && unit->is_frozen) {
        data_read_stored(source->step, source->plan, unit, values);
        return values;
    }
    step_read(source->step, has_master ? unit->master : unit->weight, values);
    if (tensor->format == FORMAT_BF16) {
        for (int64_t i = tensor->elements - 1; i >= 0; i--) {    // backwards: a float overwrites two later bf16 values
            bf16 low_precision;
            memcpy(&low_precision, (const char *)values + i * (int64_t)sizeof(low_precision), sizeof(low_precision));
            values[i] = bf16_to_float(low_precision);
        }
    }
    if (!has_master) {
        memmove(values, values + unit->updated.first - unit->kept.first,
                (size_t)unit->updated.elements * sizeof(*values));
    }
    return values;
}

// One rank per group with the same values writes the part. part is NULL if another pipeline stage has it.
static bool contributes(const struct plan *plan, const struct part_place *place)
{
    const struct weight_part *part = place->part;
    if (part == NULL) {
        return false;
    }
    const struct plan_unit *unit         = &plan->units[place->weight->unit];
    uint32_t                replica_axes = (unit->replica_axes & ~unit->update_axes) | part->replica_axes;
    return !unit->is_copy && mesh_group_index(&plan->mesh, plan->rank, replica_axes) == 0;
}

// Copies the wanted elements that this rank owns; others stay zero. own: this rank's optimizer share of the unit.
static void copy_own(const struct part_place *place, const struct plan_unit *unit, const float *own,
                     struct plan_slice wanted, float *values)
{
    const struct weight_part *part = place->part;
    for (int64_t row = 0; row < part->local_rows; row++) {
        int64_t global = (part->first_row + row) * part->columns + part->first_column;    // of the row's first element
        int64_t local  = place->weight->first + part->offset + row * part->local_columns - unit->updated.first;
        int64_t begin  = wanted.first > global ? wanted.first - global : 0;
        begin          = local + begin < 0 ? -local : begin;
        int64_t end    = wanted.first + wanted.elements - global;
        end            = end < part->local_columns ? end : part->local_columns;
        end            = end < unit->updated.elements - local ? end : unit->updated.elements - local;
        if (begin < end) {
            memcpy(values + global + begin - wanted.first, own + local + begin,
                   (size_t)(end - begin) * sizeof(*values));
        }
    }
}

// Sums values over all ranks; at most one of them is nonzero per element.
static void gather_values(const struct weight_source *source, float *values, int64_t count)
{
    int    ranks = source->comm->topology.ranks;
    size_t bytes = (size_t)count * sizeof(*values);
    float *all   = comm_gather(source->comm, values, bytes);
    for (int rank = 0; rank < ranks; rank++) {
        for (int64_t i = 0; i < count; i++) {
            values[i] = rank == 0 ? all[i] : values[i] + all[rank * count + i];
        }
    }
    free(all);
}

// Rank 0 announces the next part, so other ranks do not wait for it after a failure.
static bool call_next(struct comm *comm, bool follows)
{
    int32_t answer = follows;
    comm->ops->share(comm, &answer, sizeof(answer), 0);
    return answer != 0;
}

// Collective: rank 0 passes a writer, the others NULL.
static status append_present(struct safetensors_writer *writer, const struct weight_source *source,
                             const struct export *export)
{
    enum { CHUNK = 1 << 20 };

    struct part_place       place    = exports_find(source->plan, export);
    const struct plan_unit *unit     = place.part != NULL ? &source->plan->units[place.weight->unit] : NULL;
    int64_t                 elements = export->part->rows * export->part->columns;
    float                  *values   = memory_allocate(CHUNK * sizeof(*values));
    float                  *own      = contributes(source->plan, &place) ? read_updated(source, unit) : NULL;
    status                  result   = OK;
    if (writer != NULL) {
        call_next(source->comm, true);
    }
    for (int64_t first = 0; first < elements; first += CHUNK) {
        int64_t count = elements - first < CHUNK ? elements - first : CHUNK;
        memset(values, 0, (size_t)count * sizeof(*values));
        if (own != NULL) {
            copy_own(&place, unit, own, (struct plan_slice){first, count}, values);
        }
        gather_values(source, values, count);
        if (writer != NULL && !failed(&result)) {
            result = safetensors_append(writer, values, format_bytes(FORMAT_F32, count));
        }
    }
    free(own);
    free(values);
    return result;
}

static status append_initial(struct safetensors_writer *writer, const struct weight_source *source,
                             const struct export *export)
{
    enum { CHUNK = 1 << 22 };

    const struct weight_part *part     = export->part;
    int64_t                   elements = part->rows * part->columns;
    float                    *values   = memory_allocate(CHUNK * sizeof(*values));
    status                    result   = OK;
    for (int64_t first = 0; first < elements && !failed(&result); first += CHUNK) {
        int64_t count = elements - first < CHUNK ? elements - first : CHUNK;
        data_weight_values(part, source->seed, first, count, values);
        result = safetensors_append(writer, values, format_bytes(FORMAT_F32, count));
    }
    free(values);
    return result;
}

static status append_stored(struct safetensors_writer *writer, const struct weight_source *source,
                            const struct export *export)
{
    const struct weight_part *part    = export->part;
    int64_t                   maximum = SLICE_ELEMENTS_MAX / part->columns > 1 ? SLICE_ELEMENTS_MAX / part->columns : 1;
    struct filled filled = {.data   = memory_allocate((size_t)format_bytes(source->format, maximum * part->columns)),
                            .format = source->format};
    status        result = OK;
    for (int64_t row = 0; row < part->rows && !failed(&result); row += maximum) {
        int64_t      rows  = row + maximum < part->rows ? maximum : part->rows - row;
        struct slice slice = {.part = part, .at = {.row = row, .rows = rows, .columns = part->columns}};
        result             = catalogue_fill(source->stored, STATE_WEIGHT, &slice, &filled);
        result             = failed(&result)
                                 ? result
                                 : safetensors_append(writer, filled.data, format_bytes(source->format, rows * part->columns));
    }
    free(filled.data);
    return result;
}

// Every rank has all biases. They are zero initially and if a checkpoint lacks them.
static status append_biases(struct safetensors_writer *writer, const struct weight_source *source)
{
    const struct tensor *tensor = &source->plan->tensors[source->plan->router_bias];
    float               *values = memory_allocate((size_t)tensor->bytes);
    status               result = OK;
    if (source->stored != NULL) {
        result = catalogue_read_biases(source->stored, source->plan, values);
    } else if (source->step != NULL) {
        step_read(source->step, source->plan->router_bias, values);
    }
    result = failed(&result) ? result : safetensors_append(writer, values, tensor->bytes);
    free(values);
    return result;
}

// Names the file of a tensor; router biases are in the last one.
static const char *name_shard(const struct export_list *list, int32_t tensor, char name[NAME_BYTES])
{
    int32_t shard = tensor < list->count ? list->exports[tensor].shard : list->shards - 1;
    snprintf(name, NAME_BYTES, "model-%05d-of-%05d.safetensors", shard + 1, list->shards);
    return list->shards == 1 ? WEIGHTS_NAME : name;
}

// Writes exports begin .. end - 1 to their shard's file.
static status write_shard(const struct weight_source *source, const struct export_list *list, int32_t begin,
                          int32_t end, const struct output_folder *folder)
{
    char                      name[NAME_BYTES];
    struct safetensors_writer writer;
    int32_t                   biases = end == list->count ? list->bias_count : 0;
    status result = safetensors_create_in(&writer, folder, name_shard(list, begin, name), &list->tensors[begin],
                                          end - begin + biases);
    for (int32_t i = begin; i < end && !failed(&result); i++) {
        const struct export *export = &list->exports[i];
        result                      = source->step != NULL     ? append_present(&writer, source, export)
                                      : source->stored != NULL ? append_stored(&writer, source, export)
                                                               : append_initial(&writer, source, export);
    }
    if (!failed(&result) && biases > 0) {
        result = append_biases(&writer, source);
    }
    result = failed(&result) ? result : safetensors_finish(&writer);
    safetensors_abandon(&writer);
    return result;
}

static status write_shards(const struct weight_source *source, const struct export_list *list,
                           const struct output_folder *folder)
{
    int32_t begin = 0;
    for (int32_t end = 1; end <= list->count; end++) {
        if (end == list->count || list->exports[end].shard != list->exports[begin].shard) {
            TRY(write_shard(source, list, begin, end, folder));
            begin = end;
        }
    }
    return OK;
}

char *json_text(json_t *json, size_t flags)
{
    char *text = json_dumps(json, flags);
    json_decref(json);
    if (text == NULL) {
        FATAL(EXIT_MEMORY, "out of host memory");
    }
    return text;
}

static status write_json(json_t *json, const struct output_folder *folder, const char *name)
{
    char  *text   = json_text(json, JSON_FLAGS);
    status result = output_write(folder, name, text, strlen(text));
    free(text);
    return result;
}

static status write_index(const struct export_list *list, const struct output_folder *folder)
{
    json_t *map = json_object();
    for (int32_t i = 0; i < list->count + list->bias_count; i++) {
        char name[NAME_BYTES];
        json_object_set_new(map, list->tensors[i].name, json_string(name_shard(list, i, name)));
    }
    return write_json(
        json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)list->total_bytes, "weight_map", map), folder,
        INDEX_NAME);
}

static status write_config(const struct weight_source *source, const struct output_folder *folder)
{
    const struct plan *plan = source->plan;
    return write_json(describe_model(&plan->model, plan->train.sequence, source->format), folder, CONFIG_NAME);
}

// Counts a larger tensor as one shard; the writer checks each file again.
static status check_space(const struct plan *plan, enum format format, const struct output_folder *folder)
{
    struct export_list list    = exports_list(plan, format, shard_bytes_default);
    int64_t            bytes   = list.total_bytes;
    int64_t            largest = bytes < shard_bytes_default ? bytes : shard_bytes_default;
    exports_free(&list);
    return output_check_space(folder->descriptor, folder->path, bytes, largest);
}

status checkpoint_check_space(const struct plan *plan, const struct output_folder *folder)
{
    return check_space(plan, FORMAT_F32, folder);
}

// config.json is written last: a folder that has it is complete.
status checkpoint_write_folder(const struct weight_source *source, const struct output_folder *folder,
                               int64_t shard_bytes)
{
    struct export_list list   = exports_list(source->plan, source->format, shard_bytes);
    status             result = write_shards(source, &list, folder);
    if (!failed(&result) && list.shards > 1) {
        result = write_index(&list, folder);
    }
    exports_free(&list);
    return failed(&result) ? result : write_config(source, folder);
}

static status write_new(const struct weight_source *source, const char *folder)
{
    struct output_folder held;
    TRY(output_claim_folder(&held, folder));
    status result = check_space(source->plan, source->format, &held);
    result        = failed(&result) ? result : checkpoint_write_folder(source, &held, shard_bytes_default);
    output_close_folder(&held);
    return result;
}

status checkpoint_write_initial(const struct plan *plan, uint64_t seed, const char *folder)
{
    return write_new(&(struct weight_source){.plan = plan, .seed = seed, .format = FORMAT_F32}, folder);
}

status checkpoint_write_stored(const struct plan *plan, struct catalogue *stored, const char *folder)
{
    return write_new(&(struct weight_source){.plan = plan, .stored = stored, .format = catalogue_weight_format(stored)},
                     folder);
}

status checkpoint_write(const struct plan *plan, const struct step *step, struct comm *comm,
                        const struct output_folder *folder)
{
    struct weight_source source = {.plan = plan, .step = step, .comm = comm};
    if (comm->topology.rank == 0) {
        status result = checkpoint_write_folder(&source, folder, shard_bytes_default);
        call_next(comm, false);
        return result;
    }
    struct export_list list = exports_list(plan, FORMAT_F32, shard_bytes_default);
    for (int32_t i = 0; call_next(comm, false); i++) {
        append_present(NULL, &source, &list.exports[i]);
    }
    exports_free(&list);
    return OK;
}
