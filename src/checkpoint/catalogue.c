// SPDX-License-Identifier: MIT
// Opens a checkpoint: finds its folder, reads the header of every safetensors file, and sorts the slices by tensor. A
// slice is a rectangle of a tensor.
#include "catalogue.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/json.h"
#include "gswbench/text.h"

status catalogue_refuse(const struct catalogue *catalogue, const char *tensor, const char *problem)
{
    return safetensors_refuse(catalogue->path, tensor, problem);
}

const char *catalogue_join(const char *folder, const char *name, char path[CATALOGUE_PATH_BYTES])
{
    snprintf(path, CATALOGUE_PATH_BYTES, "%s/%.150s", folder, name);
    return path;
}

static bool has_file(const char *folder, const char *name)
{
    char path[CATALOGUE_PATH_BYTES];
    return access(catalogue_join(folder, name, path), F_OK) == 0;
}

// Finds the folder of the checkpoint. A path with a manifest or config.json is the checkpoint itself. Any other path is
// a folder of checkpoints, and the newest complete one is opened.
static status find_folder(struct catalogue *catalogue, const char *path)
{
    int64_t step = folders_newest(path);
    if (has_file(path, MANIFEST_NAME) || has_file(path, CONFIG_NAME) || step < 0) {
        snprintf(catalogue->path, sizeof(catalogue->path), "%s", path);
    } else {
        snprintf(catalogue->path, sizeof(catalogue->path), "%s/" FOLDER_NAME, path, step);
    }
    catalogue->is_ours = has_file(catalogue->path, MANIFEST_NAME);
    return catalogue->is_ours || has_file(catalogue->path, CONFIG_NAME)
               ? OK
               : fail_as(EXIT_CHECKPOINT,
                         "%.900s: has neither the %s of a complete checkpoint nor the %s of Hugging Face weights", path,
                         MANIFEST_NAME, CONFIG_NAME);
}

static status add_file(struct catalogue *catalogue, const char *name)
{
    catalogue->files = memory_resize(catalogue->files, (size_t)(catalogue->file_count + 1) * sizeof(*catalogue->files));
    FAIL_AS_IF(!text_copy(catalogue->files[catalogue->file_count], sizeof(*catalogue->files), name), EXIT_CHECKPOINT,
               "%.600s: file '%.100s': the name is too long", catalogue->path, name);
    catalogue->file_count++;
    return OK;
}

// Sets the tensor and the rectangle of a slice from its entry in the header of the file. Returns NULL, or the error
// in the entry.
static const char *describe(struct stored *stored, bool is_ours)
{
    const struct safetensor *entry = &stored->entry;
    int32_t                  dims;
    if (entry->dims < 1 || entry->dims > 2 || entry->bytes == 0) {
        return "weights have one or two dimensions, and are not empty";
    }
    int64_t rows = entry->dims == 2 ? entry->dim[0] : 1, columns = entry->dim[entry->dims - 1];
    if (!is_ours) {
        text_copy(stored->tensor, sizeof(stored->tensor), entry->name);
        stored->at = (struct rectangle){.rows = rows, .columns = columns};
        return NULL;
    }
    if (!slice_parse(entry->name, stored->tensor, &stored->at, &dims)) {
        return "is not named as a slice is: NAME[FIRST:END], or NAME[FIRST:END,FIRST:END]";
    }
    return dims == entry->dims && stored->at.rows == rows && stored->at.columns == columns
               ? NULL
               : "its name and its shape are not of the same size";
}

static status add_slices(struct catalogue *catalogue, const struct safetensors_reader *reader, int32_t file)
{
    size_t count      = (size_t)(catalogue->count + reader->count);
    catalogue->slices = memory_resize(catalogue->slices, count * sizeof(*catalogue->slices));
    for (int32_t i = 0; i < reader->count; i++) {
        struct stored *stored = &catalogue->slices[catalogue->count++];
        *stored               = (struct stored){.entry = reader->tensors[i], .file = file};
        stored->begin         = reader->data_start + stored->entry.begin;
        const char *problem   = describe(stored, catalogue->is_ours);
        if (problem != NULL) {
            return safetensors_refuse(reader->path, stored->entry.name, problem);
        }
    }
    return OK;
}

