// SPDX-License-Identifier: MIT
// Loads a checkpoint into the tensors of this rank. The checkpoint may have been saved with another layout.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalogue.h"
#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/format.h"

static void *find_element(const struct elements *elements, int64_t index)
{
    return (char *)elements->data + format_bytes(elements->format, index - elements->first);
}

static void clear_elements(const struct elements *elements, int64_t first, int64_t end)
{
    memset(find_element(elements, first), 0, (size_t)format_bytes(elements->format, end - first));
}

// Copies `count` elements. to_index and from_index: index of the first one.
static void copy_elements(const struct elements *to, int64_t to_index, const struct elements *from, int64_t from_index,
                          int64_t count)
{
    if (to->format == from->format) {
        memcpy(find_element(to, to_index), find_element(from, from_index), (size_t)format_bytes(to->format, count));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        element_write(to->format, to->data, to_index - to->first + i,
                      element_read(from->format, from->data, from_index - from->first + i));
    }
}

// Copies the elements that a stored slice and a wanted slice have in common.
static status fill_common(struct catalogue *catalogue, const struct stored *stored, const struct slice *wanted,
                          const struct elements *destination)
{
    struct rectangle common = rectangle_common(&stored->at, &wanted->at), at = common;
    const void      *data;
    if (common.rows == 0 || common.columns == 0) {
        return OK;
    }
    if (stored->entry.format == destination->format && memcmp(&stored->at, &wanted->at, sizeof(at)) == 0) {
        return catalogue_read_into(catalogue, stored, &at, find_element(destination, wanted->first));
    }
    TRY(catalogue_read(catalogue, stored, &at, &data));
    struct elements read = {.data = (void *)data, .format = stored->entry.format};
    for (int64_t row = common.row; row < common.row + common.rows; row++) {
        int64_t to   = wanted->first + (row - wanted->at.row) * wanted->at.columns + common.column - wanted->at.column;
        int64_t from = (row - at.row) * at.columns + common.column - at.column;
        copy_elements(destination, to, &read, from, common.columns);
    }
    return OK;
}

// Finds the stored tensor from which to load a state. Weights are loaded from weights of the type `format`, else from
// masters, else from weights of another type; masters from masters, else from weights; moments only from moments.
static struct stored_tensor find_source(const struct catalogue *catalogue, enum state state, enum format format,
                                        const char *name)
{
    struct stored_tensor own = catalogue_find(catalogue, state, name);
    if (state != STATE_WEIGHT && state != STATE_MASTER) {
        return own;
    }
    struct stored_tensor other = catalogue_find(catalogue, state == STATE_WEIGHT ? STATE_MASTER : STATE_WEIGHT, name);
    bool is_own = own.count > 0 && (state == STATE_MASTER || other.count == 0 || own.slices[0].entry.format == format);
    return is_own ? own : other;
}

status catalogue_fill(struct catalogue *catalogue, enum state state, const struct slice *wanted,
                      const struct elements *destination)
{
    struct stored_tensor source = find_source(catalogue, state, destination->format, wanted->part->name);
    if (source.count == 0) {    // moments are zero before the first step
        clear_elements(destination, wanted->first, wanted->first + wanted->at.rows * wanted->at.columns);
    }
    for (int64_t i = 0; i < source.count; i++) {
        TRY(fill_common(catalogue, &source.slices[i], wanted, destination));
    }
    return OK;
}

static status load_state(struct catalogue *catalogue, const struct plan *plan, const struct plan_unit *unit,
                         enum state state, struct step *step)
{
    int32_t           index       = state_tensor(unit, state);
    struct plan_slice range       = state_range(unit, state);
    struct slice_list list        = slices_of(plan, unit, range);
    struct elements   destination = {.format = plan->tensors[index].format, .first = range.first};
    status            result      = OK;
    int64_t           done        = range.first;
    void             *own         = step_host_memory(step, index);
    if (own == NULL) {
        catalogue->destination = memory_resize(catalogue->destination, (size_t)plan->tensors[index].bytes);
    }
    destination.data = own != NULL ? own : catalogue->destination;
    for (int64_t i = 0; i < list.count && !failed(&result); i++) {
        const struct slice *slice = &list.items[i];
        clear_elements(&destination, done, slice->first);    // padding between two slices
        result = catalogue_fill(catalogue, state, slice, &destination);
        done   = slice->first + slice->at.rows * slice->at.columns;
    }
    clear_elements(&destination, done, range.first + range.elements);
    if (own == NULL) {
        step_write(step, index, destination.data);
    }
    free(list.items);
    return result;
}

