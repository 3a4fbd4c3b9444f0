// SPDX-License-Identifier: MIT
// Writes and reads manifests, and creates, finds and removes the folders of checkpoints. A checkpoint is complete if it
// has its manifest. So the manifest is written last, and removed first.
#include "manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/input.h"
#include "gswbench/json.h"
#include "gswbench/number.h"
#include "gswbench/output.h"
#include "gswbench/text.h"
#include "gswbench/version.h"
#include "internal.h"

static const char manifest_format[] = "gswbench.checkpoint/1";
enum { FILE_BYTES_MAX = 1 << 26 };

// clang-format off
static const struct json_field file_fields[] = {
    ROW_TEXT(manifest_file, "name", name),
    ROW_INTEGER(manifest_file, "bytes", bytes),
    ROW_TEXT(manifest_file, "checksum", checksum),
    JSON_END
};
// The checksum is first, because checksums_of_header hashes the text with zeros in the first field named xxh3.
static const struct json_field fields[] = {
    ROW_TEXT(manifest, "xxh3", checksum),
    ROW_TEXT(manifest, "format", format),
    ROW_TEXT(manifest, "program", program),
    ROW_INTEGER(manifest, "step", origin.step),
    ROW_INTEGER(manifest, "samples", origin.samples),
    ROW_INTEGER(manifest, "seed", origin.seed),
    ROW_TEXT(manifest, "data", origin.data),
    ROW_INTEGER(manifest, "sequence", sequence),
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

// Returns whether two checkpoints are of the same run: they have the same model, sequence, seed and data.
static bool is_same_run(const struct manifest *first, const struct manifest *second)
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
    status read = input_load(path, FILE_BYTES_MAX, text, bytes);
    return failed(&read) ? fail_as(EXIT_CHECKPOINT, "%.600s: %.300s", path, read.text) : OK;
}

// Rejects file names that lead out of the checkpoint's folder.
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
    FAIL_AS_IF(strcmp(manifest->format, manifest_format) != 0, EXIT_CHECKPOINT,
               "%.600s: has format %s, but this program reads %s", path, manifest->format, manifest_format);
    const int64_t maximum = 1000000000000;    // limit that keeps sample counts from overflowing
    FAIL_AS_IF(manifest->origin.step < 0 || manifest->origin.samples < 0 || manifest->origin.step > maximum ||
                   manifest->origin.samples > maximum,
               EXIT_CHECKPOINT, "%.600s: a step or number of samples below 0 or above %" PRId64, path, maximum);
    FAIL_AS_IF(manifest->sequence < 1, EXIT_CHECKPOINT, "%.600s: a sequence of %" PRId64 " tokens", path,
               manifest->sequence);
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
    FAIL_AS_IF(json == NULL, EXIT_CHECKPOINT, "%.600s: is not valid JSON: %.200s (byte %d)", path, error.text,
               error.position);
    status result = json_to_struct(fields, manifest, json);
    json_decref(json);
    FAIL_AS_IF(failed(&result), EXIT_CHECKPOINT, "%.600s: %.300s", path, result.text);
    checksum_print(checksums_of_header(text, bytes), checksum);
    FAIL_AS_IF(strcmp(checksum, manifest->checksum) != 0, EXIT_CHECKPOINT, "%.600s: differs from its checksum", path);
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
        FAIL_IF(failed(&result), "model.%s = %s: %.300s", row->key, row->value, result.text);
    }
    return OK;
}

enum { PATH_BYTES = OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES };

// Returns the step in the name of a checkpoint's folder, or -1.
static int64_t parse_step(const char *name)
{
    char    again[64];
    char   *end;
    int64_t step = strncmp(name, "step-", 5) == 0 ? strtoll(name + 5, &end, 10) : -1;
    snprintf(again, sizeof(again), FOLDER_NAME, step);
    return step >= 0 && strcmp(again, name) == 0 ? step : -1;
}

