// SPDX-License-Identifier: MIT
// Brings a checkpoint into a rank's tensors, whatever layout it was saved under.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalogue.h"
#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/element.h"

static status open_data(struct catalogue *catalogue, int32_t file)
{
    if (catalogue->open_file == file) {
        return OK;
    }
    if (catalogue->open_file >= 0) {
        close(catalogue->descriptor);
    }
    char path[1200];
    snprintf(path, sizeof(path), "%s/%s", catalogue->path, catalogue->files[file]);
    catalogue->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    catalogue->open_file  = catalogue->descriptor < 0 ? -1 : file;
    return catalogue->descriptor >= 0 ? OK : fail_as(EXIT_CHECKPOINT, "%.900s: %s", path, strerror(errno));
}

static status read_at(struct catalogue *catalogue, const struct stored *stored, void *data, int64_t bytes,
                      int64_t offset)
{
    for (int64_t done = 0; done < bytes;) {
        ssize_t count = pread(catalogue->descriptor, (char *)data + done, (size_t)(bytes - done), offset + done);
        if (count <= 0 && errno != EINTR) {
            return catalogue_refuse(catalogue, stored->entry.name,
                                    count == 0 ? "the file became shorter" : strerror(errno));
        }
        done += count > 0 ? count : 0;
    }
    catalogue->read_bytes += bytes;
    return OK;
}

// What a read brings: all of a slice that has to be verified, else the rectangle that is wanted.
status catalogue_read(struct catalogue *catalogue, const struct stored *stored, struct rectangle *at, const void **data)
{
    enum format             format = stored->entry.format;
    const struct rectangle *from   = &stored->at;
    if (stored->entry.has_checksum && catalogue->verifies) {
        *at = *from;
    }
    struct safetensor read = stored->entry;
    read.bytes             = format_bytes(format, at->rows * at->columns);
    read.has_checksum      = read.has_checksum && catalogue->verifies;
    if (read.has_checksum && catalogue->last == stored) {
        *data = catalogue->data;
        return OK;
    }
    TRY(open_data(catalogue, stored->file));
    catalogue->last   = stored;
    catalogue->data   = memory_resize(catalogue->data, (size_t)read.bytes);
    bool    is_run    = at->columns == from->columns;
    int64_t runs      = is_run ? 1 : at->rows;
    int64_t run_bytes = read.bytes / runs;
    for (int64_t run = 0; run < runs; run++) {
        int64_t first = (at->row - from->row + run) * from->columns + at->column - from->column;
        TRY(read_at(catalogue, stored, (char *)catalogue->data + run * run_bytes, run_bytes,
                    stored->begin + format_bytes(format, first)));
    }
    char path[1200];
    snprintf(path, sizeof(path), "%s/%s", catalogue->path, catalogue->files[stored->file]);
    *data = catalogue->data;
    return checksums_verify(path, &read, catalogue->data);
}

static void copy_elements(enum format to, void *target, int64_t place, enum format from, const void *source,
                          int64_t first, int64_t count)
{
    if (to == from) {
        memcpy((char *)target + format_bytes(to, place), (const char *)source + format_bytes(from, first),
               (size_t)format_bytes(to, count));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        element_write(to, target, place + i, element_read(from, source, first + i));
    }
}

// What a stored slice has of a wanted one.
static status fill_common(struct catalogue *catalogue, const struct stored *stored, const struct slice *wanted,
                          const struct filled *filled)
{
    struct rectangle common = rectangle_common(&stored->at, &wanted->at), at = common;
    const void      *data;
    if (common.rows == 0 || common.columns == 0) {
        return OK;
    }
    TRY(catalogue_read(catalogue, stored, &at, &data));
    for (int64_t row = common.row; row < common.row + common.rows; row++) {
        int64_t place = wanted->first - filled->first + (row - wanted->at.row) * wanted->at.columns + common.column -
                        wanted->at.column;
        int64_t first = (row - at.row) * at.columns + common.column - at.column;
        copy_elements(filled->format, filled->data, place, stored->entry.format, data, first, common.columns);
    }
    return OK;
}

