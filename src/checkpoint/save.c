// SPDX-License-Identifier: MIT
// Saves what each rank alone has into a file of its own; rank 0 lists the files when all of them are on the disk.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "folders.h"
#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "manifest.h"
#include "slices.h"

// What a rank writes: runs of its tensors, under their names.
struct shard {
    struct safetensor *entries;    // [count]
    struct shard_run {
        int32_t tensor;
        int64_t first;    // element of it
    } * runs;             // beside them
    int32_t count;
    int64_t bytes;
};

static void shard_free(struct shard *shard)
{
    free(shard->entries);
    free(shard->runs);
}

static struct safetensor *append(struct shard *shard, int32_t tensor, int64_t first)
{
    if ((shard->count & (shard->count - 1)) == 0) {    // full at each power of two
        size_t room    = shard->count == 0 ? 1 : 2 * (size_t)shard->count;
        shard->entries = memory_resize(shard->entries, room * sizeof(*shard->entries));
        shard->runs    = memory_resize(shard->runs, room * sizeof(*shard->runs));
    }
    struct safetensor *entry    = &shard->entries[shard->count];
    shard->runs[shard->count++] = (struct shard_run){tensor, first};
    *entry                      = (struct safetensor){.name = ""};
    return entry;
}

static void append_slice(struct shard *shard, const struct plan *plan, const struct plan_unit *unit, enum state state,
                         const struct slice *slice)
{
    int32_t            tensor   = state_tensor(unit, state);
    struct safetensor *entry    = append(shard, tensor, slice->first - state_range(unit, state).first);
    entry->format               = plan->tensors[tensor].format;
    entry->dims                 = slice->part->is_vector ? 1 : 2;
    entry->dim[0]               = slice->at.rows;
    entry->dim[entry->dims - 1] = slice->at.columns;
    slice_name(slice, state, entry->name);
    shard->bytes += format_bytes(entry->format, slice->at.rows * slice->at.columns);
}

static void append_unit(struct shard *shard, const struct plan *plan, const struct plan_unit *unit)
{
    struct slice_list list = slices_owned(plan, unit);
    for (enum state state = 0; state < STATE_COUNT; state++) {
        for (int64_t i = 0; i < list.count && state_tensor(unit, state) >= 0; i++) {
            append_slice(shard, plan, unit, state, &list.items[i]);
        }
    }
    free(list.items);
}

// Alike on all ranks, but for a step's magnitudes, of which all ranks' largest count.
static void append_scaling(struct shard *shard, const struct plan *plan)
{
    struct scaling_tensor tensors[SCALING_TENSORS];
    scaling_list(plan, tensors);
    for (int i = 0; i < SCALING_TENSORS; i++) {
        const struct tensor *tensor = &plan->tensors[tensors[i].tensor];
        struct safetensor   *entry  = append(shard, tensors[i].tensor, 0);
        *entry = (struct safetensor){.format = tensor->format, .dims = 1, .dim = {tensor->elements}};
        snprintf(entry->name, sizeof(entry->name), "%s[0:%" PRId64 "]", tensors[i].name, tensor->elements);
        shard->bytes += tensor->bytes;
    }
}

static struct shard describe_shard(const struct plan *plan)
{
    struct shard shard = {.count = 0};
    for (int32_t i = 0; i < plan->unit_count; i++) {
        append_unit(&shard, plan, &plan->units[i]);
    }
    if (plan->rank == 0 && plan->scaling.history >= 0) {
        append_scaling(&shard, plan);
    }
    return shard;
}

int64_t checkpoint_bytes(const struct plan *plan)
{
    struct shard shard = describe_shard(plan);
    int64_t      bytes = shard.bytes;
    shard_free(&shard);
    return bytes;
}

int64_t checkpoint_whole_bytes(const struct plan *plan)
{
    const struct precision *precision = &plan->precision;
    struct export_list      list      = exports_list(plan, FORMAT_F32, INT64_MAX);
    int64_t                 bytes     = 0;
    for (int32_t i = 0; i < list.count; i++) {
        const struct export *export = &list.exports[i];
        int64_t elements            = export->part->rows * export->part->columns;
        bytes += export->is_narrow ? 0 : format_bytes(precision->weight, elements);
        bytes += precision->has_master ? format_bytes(FORMAT_F32, elements) : 0;
        bytes += 2 * format_bytes(precision->moment, elements);
    }
    exports_free(&list);
    if (plan->scaling.history >= 0) {
        bytes += 3 * plan->tensors[plan->scaling.scales].bytes + plan->tensors[plan->scaling.history].bytes;
    }
    return bytes;
}

// What the ranks know of a save.
struct save {
    const struct plan              *plan;
    const struct step              *step;
    struct comm                    *comm;
    const struct checkpoint_target *target;
    const struct checkpoint_origin *origin;
    float                          *magnitudes;    // of all ranks; NULL: there are none
    struct shard                    shard;
    struct output_folder            folder;
};

// Collective.
static void gather_magnitudes(struct save *save)
{
    int32_t tensor = save->plan->scaling.history >= 0 ? save->plan->scaling.amaxes : -1;
    if (tensor < 0) {
        return;
    }
    int64_t slots = save->plan->tensors[tensor].elements, bytes = save->plan->tensors[tensor].bytes;
    float  *all      = memory_allocate((size_t)(bytes * save->comm->place.ranks));
    save->magnitudes = memory_allocate((size_t)bytes);
    step_read(save->step, tensor, save->magnitudes);
    save->comm->ops->gather_all(save->comm, save->magnitudes, all, bytes);
    for (int64_t i = 0; i < slots * save->comm->place.ranks; i++) {
        save->magnitudes[i % slots] = fmaxf(save->magnitudes[i % slots], all[i]);
    }
    free(all);
}

