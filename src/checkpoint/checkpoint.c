// SPDX-License-Identifier: MIT
// Lists and writes weights in Hugging Face's layout: safetensors files (shards), their index, and config.json.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/number.h"
#include "gswbench/plan_build.h"
#include "gswbench/step.h"
#include "catalogue.h"
#include "internal.h"
#include "slices.h"

enum { NAME_BYTES = 64 };    // size of a file name

static const int64_t shard_bytes_default = 5000000000;    // the default of Hugging Face's writer

// Returns the entry of a weight part in the header of a safetensors file. A part is one tensor of the file.
static struct safetensor describe_part(const struct weight_part *part, enum format format)
{
    struct safetensor tensor = {.format = format, .dims = part->is_vector ? 1 : 2, .dim = {part->rows, part->columns}};
    if (part->is_vector) {
        tensor.dim[0] = part->columns;
    }
    snprintf(tensor.name, sizeof(tensor.name), "%s", part->name);
    return tensor;
}

static void append_part(struct export_list *list, const struct weight_part *part, const struct plan_unit *unit)
{
    int64_t bytes = format_bytes(list->format, part->rows * part->columns);
    if (list->shards == 0 || list->last_bytes + bytes > list->shard_bytes) {
        list->shards++;
        list->last_bytes = 0;
    }
    list->last_bytes += bytes;
    list->total_bytes += bytes;
    int32_t tensors = list->count;
    LIST_APPEND(list->tensors, tensors, describe_part(part, list->format));
    LIST_APPEND(list->exports, list->count,
                (struct export){.part             = part,
                                .shard            = list->shards - 1,
                                .is_low_precision = unit->is_low_precision,
                                .is_frozen        = unit->is_frozen,
                                .is_muon          = unit->is_muon});
}

static int64_t count_owners(const struct plan *plan)
{
    return mesh_group_size(&plan->mesh, plan->mesh.owner_axes);
}

// Lists the plans of ranks ("holders") that together have all weights: one rank for each combination of pipeline stage
// and expert-parallel rank.
static void declare_holders(struct export_list *list, const struct plan *plan)
{
    int64_t *ranks = memory_allocate((size_t)list->holder_count * sizeof(*ranks));
    mesh_group_ranks(&plan->mesh, plan->rank, 1u << AXIS_PP | plan->mesh.owner_axes, ranks);
    list->holders = memory_allocate((size_t)list->holder_count * sizeof(*list->holders));
    for (int64_t holder = 0; holder < list->holder_count; holder++) {
        plan_declare(&list->holders[holder], plan, ranks[holder]);
    }
    free(ranks);
}

// Returns whether a holder's copy of a unit is exported. Experts are exported from every expert-parallel rank, other
// units from the first one in each pipeline stage. The second copy of a tied embedding is not exported.
static bool is_listed(const struct plan *plan, int64_t holder, const struct plan_unit *unit)
{
    return !unit->is_copy && (unit->is_experts || holder % count_owners(plan) == 0);
}

int32_t exports_name_bias(const struct plan *plan, int32_t index, char name[SAFETENSORS_NAME_BYTES])
{
    const struct model_family *family = model_family_of(&plan->model);
    if (family == NULL || !family->has_latent_attention) {
        snprintf(name, SAFETENSORS_NAME_BYTES, ROUTER_BIAS);
        return 1;
    }
    snprintf(name, SAFETENSORS_NAME_BYTES, "model.layers.%d.mlp.gate.e_score_correction_bias",
             (int)layers_expert_layer(&plan->model, index));
    return (int32_t)layers_with_experts(&plan->model);
}

static void list_biases(struct export_list *list, const struct plan *plan)
{
    const struct tensor *tensor = &plan->tensors[plan->router_bias];
    struct safetensor    bias   = {.format = FORMAT_F32, .dims = 2, .dim = {tensor->dim[0], tensor->dim[1]}};
    list->bias_count            = exports_name_bias(plan, 0, bias.name);
    list->total_bytes += tensor->bytes;
    list->tensors = memory_resize(list->tensors, (size_t)(list->count + list->bias_count) * sizeof(*list->tensors));
    if (strcmp(bias.name, ROUTER_BIAS) != 0) {
        bias.dims   = 1;
        bias.dim[0] = tensor->dim[1];
    }
    for (int32_t i = 0; i < list->bias_count; i++) {
        exports_name_bias(plan, i, bias.name);
        list->tensors[list->count + i] = bias;
    }
}

// Appends the weights that a holder (declare_holders) lists from FSDP units with this index (plan_unit.place).
static void append_units(struct export_list *list, const struct plan *plan, int64_t holder, int64_t place)
{
    const struct plan *of = list->holders != NULL ? &list->holders[holder] : plan;
    for (int32_t i = 0; i < of->weight_count; i++) {
        const struct weight    *weight = &of->weights[i];
        const struct plan_unit *unit   = &of->units[weight->unit];
        for (int32_t j = 0; j < weight->part_count && unit->place == place && is_listed(of, holder, unit); j++) {
            append_part(list, &weight->part[j], unit);
        }
    }
}