// Reads a tensor that must be a single fp32 slice of `bytes` bytes. If it is not, returns an error with the text
// `problem`.
static status read_one(struct catalogue *catalogue, const char *name, int64_t bytes, const char *problem,
                       const void **data)
{
    struct stored_tensor stored = catalogue_find(catalogue, STATE_WEIGHT, name);
    if (stored.count != 1 || stored.slices[0].entry.format != FORMAT_F32 || stored.slices[0].entry.bytes != bytes) {
        return catalogue_refuse(catalogue, name, problem);
    }
    struct rectangle at = stored.slices[0].at;
    return catalogue_read(catalogue, &stored.slices[0], &at, data);
}

static bool has_tensor(const struct catalogue *catalogue, const char *name)
{
    return catalogue_find(catalogue, STATE_WEIGHT, name).count > 0;
}

// Loads the state of delayed FP8 scaling, which is the same on every rank. If the checkpoint has none, the job keeps
// its initial scales.
static status load_scaling(struct catalogue *catalogue, const struct plan *plan, struct step *step)
{
    struct scaling_tensor tensors[SCALING_TENSORS];
    scaling_list(plan, tensors);
    for (int i = 0; i < SCALING_TENSORS && plan->scaling.history >= 0; i++) {
        const void *data;
        if (!has_tensor(catalogue, tensors[i].name)) {
            return OK;
        }
        TRY(read_one(catalogue, tensors[i].name, plan->tensors[tensors[i].tensor].bytes,
                     "has a different size in this job: use the same precision.fp8_history and precision.fp8_gemms",
                     &data));
        step_write(step, tensors[i].tensor, data);
    }
    return OK;
}

static status read_bias(struct catalogue *catalogue, const char *name, float *values, int64_t bytes)
{
    const void *data;
    TRY(read_one(catalogue, name, bytes, "is not fp32 with the layers and experts of this job", &data));
    memcpy(values, data, (size_t)bytes);
    return OK;
}

status catalogue_read_biases(struct catalogue *catalogue, const struct plan *plan, float *values)
{
    const struct tensor *tensor = &plan->tensors[plan->router_bias];
    char                 name[SAFETENSORS_NAME_BYTES];
    int32_t              count = exports_name_bias(plan, 0, name);
    if (has_tensor(catalogue, ROUTER_BIAS)) {
        return read_bias(catalogue, ROUTER_BIAS, values, tensor->bytes);
    }
    if (!has_tensor(catalogue, name)) {
        memset(values, 0, (size_t)tensor->bytes);
        return OK;
    }
    for (int32_t i = 0; i < count; i++) {
        exports_name_bias(plan, i, name);
        TRY(read_bias(catalogue, name, values + i * tensor->dim[1], tensor->bytes / count));
    }
    return OK;
}

static status load_biases(struct catalogue *catalogue, const struct plan *plan, struct step *step)
{
    char name[SAFETENSORS_NAME_BYTES];
    exports_name_bias(plan, 0, name);
    bool is_own = has_tensor(catalogue, ROUTER_BIAS);
    if (plan->router_bias < 0) {
        return is_own || has_tensor(catalogue, name)
                   ? catalogue_refuse(catalogue, is_own ? ROUTER_BIAS : name,
                                      "is in the checkpoint, but the job's model has none: set model.router_bias_rate")
                   : OK;
    }
    float *values = memory_allocate((size_t)plan->tensors[plan->router_bias].bytes);
    status result = catalogue_read_biases(catalogue, plan, values);
    if (!failed(&result)) {
        step_write(step, plan->router_bias, values);
    }
    free(values);
    return result;
}

// Context of read_weight: the FSDP unit whose stored weights it reads.
struct stored_unit {
    struct catalogue       *catalogue;
    const struct plan      *plan;
    const struct plan_unit *unit;
};

static status read_weight(void *context, const struct weight *weight, float *values)
{
    const struct stored_unit *stored      = context;
    struct plan_slice         all         = {weight->first, weight->rows * weight->columns};
    struct slice_list         list        = slices_of(stored->plan, stored->unit, all);
    struct elements           destination = {.format = FORMAT_F32, .first = all.first, .data = values};
    status                    result      = OK;
    memset(values, 0, (size_t)all.elements * sizeof(*values));    // padding stays zero
    for (int64_t i = 0; i < list.count && !failed(&result); i++) {
        result = catalogue_fill(stored->catalogue, STATE_WEIGHT, &list.items[i], &destination);
    }
    free(list.items);
    return result;
}