// Compares a file with its entry in the manifest (expected); NULL: the checkpoint has no manifest.
static status check_file(const struct safetensors_reader *reader, const struct manifest_file *expected)
{
    char checksum[CHECKSUM_BYTES];
    if (expected == NULL) {
        return OK;
    }
    checksum_print(reader->header_checksum, checksum);
    FAIL_AS_IF(reader->file_bytes != expected->bytes, EXIT_CHECKPOINT,
               "%s: %" PRId64 " bytes, but the manifest has %" PRId64, reader->path, reader->file_bytes,
               expected->bytes);
    return strcmp(checksum, expected->checksum) == 0
               ? OK
               : fail_as(EXIT_CHECKPOINT, "%s: is another file than the manifest names: its header differs",
                         reader->path);
}

static status open_shard(struct catalogue *catalogue, const char *name, const struct manifest_file *expected)
{
    char                      path[CATALOGUE_PATH_BYTES];
    struct safetensors_reader reader;
    TRY(safetensors_open(&reader, catalogue_join(catalogue->path, name, path)));
    status result = check_file(&reader, expected);
    result        = failed(&result) ? result : add_file(catalogue, name);
    result        = failed(&result) ? result : add_slices(catalogue, &reader, catalogue->file_count - 1);
    safetensors_close(&reader);
    return result;
}

status catalogue_load_json(const struct catalogue *catalogue, const char *name, json_t **json,
                           struct manifest_file *found)
{
    char         path[CATALOGUE_PATH_BYTES], *text;
    size_t       bytes;
    json_error_t error;
    TRY(file_load(catalogue_join(catalogue->path, name, path), &text, &bytes));
    *json        = json_parse(text, bytes, &error);
    found->bytes = (int64_t)bytes;
    checksum_print(XXH3_64bits(text, bytes), found->checksum);
    free(text);
    return *json != NULL ? OK : fail_as(EXIT_CHECKPOINT, "%s: is not valid JSON: %.200s", path, error.text);
}

static status check_config(const struct catalogue *catalogue, const struct manifest_file *expected)
{
    json_t              *json;
    struct manifest_file found;
    TRY(catalogue_load_json(catalogue, expected->name, &json, &found));
    json_decref(json);
    return found.bytes == expected->bytes && strcmp(found.checksum, expected->checksum) == 0
               ? OK
               : fail_as(EXIT_CHECKPOINT, "%s/%s: differs from its checksum in the manifest", catalogue->path,
                         expected->name);
}

static status open_own(struct catalogue *catalogue)
{
    char path[CATALOGUE_PATH_BYTES];
    TRY(manifest_read(&catalogue->manifest, catalogue_join(catalogue->path, MANIFEST_NAME, path)));
    for (int64_t i = 0; i < catalogue->manifest.file_count; i++) {
        const struct manifest_file *file = &catalogue->manifest.files[i];
        TRY(strcmp(file->name, CONFIG_NAME) == 0 ? check_config(catalogue, file)
                                                 : open_shard(catalogue, file->name, file));
    }
    return OK;
}

static status open_named(struct catalogue *catalogue, const json_t *map, json_t *opened)
{
    const char *tensor;
    json_t     *value;
    json_object_foreach((json_t *)map, tensor, value)
    {
        const char *file = json_string_value(value);
        if (file == NULL || file[0] == '.' || strchr(file, '/') != NULL) {
            return catalogue_refuse(catalogue, tensor, "its file in the index is none of this folder");
        }
        if (json_object_get(opened, file) == NULL) {
            TRY(open_shard(catalogue, file, NULL));
            json_object_set_new(opened, file, json_true());
        }
    }
    return OK;
}