struct export_list exports_list(const struct plan *plan, enum format format, int64_t shard_bytes)
{
    struct export_list list = {
        .holder_count = plan->mesh.size[AXIS_PP] * count_owners(plan), .format = format, .shard_bytes = shard_bytes};
    if (list.holder_count > 1) {
        declare_holders(&list, plan);
    }
    for (int64_t place = 0; place < 4 * model_all_layers(&plan->model) + 2; place++) {
        for (int64_t holder = 0; holder < list.holder_count; holder++) {
            append_units(&list, plan, holder, place);
        }
    }
    if (plan->router_bias >= 0) {
        list_biases(&list, plan);
    }
    return list;
}

void exports_free(struct export_list *list)
{
    for (int64_t holder = 0; list->holders != NULL && holder < list->holder_count; holder++) {
        plan_free(&list->holders[holder]);
    }
    free(list->holders);
    free(list->exports);
    free(list->tensors);
}

// A part of a weight in a plan. A part is one tensor of the file: q, k and v are parts of the weight "qkv".
struct part_place {
    const struct weight      *weight;
    const struct weight_part *part;    // NULL: the plan does not have it
};

static struct part_place find_part(const struct plan *plan, const struct export *export)
{
    for (int32_t i = 0; i < plan->weight_count; i++) {
        for (int32_t j = 0; j < plan->weights[i].part_count; j++) {
            if (strcmp(plan->weights[i].part[j].name, export->part->name) == 0) {
                return (struct part_place){&plan->weights[i], &plan->weights[i].part[j]};
            }
        }
    }
    return (struct part_place){NULL, NULL};
}