static status load_unit(struct catalogue *catalogue, const struct plan *plan, const struct plan_unit *unit,
                        struct step *step)
{
    bool is_adapters = model_is_frozen(&plan->model) && !unit->is_frozen;
    if (is_adapters && !catalogue_has(catalogue, plan->weights[unit->first_weight].part[0].name)) {
        return OK;    // the adapters keep their initial values
    }
    if (unit->is_low_precision && unit->is_frozen) {
        struct stored_unit   stored = {catalogue, plan, unit};
        struct weight_reader reader = {read_weight, &stored};
        return data_store_unit(step, plan, unit, &reader);
    }
    for (enum state state = 0; state < STATE_COUNT; state++) {
        if (state_tensor(unit, state) >= 0) {
            TRY(load_state(catalogue, plan, unit, state, step));
        }
    }
    return OK;
}

status checkpoint_load(struct catalogue *catalogue, const struct plan *plan, struct step *step,
                       const struct checkpoint_watch *watch, struct checkpoint_cost *cost)
{
    double begun     = clock_seconds();
    status result    = OK;
    catalogue->watch = *watch;
    for (int32_t i = 0; i < plan->unit_count && !failed(&result); i++) {
        result = load_unit(catalogue, plan, &plan->units[i], step);
    }
    result = failed(&result) ? result : load_scaling(catalogue, plan, step);
    result = failed(&result) ? result : load_biases(catalogue, plan, step);
    catalogue_end_reading(catalogue);    // frees its buffers before steps run
    checkpoint_enter(watch, NULL);
    double seconds = clock_seconds() - begun;
    *cost          = (struct checkpoint_cost){seconds, seconds, catalogue->read_bytes};
    return result;
}

status checkpoint_open(struct catalogue **opened, const char *path, const struct plan *plan, bool verifies)
{
    *opened       = memory_allocate(sizeof(**opened));
    status result = catalogue_open(*opened, path, verifies);
    result        = failed(&result) ? result : catalogue_check(*opened, plan);
    if (failed(&result)) {
        checkpoint_close(*opened);
        *opened = NULL;
    }
    return result;
}

enum { BROADCAST_BYTES = 1 << 30 };    // of one broadcast, because MPI counts bytes in an int

static void *share_items(struct comm *comm, void *items, size_t bytes)
{
    if (comm->topology.rank != 0) {
        items = memory_allocate(bytes);
    }
    for (size_t done = 0; done < bytes; done += BROADCAST_BYTES) {
        size_t part = bytes - done < BROADCAST_BYTES ? bytes - done : BROADCAST_BYTES;
        comm->ops->share(comm, (char *)items + done, (int64_t)part, 0);
    }
    return items;
}

// Broadcasts the catalogue from rank 0. If each of a thousand ranks read every header itself, they would open a million
// files.
static void share_catalogue(struct catalogue *catalogue, struct comm *comm)
{
    struct catalogue told = *catalogue;
    comm->ops->share(comm, &told, sizeof(told), 0);
    if (comm->topology.rank != 0) {    // pointers and file descriptors of rank 0 are invalid here
        *catalogue                 = (struct catalogue){.is_ours    = told.is_ours,
                                                        .verifies   = told.verifies,
                                                        .count      = told.count,
                                                        .file_count = told.file_count,
                                                        .open_file  = -1};
        catalogue->manifest.origin = told.manifest.origin;
        memcpy(catalogue->path, told.path, sizeof(told.path));
    }
    catalogue->files  = share_items(comm, catalogue->files, (size_t)told.file_count * sizeof(*told.files));
    catalogue->slices = share_items(comm, catalogue->slices, (size_t)told.count * sizeof(*told.slices));
}

status checkpoint_open_shared(struct catalogue **opened, const char *path, const struct plan *plan, bool verifies,
                              struct comm *comm)
{
    status own = OK;
    *opened    = NULL;
    if (comm->topology.rank == 0) {
        own = checkpoint_open(opened, path, plan, verifies);
    }
    TRY(comm_agree(comm, own));
    if (comm->topology.rank != 0) {
        *opened = memory_allocate(sizeof(**opened));
    }
    share_catalogue(*opened, comm);
    if (access((*opened)->path, R_OK | X_OK) != 0) {
        own = fail_as(EXIT_CHECKPOINT,
                      "%.900s: %s, but rank 0 has opened it: all ranks must see the same checkpoint folder",
                      (*opened)->path, strerror(errno));
    }
    return comm_agree(comm, own);
}

void checkpoint_close(struct catalogue *opened)
{
    if (opened != NULL) {
        catalogue_close(opened);
        free(opened);
    }
}

const struct checkpoint_origin *checkpoint_origin(const struct catalogue *opened)
{
    return &opened->manifest.origin;
}