// Opens the files that model.safetensors.index.json names. Each tensor must be in the file that the index names for it.
static status open_indexed(struct catalogue *catalogue, const json_t *map)
{
    FAIL_AS_IF(!json_is_object(map), EXIT_CHECKPOINT, "%s/%s: has no weight_map", catalogue->path, INDEX_NAME);
    json_t *opened = json_object();
    status  result = open_named(catalogue, map, opened);
    json_decref(opened);
    TRY(result);
    for (int64_t i = 0; i < catalogue->count; i++) {
        const struct stored *stored = &catalogue->slices[i];
        const char          *file   = json_string_value(json_object_get(map, stored->tensor));
        if (file == NULL || strcmp(file, catalogue->files[stored->file]) != 0) {
            return catalogue_refuse(catalogue, stored->tensor, "is in a file that the index does not name for it");
        }
    }
    return catalogue->count == (int64_t)json_object_size(map)
               ? OK
               : fail_as(EXIT_CHECKPOINT, "%s/%s: names %zu tensors, of which the files have %" PRId64, catalogue->path,
                         INDEX_NAME, json_object_size(map), catalogue->count);
}

static status open_foreign(struct catalogue *catalogue)
{
    json_t              *json;
    struct manifest_file file;
    if (!has_file(catalogue->path, INDEX_NAME)) {
        return open_shard(catalogue, WEIGHTS_NAME, NULL);
    }
    TRY(catalogue_load_json(catalogue, INDEX_NAME, &json, &file));
    status result = open_indexed(catalogue, json_object_get(json, "weight_map"));
    json_decref(json);
    return result;
}

// Slices are checked from the top of the tensor to the bottom. An edge is a range of columns, with the row up to which
// slices cover them. If there are no holes or overlaps, the next slice starts at the first edge: the one with the
// smallest row, and among these the leftmost.
struct edge {
    int64_t row, column, columns;
};

// Binary heap of edges; the first edge is at index 0.
struct edges {
    struct edge *items;
    int64_t      count;
};

static bool is_before(const struct edge *a, const struct edge *b)
{
    return a->row < b->row || (a->row == b->row && a->column < b->column);
}

static void swap_edges(struct edge *a, struct edge *b)
{
    struct edge kept = *a;
    *a               = *b;
    *b               = kept;
}