// Reads the elements of a unit that this rank's optimizer updates, as fp32: masters if there are any, else weights. The
// caller frees them.
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
        // Converts from the end, because writing float i overwrites the bf16 values 2 i and 2 i + 1.
        for (int64_t i = tensor->elements - 1; i >= 0; i--) {
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

// Returns whether this rank passes its values of a part to gather_values. Of the ranks with the same values, only the
// first one does. place->part is NULL if another pipeline stage has the part.
static bool provides_part(const struct plan *plan, const struct part_place *place)
{
    const struct weight_part *part = place->part;
    if (part == NULL) {
        return false;
    }
    const struct plan_unit *unit         = &plan->units[place->weight->unit];
    uint32_t                replica_axes = (unit->replica_axes & ~unit->update_axes) | part->replica_axes;
    return !unit->is_copy && mesh_group_index(&plan->mesh, plan->rank, replica_axes) == 0;
}

// Copies those wanted elements that this rank has, and returns whether it has any; the other elements stay zero. own:
// values from read_updated.
static bool copy_own(const struct part_place *place, const struct plan_unit *unit, const float *own,
                     struct plan_slice wanted, float *values)
{
    const struct weight_part *part = place->part;
    bool                      has  = false;
    for (int64_t row = 0; row < part->local_rows; row++) {
        // Index of the row's first element in the whole tensor.
        int64_t global = (part->first_row + row) * part->columns + part->first_column;
        int64_t local  = place->weight->first + part->offset + row * part->local_columns - unit->updated.first;
        int64_t begin  = number_max(number_max(wanted.first - global, 0), -local);
        int64_t end    = number_min(wanted.first + wanted.elements - global, part->local_columns);
        end            = number_min(end, unit->updated.elements - local);
        if (begin < end) {
            has = true;
            memcpy(values + global + begin - wanted.first, own + local + begin,
                   (size_t)(end - begin) * sizeof(*values));
        }
    }
    return has;
}

// Gathers values on all ranks. An element that a rank does not have is +0.0, so all its bits are zero, and at most one
// rank has an element: the OR of the bits over the ranks is its exact value. A sum would turn -0.0 into +0.0. The ranks
// broadcast one after the other, so a rank needs memory for only one message.
static void gather_values(struct comm *comm, bool has_own, float *values, int64_t count)
{
    size_t    bytes   = (size_t)count * sizeof(*values);
    uint32_t *all     = memory_allocate(bytes);
    uint32_t *message = memory_allocate(bytes);
    bool     *has     = comm_gather(comm, &has_own, sizeof(has_own));
    for (int rank = 0; rank < comm->topology.ranks; rank++) {
        if (!has[rank]) {
            continue;
        }
        if (rank == comm->topology.rank) {
            memcpy(message, values, bytes);
        }
        comm->ops->share(comm, message, (int64_t)bytes, rank);
        for (int64_t i = 0; i < count; i++) {
            all[i] |= message[i];
        }
    }
    memcpy(values, all, bytes);
    free(has);
    free(all);
    free(message);
}

// Broadcasts from rank 0 whether it will write another tensor, and returns it on all ranks. Without this, if rank 0
// failed, the other ranks would wait forever to send their parts of the next tensor.
static bool announce_next(struct comm *comm, bool follows)
{
    int32_t answer = follows;
    comm->ops->share(comm, &answer, sizeof(answer), 0);
    return answer != 0;
}

// Writes a part of a running job's weights. Collective: rank 0 passes a writer, the other ranks NULL.
static status append_present(struct safetensors_writer *writer, const struct weight_source *source,
                             const struct export *export)
{
    enum { CHUNK = 1 << 20 };

    struct part_place       place    = find_part(source->plan, export);
    const struct plan_unit *unit     = place.part != NULL ? &source->plan->units[place.weight->unit] : NULL;
    int64_t                 elements = export->part->rows * export->part->columns;
    float                  *values   = memory_allocate(CHUNK * sizeof(*values));
    float                  *own      = provides_part(source->plan, &place) ? read_updated(source, unit) : NULL;
    status                  result   = OK;
    if (writer != NULL) {
        announce_next(source->comm, true);
    }
    for (int64_t first = 0; first < elements; first += CHUNK) {
        int64_t count = elements - first < CHUNK ? elements - first : CHUNK;
        memset(values, 0, (size_t)count * sizeof(*values));
        bool has_own = own != NULL && copy_own(&place, unit, own, (struct plan_slice){first, count}, values);
        gather_values(source->comm, has_own, values, count);
        checkpoint_moved(&source->watch);
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
    struct elements           destination = {.data =
                                                 memory_allocate((size_t)format_bytes(source->format, maximum * part->columns)),
                                             .format = source->format};
    status                    result      = OK;
    for (int64_t row = 0; row < part->rows && !failed(&result); row += maximum) {
        int64_t      rows  = row + maximum < part->rows ? maximum : part->rows - row;
        struct slice slice = {.part = part, .at = {.row = row, .rows = rows, .columns = part->columns}};
        result             = catalogue_fill(source->stored, STATE_WEIGHT, &slice, &destination);
        result             = failed(&result)
                                 ? result
                                 : safetensors_append(writer, destination.data, format_bytes(source->format, rows * part->columns));
    }
    free(destination.data);
    return result;
}

// Writes the router biases, which every rank has. They are zero in initial weights, and if the checkpoint has none.
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

// Returns the name of a tensor's file. Router biases are in the last file.
static const char *name_shard(const struct export_list *list, int32_t tensor, char name[NAME_BYTES])
{
    int32_t shard = tensor < list->count ? list->exports[tensor].shard : list->shards - 1;
    snprintf(name, NAME_BYTES, "model-%05d-of-%05d.safetensors", shard + 1, list->shards);
    return list->shards == 1 ? WEIGHTS_NAME : name;
}

// Writes the file with the exports begin to end - 1.
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

// Checks for space, as if no file were larger than shard_bytes_default. The writer checks the size of each file again.
static status check_space(const struct plan *plan, enum format format, const struct output_folder *folder)
{
    struct export_list list    = exports_list(plan, format, shard_bytes_default);
    int64_t            bytes   = list.total_bytes;
    int64_t            largest = number_min(bytes, shard_bytes_default);
    exports_free(&list);
    return output_check_space(folder->descriptor, folder->path, bytes, largest);
}

status checkpoint_check_space(const struct plan *plan, const struct output_folder *folder)
{
    return check_space(plan, FORMAT_F32, folder);
}

// config.json is written last, so a folder that has it is complete.
status checkpoint_write_folder(const struct weight_source *source, const struct output_folder *folder,
                               int64_t shard_bytes)
{
    struct export_list list   = exports_list(source->plan, source->format, shard_bytes);
    status             result = write_shards(source, &list, folder);
    if (!failed(&result) && list.shards > 1) {
        result = write_index(&list, folder);
    }
    exports_free(&list);
    TRY(result);
    json_t *config = describe_model(&source->plan->model, source->plan->train.sequence, source->format);
    return write_json(config, folder, CONFIG_NAME);
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
                        const struct output_folder *folder, const struct checkpoint_watch *watch)
{
    struct weight_source source = {.plan = plan, .step = step, .comm = comm, .watch = *watch};
    if (comm->topology.rank == 0) {
        status result = checkpoint_write_folder(&source, folder, shard_bytes_default);
        announce_next(comm, false);
        return result;
    }
    struct export_list list = exports_list(plan, FORMAT_F32, shard_bytes_default);
    for (int32_t i = 0; announce_next(comm, false); i++) {
        append_present(NULL, &source, &list.exports[i]);
    }
    exports_free(&list);
    return OK;
}
