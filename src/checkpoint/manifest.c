// SPDX-License-Identifier: MIT
// Writes and reads manifests.
#include "manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/input.h"
#include "gswbench/json.h"
#include "gswbench/text.h"
#include "gswbench/version.h"
#include "internal.h"

static const char manifest_format[] = "gswbench.checkpoint/1";
enum { FILE_BYTES_MAX = 1 << 26 };

// clang-format off
#define TEXT(owner, key, field)    JSON_FIELD(owner, JSON_FIELD_TEXT, key, field)
#define INTEGER(owner, key, field) JSON_FIELD(owner, JSON_FIELD_INTEGER, key, field)
static const struct json_field file_fields[] = {
    TEXT(manifest_file, "name", name),
    INTEGER(manifest_file, "bytes", bytes),
    TEXT(manifest_file, "checksum", checksum),
    JSON_END
};
// The checksum comes first, because checksums_of_header covers the text with zeros in the first field named xxh3.
static const struct json_field fields[] = {
    TEXT(manifest, "xxh3", checksum),
    TEXT(manifest, "format", format),
    TEXT(manifest, "program", program),
    INTEGER(manifest, "step", origin.step),
    INTEGER(manifest, "samples", origin.samples),
    INTEGER(manifest, "seed", origin.seed),
    TEXT(manifest, "data", origin.data),
    INTEGER(manifest, "sequence", sequence),
    JSON_ROW("model", JSON_FIELD_MAP, offsetof(struct manifest, model), sizeof(struct manifest_option), NULL, NULL,
             offsetof(struct manifest, model_count), offsetof(struct manifest_option, value)),
    JSON_LIST(manifest, "files", files, file_count, sizeof(struct manifest_file), file_fields),
    JSON_END
};
// clang-format on

#define ADAPTERS_PREFIX "adapters."

static void append_options(struct manifest *manifest, const char *prefix, const struct option *options,
                           const void *section)
{
    for (const struct option *option = options; option->key != NULL; option++) {
        struct manifest_option *row = LIST_ADD(manifest->model, manifest->model_count);
        snprintf(row->key, sizeof(row->key), "%s%s", prefix, option->key);
        option_print(option, section, row->value, sizeof(row->value));
    }
}

void manifest_init(struct manifest *manifest, const struct plan *plan, const struct checkpoint_origin *origin,
                   int64_t files)
{
    *manifest = (struct manifest){.checksum = "0000000000000000", .origin = *origin, .sequence = plan->train.sequence};
    text_copy(manifest->format, sizeof(manifest->format), manifest_format);
    text_copy(manifest->program, sizeof(manifest->program), version_text);
    append_options(manifest, "", model_options, &plan->model);
    if (model_is_frozen(&plan->model)) {
        append_options(manifest, ADAPTERS_PREFIX, adapters_options, &plan->model.adapters);
    }
    manifest->files      = memory_allocate((size_t)files * sizeof(*manifest->files));
    manifest->file_count = files;
}

void manifest_free(struct manifest *manifest)
{
    free(manifest->model);
    free(manifest->files);
    *manifest = (struct manifest){.file_count = 0};
}

bool manifest_is_same_run(const struct manifest *first, const struct manifest *second)
{
    bool is_same = first->origin.seed == second->origin.seed && strcmp(first->origin.data, second->origin.data) == 0 &&
                   first->sequence == second->sequence && first->model_count == second->model_count;
    for (int64_t i = 0; i < first->model_count && is_same; i++) {
        const struct manifest_option *one = &first->model[i], *other = &second->model[i];
        is_same = strcmp(one->key, other->key) == 0 && strcmp(one->value, other->value) == 0;
    }
    return is_same;
}

status manifest_write(struct manifest *manifest, const struct output_folder *folder)
{
    char *text = json_text(json_from_struct(fields, manifest), JSON_COMPACT);
    checksum_print(checksums_of_header(text, strlen(text)), manifest->checksum);
    free(text);
    text          = json_text(json_from_struct(fields, manifest), JSON_COMPACT);
    status result = output_write(folder, MANIFEST_NAME, text, strlen(text));
    free(text);
    return result;
}