static void add_edge(struct edges *edges, struct edge edge)
{
    int64_t at       = edges->count++;
    edges->items[at] = edge;
    while (at > 0 && is_before(&edges->items[at], &edges->items[(at - 1) / 2])) {
        swap_edges(&edges->items[at], &edges->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static struct edge take_first(struct edges *edges)
{
    struct edge first = edges->items[0];
    edges->items[0]   = edges->items[--edges->count];
    for (int64_t at = 0, minimum = 0;; at = minimum) {
        for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < edges->count; child++) {
            minimum = is_before(&edges->items[child], &edges->items[minimum]) ? child : minimum;
        }
        if (minimum == at) {
            return first;
        }
        swap_edges(&edges->items[at], &edges->items[minimum]);
    }
}

// Adds the next slice. All edges above its columns must be at its first row: an edge at a larger row means an overlap,
// one at a smaller row a hole. The slice replaces these edges by its own. If the last of them is wider than the slice,
// its right part stays.
static enum tiling cover_edges(struct edges *edges, const struct rectangle *at)
{
    int64_t end = at->column + at->columns;
    for (int64_t column = at->column; column < end;) {
        struct edge wanted = {.row = at->row, .column = column};
        if (is_before(&edges->items[0], &wanted)) {
            return TILING_HOLE;
        }
        if (is_before(&wanted, &edges->items[0])) {
            return TILING_OVERLAP;
        }
        struct edge edge = take_first(edges);
        column += edge.columns;
        if (column > end) {
            add_edge(edges, (struct edge){edge.row, end, column - end});
        }
    }
    add_edge(edges, (struct edge){at->row + at->rows, at->column, at->columns});
    return TILING_WHOLE;
}

enum tiling tiling_find(const struct stored_tensor *tensor, const struct stored **wrong)
{
    // Each slice adds at most two edges.
    struct edges edges  = {.items = memory_allocate((size_t)(2 * tensor->count + 2) * sizeof(*edges.items))};
    enum tiling  tiling = TILING_WHOLE;
    add_edge(&edges, (struct edge){0, 0, tensor->columns});
    for (int64_t i = 0; i < tensor->count && tiling == TILING_WHOLE; i++) {
        *wrong = &tensor->slices[i];
        tiling = cover_edges(&edges, &tensor->slices[i].at);
    }
    if (tiling == TILING_WHOLE && edges.items[0].row != tensor->rows) {
        tiling = TILING_HOLE;
    }
    free(edges.items);
    return tiling;
}

static int order_slices(const void *a, const void *b)
{
    const struct stored *x = a, *y = b;
    int                  order = strcmp(x->tensor, y->tensor);
    order                      = order != 0 ? order : (x->at.row > y->at.row) - (x->at.row < y->at.row);
    return order != 0 ? order : (x->at.column > y->at.column) - (x->at.column < y->at.column);
}

// Returns the tensor whose first slice has index `first`. The slices of a tensor are consecutive.
static struct stored_tensor find_tensor_at(const struct catalogue *catalogue, int64_t first)
{
    struct stored_tensor tensor = {.slices = &catalogue->slices[first]};
    while (first + tensor.count < catalogue->count &&
           strcmp(tensor.slices[tensor.count].tensor, tensor.slices[0].tensor) == 0) {
        const struct rectangle *at = &tensor.slices[tensor.count++].at;
        tensor.rows                = at->row + at->rows > tensor.rows ? at->row + at->rows : tensor.rows;
        tensor.columns = at->column + at->columns > tensor.columns ? at->column + at->columns : tensor.columns;
    }
    return tensor;
}

static status check_tensor(const struct catalogue *catalogue, const struct stored_tensor *tensor)
{
    const struct stored *slices = tensor->slices, *wrong;
    int64_t              size;
    if (__builtin_mul_overflow(tensor->rows, tensor->columns, &size)) {
        return catalogue_refuse(catalogue, slices[0].tensor, "its size overflows");
    }
    for (int64_t i = 1; i < tensor->count; i++) {
        if (slices[i].entry.format != slices[0].entry.format || slices[i].entry.dims != slices[0].entry.dims) {
            return catalogue_refuse(catalogue, slices[i].entry.name, "is of another type than other slices of it");
        }
    }
    enum tiling tiling = tiling_find(tensor, &wrong);
    return tiling == TILING_WHOLE     ? OK
           : tiling == TILING_OVERLAP ? catalogue_refuse(catalogue, wrong->entry.name, "overlaps another slice")
                                      : catalogue_refuse(catalogue, slices[0].tensor, "slices of it are missing");
}

static status check_tensors(const struct catalogue *catalogue)
{
    for (int64_t i = 0; i < catalogue->count;) {
        struct stored_tensor tensor = find_tensor_at(catalogue, i);
        TRY(check_tensor(catalogue, &tensor));
        i += tensor.count;
    }
    return OK;
}

status catalogue_open(struct catalogue *catalogue, const char *path, bool verifies)
{
    *catalogue = (struct catalogue){.verifies = verifies, .open_file = -1};
    TRY(find_folder(catalogue, path));
    TRY(catalogue->is_ours ? open_own(catalogue) : open_foreign(catalogue));
    FAIL_AS_IF(catalogue->count == 0, EXIT_CHECKPOINT, "%s: has no tensors", catalogue->path);
    qsort(catalogue->slices, (size_t)catalogue->count, sizeof(*catalogue->slices), order_slices);
    return check_tensors(catalogue);
}

struct stored_tensor catalogue_find(const struct catalogue *catalogue, enum state state, const char *name)
{
    char    tensor[2 * SLICE_NAME_BYTES];
    int64_t begin = 0, end = catalogue->count;
    snprintf(tensor, sizeof(tensor), "%s%s", state_prefixes[state], name);
    while (begin < end) {
        int64_t middle = (begin + end) / 2;
        if (strcmp(catalogue->slices[middle].tensor, tensor) < 0) {
            begin = middle + 1;
        } else {
            end = middle;
        }
    }
    return begin < catalogue->count && strcmp(catalogue->slices[begin].tensor, tensor) == 0
               ? find_tensor_at(catalogue, begin)
               : (struct stored_tensor){.count = 0};
}

void catalogue_close(struct catalogue *catalogue)
{
    catalogue_end_reading(catalogue);
    manifest_free(&catalogue->manifest);
    free(catalogue->files);
    free(catalogue->slices);
    *catalogue = (struct catalogue){.open_file = -1};
}