// Returns the step of every complete checkpoint in a folder, oldest first. The caller frees them.
static int64_t *list_steps(const char *path, int64_t *count)
{
    DIR                 *folder = opendir(path);
    const struct dirent *entry;
    int64_t             *steps = NULL;
    *count                     = 0;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char manifest[PATH_BYTES];
        snprintf(manifest, sizeof(manifest), "%s/%s/" MANIFEST_NAME, path, entry->d_name);
        if (parse_step(entry->d_name) >= 0 && access(manifest, F_OK) == 0) {
            LIST_APPEND(steps, *count, parse_step(entry->d_name));
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    if (*count > 0) {
        qsort(steps, (size_t)*count, sizeof(*steps), number_compare);
    }
    return steps;
}

int64_t folders_newest(const char *path)
{
    int64_t  count;
    int64_t *steps  = list_steps(path, &count);
    int64_t  newest = count > 0 ? steps[count - 1] : -1;
    free(steps);
    return newest;
}

// Returns whether a save writes a file of this name, other than the manifest. This includes temporary files.
static bool is_save_file(const char *name)
{
    size_t length       = strlen(name);
    bool   is_temporary = length > 4 && strcmp(name + length - 4, ".tmp") == 0;
    return (strncmp(name, "rank-", 5) == 0 && strstr(name, ".safetensors") != NULL) || strcmp(name, CONFIG_NAME) == 0 ||
           (is_temporary && (strncmp(name, CONFIG_NAME, strlen(CONFIG_NAME)) == 0 ||
                             strncmp(name, MANIFEST_NAME, strlen(MANIFEST_NAME)) == 0));
}

// Syncs a folder to disk. Returns true also if the file system cannot sync folders.
static bool sync_folder(int folder)
{
    return fsync(folder) == 0 || errno == EINVAL || errno == ENOTSUP;
}

// Removes the files of a checkpoint. The manifest is first, so that an interrupted removal leaves an incomplete
// checkpoint.
static status remove_files(const struct output_folder *folder, const struct checkpoint_watch *watch)
{
    int  descriptor = openat(folder->descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing    = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (listing == NULL) {
        return output_cannot("list", folder->path);
    }
    const struct dirent *entry;
    bool                 is_bad = unlinkat(folder->descriptor, MANIFEST_NAME, 0) != 0 && errno != ENOENT;
    is_bad                      = is_bad || !sync_folder(folder->descriptor);
    while (!is_bad && (entry = readdir(listing)) != NULL) {
        is_bad = is_save_file(entry->d_name) && unlinkat(folder->descriptor, entry->d_name, 0) != 0;
        checkpoint_moved(watch);
    }
    status result = is_bad ? output_cannot("remove files of", folder->path) : OK;
    closedir(listing);
    return result;
}

status folders_enter(struct output_folder *folder, const char *path, int64_t step)
{
    char name[64];
    snprintf(name, sizeof(name), FOLDER_NAME, step);
    TRY(output_open_folder(folder, path));
    status result = output_enter_folder(folder, name);
    if (failed(&result)) {
        output_close_folder(folder);
    }
    return result;
}

static status refuse(const char *path, int64_t step)
{
    return fail_as(EXIT_OUTPUT,
                   "%.900s/" FOLDER_NAME
                   ": is a complete checkpoint and is not overwritten: set [checkpoint] save to another folder, or "
                   "remove it",
                   path, step);
}

status checkpoint_check_target(const char *path, checkpoint_saves *saves, const void *context)
{
    int64_t count;
    status  result = OK;
    TRY(output_create_folders(path));
    if (access(path, R_OK | W_OK | X_OK) != 0) {
        return output_cannot("write to", path);
    }
    int64_t *steps = list_steps(path, &count);
    for (int64_t i = 0; i < count && !failed(&result); i++) {
        result = saves(context, steps[i]) ? refuse(path, steps[i]) : OK;
    }
    free(steps);
    return result;
}

status folders_claim(struct output_folder *folder, const char *path, int64_t step, const struct checkpoint_watch *watch)
{
    char name[64];
    bool is_new = false;
    snprintf(name, sizeof(name), FOLDER_NAME, step);
    TRY(output_create_folders(path));
    TRY(output_open_folder(folder, path));
    char manifest[sizeof(name) + sizeof(MANIFEST_NAME)];
    snprintf(manifest, sizeof(manifest), "%s/" MANIFEST_NAME, name);
    status result = faccessat(folder->descriptor, manifest, F_OK, 0) == 0 ? refuse(path, step)
                                                                          : output_make_folder(folder, name, &is_new);
    // the folder must be on disk before an older checkpoint is removed
    if (!failed(&result) && !sync_folder(folder->descriptor)) {
        result = fail_as(EXIT_OUTPUT, "cannot write %.900s to disk: %s", folder->path, strerror(errno));
    }
    result = failed(&result) ? result : output_enter_folder(folder, name);
    if (!failed(&result) && !is_new) {
        result = remove_files(folder, watch);
    }
    if (failed(&result)) {
        output_close_folder(folder);
    }
    return result;
}

static status remove_step(const char *path, int64_t step, const struct checkpoint_watch *watch)
{
    struct output_folder folder;
    TRY(folders_enter(&folder, path, step));
    checkpoint_enter(watch, folder.path);
    status result = remove_files(&folder, watch);
    if (!failed(&result) && rmdir(folder.path) != 0 && errno != ENOTEMPTY &&
        errno != EEXIST) {    // a folder that has other files stays
        result = output_cannot("remove", folder.path);
    }
    output_close_folder(&folder);
    return result;
}

static bool is_of_run(const char *path, int64_t step, const struct manifest *run)
{
    char            file[PATH_BYTES];
    struct manifest other;
    snprintf(file, sizeof(file), "%s/" FOLDER_NAME "/" MANIFEST_NAME, path, step);
    status read    = manifest_read(&other, file);
    bool   is_same = !failed(&read) && is_same_run(&other, run);
    manifest_free(&other);
    return is_same;
}

status folders_prune(const char *path, int64_t kept, const struct manifest *saved, const struct checkpoint_watch *watch)
{
    int64_t  count, own = 0;
    int64_t *steps  = list_steps(path, &count);
    status   result = OK;
    for (int64_t i = 0; i < count && steps[i] <= saved->origin.step; i++) {
        if (is_of_run(path, steps[i], saved)) {
            steps[own++] = steps[i];
        }
    }
    for (int64_t i = 0; i < own - kept && !failed(&result); i++) {
        result = remove_step(path, steps[i], watch);
    }
    free(steps);
    return result;
}