// Of which state a tensor is made. Weights come as they were saved where their type is the same, else from their
// masters; masters that there are none of are the weights. Moments that there are none of are 0, as before a first
// step.
static struct stored_tensor source_of(const struct catalogue *catalogue, enum state state, enum format format,
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
                      const struct filled *filled)
{
    struct stored_tensor source = source_of(catalogue, state, filled->format, wanted->part->name);
    for (int64_t i = 0; i < source.count; i++) {
        TRY(fill_common(catalogue, &source.slices[i], wanted, filled));
    }
    return OK;
}

static status load_state(struct catalogue *catalogue, const struct plan *plan, const struct plan_unit *unit,
                         enum state state, struct step *step)
{
    int32_t           index  = state_tensor(unit, state);
    struct plan_slice range  = state_range(unit, state);
    struct slice_list list   = slices_of(plan, unit, range);
    struct filled     filled = {.data   = memory_allocate((size_t)plan->tensors[index].bytes),
                                .format = plan->tensors[index].format,
                                .first  = range.first};
    status            result = OK;
    for (int64_t i = 0; i < list.count && !failed(&result); i++) {
        result = catalogue_fill(catalogue, state, &list.items[i], &filled);
    }
    step_write(step, index, filled.data);
    free(filled.data);
    free(list.items);
    return result;
}

// What brings tensors into the range of FP8, all of it on every rank; a checkpoint of a run without begins anew.
static status load_scaling(struct catalogue *catalogue, const struct plan *plan, struct step *step)
{
    struct scaling_tensor tensors[SCALING_TENSORS];
    scaling_list(plan, tensors);
    for (int i = 0; i < SCALING_TENSORS && plan->scaling.history >= 0; i++) {
        const struct tensor *tensor = &plan->tensors[tensors[i].tensor];
        struct stored_tensor stored = catalogue_find(catalogue, STATE_WEIGHT, tensors[i].name);
        if (stored.count == 0) {
            return OK;
        }
        if (stored.count != 1 || stored.slices[0].entry.format != FORMAT_F32 ||
            stored.slices[0].entry.bytes != tensor->bytes) {
            return catalogue_refuse(
                catalogue, tensors[i].name,
                "has another size than the job's: load it with the same precision.magnitude_history, "
                "and linears in FP8");
        }
        struct rectangle at = stored.slices[0].at;
        const void      *data;
        TRY(catalogue_read(catalogue, &stored.slices[0], &at, &data));
        step_write(step, tensors[i].tensor, data);
    }
    return OK;
}

static status load_unit(struct catalogue *catalogue, const struct plan *plan, const struct plan_unit *unit,
                        struct step *step)
{
    for (enum state state = 0; state < STATE_COUNT; state++) {
        if (state_tensor(unit, state) >= 0) {
            TRY(load_state(catalogue, plan, unit, state, step));
        }
    }
    return OK;
}

status checkpoint_load(struct catalogue *catalogue, const struct plan *plan, struct step *step,
                       struct checkpoint_cost *cost)
{
    double begun  = clock_seconds();
    status result = OK;
    for (int32_t i = 0; i < plan->unit_count && !failed(&result); i++) {
        result = load_unit(catalogue, plan, &plan->units[i], step);
    }
    if (!failed(&result)) {
        result = load_scaling(catalogue, plan, step);
    }
    double seconds = clock_seconds() - begun;
    *cost          = (struct checkpoint_cost){seconds, seconds, catalogue->read_bytes};
    return result;
}

status checkpoint_open(struct catalogue **opened, const char *path, const struct plan *plan, bool verifies)
{
    *opened       = memory_allocate(sizeof(**opened));
    status result = catalogue_open(*opened, path, verifies);
    if (!failed(&result)) {
        result = catalogue_check(*opened, plan);
    }
    if (failed(&result)) {
        checkpoint_close(*opened);
        *opened = NULL;
    }
    return result;
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