// The runs of a tensor follow one another: it is read once.
static status append_data(const struct save *save, struct safetensors_writer *writer)
{
    const struct shard *shard  = &save->shard;
    char               *data   = NULL;
    status              result = OK;
    for (int32_t i = 0; i < shard->count && !failed(&result); i++) {
        int32_t index = shard->runs[i].tensor;
        if (i == 0 || index != shard->runs[i - 1].tensor) {
            data = memory_resize(data, (size_t)save->plan->tensors[index].bytes);
            step_read(save->step, index, data);
        }
        bool        is_gathered = save->magnitudes != NULL && index == save->plan->scaling.amaxes;
        const char *source      = is_gathered ? (const char *)save->magnitudes : data;
        result = safetensors_append(writer, source + format_bytes(shard->entries[i].format, shard->runs[i].first),
                                    shard->entries[i].bytes);
    }
    free(data);
    return result;
}

static status write_shard(struct save *save, struct manifest_file *file)
{
    struct safetensors_writer writer;
    const struct comm_place  *place = &save->comm->place;
    snprintf(file->name, sizeof(file->name), SHARD_NAME, place->rank, place->ranks);
    TRY(safetensors_create_in(&writer, &save->folder, file->name, save->shard.entries, save->shard.count));
    status result = append_data(save, &writer);
    if (!failed(&result)) {
        result = safetensors_finish(&writer);
    }
    safetensors_abandon(&writer);
    file->bytes = writer.file_bytes;
    checksum_print(writer.header_checksum, file->checksum);
    return result;
}

static status agree(const struct save *save, status own)
{
    int first;
    return comm_find_failed(save->comm, own, &first);
}

// Rank 0 makes the folder, where there is room for what all ranks write.
static status open_folder(struct save *save, int64_t whole_bytes)
{
    status own = OK;
    if (save->comm->place.rank == 0) {
        own = folders_claim(&save->folder, save->target->folder, save->origin->step);
        if (!failed(&own)) {
            own = output_check_space(save->folder.descriptor, save->folder.path, whole_bytes, save->shard.bytes);
        }
    }
    TRY(agree(save, own));
    if (save->comm->place.rank != 0) {
        own = folders_enter(&save->folder, save->target->folder, save->origin->step);
    }
    return agree(save, own);
}

static status describe_config(const struct save *save, struct manifest_file *file)
{
    json_t *json = describe_model(&save->plan->model, save->plan->train.sequence, save->plan->precision.weight);
    char   *text = json_text(json);
    snprintf(file->name, sizeof(file->name), CONFIG_NAME);
    file->bytes = (int64_t)strlen(text);
    checksum_print(XXH3_64bits(text, strlen(text)), file->checksum);
    status result = output_write(&save->folder, file->name, text, strlen(text));
    free(text);
    return result;
}

// With the manifest the checkpoint is whole; older ones may go then.
static status complete(const struct save *save, const struct manifest_file *shards)
{
    int             ranks = save->comm->place.ranks;
    struct manifest manifest;
    manifest_init(&manifest, save->plan, save->origin, ranks + 1);
    memcpy(manifest.files, shards, (size_t)ranks * sizeof(*shards));
    status result = describe_config(save, &manifest.files[ranks]);
    if (!failed(&result)) {
        result = manifest_write(&manifest, &save->folder);
    }
    manifest_free(&manifest);
    TRY(result);
    return save->target->keep > 0 ? folders_prune(save->target->folder, save->target->keep) : OK;
}

static status save_shards(struct save *save, int64_t whole_bytes)
{
    struct manifest_file  own    = {.bytes = 0};
    struct manifest_file *shards = memory_allocate((size_t)save->comm->place.ranks * sizeof(*shards));
    status                result = open_folder(save, whole_bytes);
    if (!failed(&result)) {
        result = agree(save, write_shard(save, &own));
    }
    if (!failed(&result)) {
        save->comm->ops->gather_all(save->comm, &own, shards, sizeof(own));
        result = agree(save, save->comm->place.rank == 0 ? complete(save, shards) : OK);
    }
    free(shards);
    return result;
}

static int64_t sum_bytes(struct comm *comm, int64_t own)
{
    int64_t *all = memory_allocate((size_t)comm->place.ranks * sizeof(*all)), sum = 0;
    comm->ops->gather_all(comm, &own, all, sizeof(own));
    for (int rank = 0; rank < comm->place.ranks; rank++) {
        sum += all[rank];
    }
    free(all);
    return sum;
}

status checkpoint_save(const struct plan *plan, const struct step *step, struct comm *comm,
                       const struct checkpoint_target *target, const struct checkpoint_origin *origin,
                       struct checkpoint_cost *cost)
{
    double      began = clock_seconds();
    struct save save  = {.plan = plan, .step = step, .comm = comm, .target = target, .origin = origin};
    save.shard        = describe_shard(plan);
    gather_magnitudes(&save);
    status result = save_shards(&save, sum_bytes(comm, save.shard.bytes));
    *cost         = (struct checkpoint_cost){clock_seconds() - began, save.shard.bytes};
    output_close_folder(&save.folder);
    shard_free(&save.shard);
    free(save.magnitudes);
    return result;
}
