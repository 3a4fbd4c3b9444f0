// SPDX-License-Identifier: MIT
// Creates, finds and removes the folders of checkpoints. A checkpoint is complete when it has its manifest, so the
// manifest is written last and removed first.
#include "folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/number.h"
#include "gswbench/output.h"
#include "manifest.h"

enum { PATH_BYTES = OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES };

// Step of a checkpoint folder's name, or -1.
static int64_t parse(const char *name)
{
    char    again[64];
    char   *end;
    int64_t step = strncmp(name, "step-", 5) == 0 ? strtoll(name + 5, &end, 10) : -1;
    snprintf(again, sizeof(again), FOLDER_NAME, step);
    return step >= 0 && strcmp(again, name) == 0 ? step : -1;
}

// Steps of complete checkpoints, oldest first. The caller frees them.
static int64_t *list(const char *path, int64_t *count)
{
    DIR                 *folder = opendir(path);
    const struct dirent *entry;
    int64_t             *steps = NULL;
    *count                     = 0;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        char manifest[PATH_BYTES];
        snprintf(manifest, sizeof(manifest), "%s/%s/" MANIFEST_NAME, path, entry->d_name);
        if (parse(entry->d_name) >= 0 && access(manifest, F_OK) == 0) {
            LIST_APPEND(steps, *count, parse(entry->d_name));
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
    int64_t *steps  = list(path, &count);
    int64_t  newest = count > 0 ? steps[count - 1] : -1;
    free(steps);
    return newest;
}

// Names that a save writes, including its temporary files.
static bool is_ours(const char *name)
{
    size_t length       = strlen(name);
    bool   is_temporary = length > 4 && strcmp(name + length - 4, ".tmp") == 0;
    return (strncmp(name, "rank-", 5) == 0 && strstr(name, ".safetensors") != NULL) || strcmp(name, CONFIG_NAME) == 0 ||
           (is_temporary && (strncmp(name, CONFIG_NAME, strlen(CONFIG_NAME)) == 0 ||
                             strncmp(name, MANIFEST_NAME, strlen(MANIFEST_NAME)) == 0));
}

// Some file systems cannot sync a folder.
static bool is_on_disk(int folder)
{
    return fsync(folder) == 0 || errno == EINVAL || errno == ENOTSUP;
}

// Removes the manifest first: an interrupted removal leaves an incomplete checkpoint.
static status clear(const struct output_folder *folder, const struct checkpoint_watch *watch)
{
    int  descriptor = openat(folder->descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing    = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (listing == NULL) {
        return output_cannot("list", folder->path);
    }
    const struct dirent *entry;
    bool                 is_bad = unlinkat(folder->descriptor, MANIFEST_NAME, 0) != 0 && errno != ENOENT;
    is_bad                      = is_bad || !is_on_disk(folder->descriptor);
    while (!is_bad && (entry = readdir(listing)) != NULL) {
        is_bad = is_ours(entry->d_name) && unlinkat(folder->descriptor, entry->d_name, 0) != 0;
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

static status check_absent(const struct output_folder *folder, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%s/" MANIFEST_NAME, name);
    return faccessat(folder->descriptor, path, F_OK, 0) != 0
               ? OK
               : fail_as(EXIT_OUTPUT,
                         "%.900s/%s: is a complete checkpoint and is not overwritten: set [checkpoint] save to another "
                         "folder, or remove it",
                         folder->path, name);
}

status checkpoint_check_target(const char *path, int64_t step)
{
    char                 name[64];
    struct output_folder folder;
    snprintf(name, sizeof(name), FOLDER_NAME, step);
    if (access(path, F_OK) != 0) {
        return OK;
    }
    TRY(output_open_folder(&folder, path));
    status result = check_absent(&folder, name);
    output_close_folder(&folder);
    return result;
}

status folders_claim(struct output_folder *folder, const char *path, int64_t step, const struct checkpoint_watch *watch)
{
    char name[64];
    bool is_new = false;
    snprintf(name, sizeof(name), FOLDER_NAME, step);
    TRY(output_create_folders(path));
    TRY(output_open_folder(folder, path));
    status result = check_absent(folder, name);
    result        = failed(&result) ? result : output_make_folder(folder, name, &is_new);
    if (!failed(&result) && !is_on_disk(folder->descriptor)) {    // before any older checkpoint is removed
        result = fail_as(EXIT_OUTPUT, "cannot write %.900s to disk: %s", folder->path, strerror(errno));
    }
    result = failed(&result) ? result : output_enter_folder(folder, name);
    if (!failed(&result) && !is_new) {
        result = clear(folder, watch);
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
    status result = clear(&folder, watch);
    if (!failed(&result) && rmdir(folder.path) != 0 && errno != ENOTEMPTY &&
        errno != EEXIST) {    // keep a folder with other files
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
    bool   is_same = !failed(&read) && manifest_is_same_run(&other, run);
    manifest_free(&other);
    return is_same;
}

status folders_prune(const char *path, int64_t kept, const struct manifest *saved, const struct checkpoint_watch *watch)
{
    int64_t  count, own = 0;
    int64_t *steps  = list(path, &count);
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