status file_load(const char *path, char **text, size_t *bytes)
{
    int         file;
    struct stat about;
    status      opened = input_open(path, &file, &about);
    if (failed(&opened)) {
        return fail_as(EXIT_CHECKPOINT, "%.600s: %.300s", path, opened.text);
    }
    *bytes        = (size_t)about.st_size;
    status result = OK;
    if (about.st_size > FILE_BYTES_MAX) {
        result = fail_as(EXIT_CHECKPOINT, "%.600s: %" PRId64 " bytes: at most %d are read", path,
                         (int64_t)about.st_size, FILE_BYTES_MAX);
    } else {
        *text  = input_read(file, *bytes);
        result = *text != NULL ? OK : fail_as(EXIT_CHECKPOINT, "%.600s: cannot be read: %s", path, strerror(errno));
    }
    close(file);
    return result;
}

// Rejects names that lead out of the folder.
static status check_file(const struct manifest_file *file, const char *path)
{
    bool is_plain = file->name[0] != '\0' && file->name[0] != '.' && strchr(file->name, '/') == NULL;
    return is_plain && file->bytes >= 0
               ? OK
               : fail_as(EXIT_CHECKPOINT, "%.600s: '%s' with %" PRId64 " bytes is not a checkpoint file", path,
                         file->name, file->bytes);
}

static int compare_names(const void *a, const void *b)
{
    const struct manifest_file *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static status check_names(const struct manifest *manifest, const char *path)
{
    size_t                       count  = (size_t)manifest->file_count;
    const struct manifest_file **sorted = memory_allocate(count * sizeof(const struct manifest_file *));
    status                       result = OK;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &manifest->files[i];
    }
    qsort(sorted, count, sizeof(const struct manifest_file *), compare_names);
    for (size_t i = 1; i < count && !failed(&result); i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0) {
            result = fail_as(EXIT_CHECKPOINT, "%.600s: names '%s' twice", path, sorted[i]->name);
        }
    }
    free(sorted);
    return result;
}

static status check(const struct manifest *manifest, const char *path)
{
    if (strcmp(manifest->format, manifest_format) != 0) {
        return fail_as(EXIT_CHECKPOINT, "%.600s: has format %s, but this program reads %s", path, manifest->format,
                       manifest_format);
    }
    const int64_t maximum = 1000000000000;    // so that no sample count overflows
    if (manifest->origin.step < 0 || manifest->origin.samples < 0 || manifest->origin.step > maximum ||
        manifest->origin.samples > maximum) {
        return fail_as(EXIT_CHECKPOINT, "%.600s: a step or number of samples below 0 or above %" PRId64, path, maximum);
    }
    for (int64_t i = 0; i < manifest->file_count; i++) {
        TRY(check_file(&manifest->files[i], path));
    }
    return check_names(manifest, path);
}

static status parse(struct manifest *manifest, const char *path, char *text, size_t bytes)
{
    char         checksum[CHECKSUM_BYTES];
    json_error_t error;
    json_t      *json = json_parse(text, bytes, &error);
    if (json == NULL) {
        return fail_as(EXIT_CHECKPOINT, "%.600s: is not valid JSON: %.200s (byte %d)", path, error.text,
                       error.position);
    }
    status result = json_to_struct(fields, manifest, json);
    json_decref(json);
    if (failed(&result)) {
        return fail_as(EXIT_CHECKPOINT, "%.600s: %.300s", path, result.text);
    }
    checksum_print(checksums_of_header(text, bytes), checksum);
    if (strcmp(checksum, manifest->checksum) != 0) {
        return fail_as(EXIT_CHECKPOINT, "%.600s: differs from its checksum", path);
    }
    return check(manifest, path);
}

status manifest_read(struct manifest *manifest, const char *path)
{
    char  *text;
    size_t bytes;
    *manifest = (struct manifest){.file_count = 0};
    TRY(file_load(path, &text, &bytes));
    status result = parse(manifest, path, text, bytes);
    free(text);
    if (failed(&result)) {
        manifest_free(manifest);
    }
    return result;
}

status manifest_model(const struct manifest *manifest, struct model_config *model)
{
    model_set_defaults(model);
    for (int64_t i = 0; i < manifest->model_count; i++) {
        const struct manifest_option *row      = &manifest->model[i];
        size_t                        prefix   = strlen(ADAPTERS_PREFIX);
        bool                          is_other = strncmp(row->key, ADAPTERS_PREFIX, prefix) == 0;
        const struct option          *option =
            is_other ? option_find(adapters_options, row->key + prefix) : option_find(model_options, row->key);
        void  *section = is_other ? (void *)&model->adapters : model;
        status result  = option == NULL ? fail("there is no such option") : option_set(option, section, row->value);
        if (failed(&result)) {
            return fail("model.%s = %s: %.300s", row->key, row->value, result.text);
        }
    }
    return OK;
}
