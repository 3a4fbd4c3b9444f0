// SPDX-License-Identifier: MIT
// Creates and opens output folders, and checks their free space.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "gswbench/number.h"
#include "gswbench/output.h"
#include "gswbench/text.h"

status output_create_folders(const char *path)
{
    char part[OUTPUT_PATH_BYTES];
    if (!text_copy(part, sizeof(part), path)) {
        errno = ENAMETOOLONG;
        return output_cannot("create", path);
    }
    for (char *end = part; *end != '\0';) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        char next = *end;
        *end      = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST) {
            return output_cannot("create", part);
        }
        *end = next;
    }
    return OK;
}

static status open_folder(struct output_folder *folder, const char *path, int flags)
{
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
    if (descriptor < 0) {
        return output_cannot("open", path);
    }
    *folder = (struct output_folder){.is_open = true, .descriptor = descriptor};
    text_copy(folder->path, sizeof(folder->path), path);
    return OK;
}

status output_open_folder(struct output_folder *folder, const char *path)
{
    return open_folder(folder, path, 0);
}

static status check_claimed(const struct output_folder *folder)
{
    int  descriptor = openat(folder->descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing    = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (listing == NULL) {
        return output_cannot("list", folder->path);
    }
    int                  entries = 0;
    const struct dirent *entry;
    while ((entry = readdir(listing)) != NULL) {
        entries += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(listing);
    if (entries > 0) {
        return fail_as(EXIT_OUTPUT, "%.900s: is not empty: name a new folder", folder->path);
    }
    return faccessat(folder->descriptor, ".", W_OK, AT_EACCESS) == 0 ? OK : output_cannot("write to", folder->path);
}

status output_claim_folder(struct output_folder *folder, const char *path)
{
    if (strlen(path) >= sizeof(folder->path)) {
        errno = ENAMETOOLONG;
        return output_cannot("create", path);
    }
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        return output_cannot("create", path);
    }
    TRY(open_folder(folder, path, O_NOFOLLOW));
    status result = check_claimed(folder);
    if (failed(&result)) {
        output_close_folder(folder);
    }
    return result;
}

void output_close_folder(struct output_folder *folder)
{
    if (folder->is_open) {
        close(folder->descriptor);
        folder->is_open = false;
    }
}

// "FOLDER/NAME"
static const char *join(const struct output_folder *folder, const char *name, char path[OUTPUT_PATH_BYTES])
{
    int bytes = snprintf(path, OUTPUT_PATH_BYTES, "%s/%s", folder->path, name);
    errno     = ENAMETOOLONG;
    return bytes < OUTPUT_PATH_BYTES ? path : NULL;
}

status output_make_folder(const struct output_folder *folder, const char *name, bool *is_new)
{
    char        text[OUTPUT_PATH_BYTES];
    const char *path = join(folder, name, text);
    *is_new          = path != NULL && mkdirat(folder->descriptor, name, 0755) == 0;
    return *is_new || (path != NULL && errno == EEXIST) ? OK : output_cannot("create", text);
}

status output_enter_folder(struct output_folder *folder, const char *name)
{
    char        text[OUTPUT_PATH_BYTES];
    const char *path       = join(folder, name, text);
    int         descriptor = -1;
    if (path != NULL) {
        descriptor = openat(folder->descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (descriptor < 0) {
        return output_cannot("open", text);
    }
    close(folder->descriptor);
    folder->descriptor = descriptor;
    text_copy(folder->path, sizeof(folder->path), text);
    return OK;
}

// Renaming a temporary link replaces the older one atomically.
status output_link(const char *path, const char *name, const char *target)
{
    char        at[OUTPUT_PATH_BYTES], temporary[OUTPUT_PATH_BYTES];
    struct stat older;
    bool        fits = snprintf(at, sizeof(at), "%s/%s", path, name) < (int)sizeof(at) &&
                snprintf(temporary, sizeof(temporary), "%s/.%s-%d", path, name, (int)getpid()) < (int)sizeof(temporary);
    errno = ENAMETOOLONG;
    if (!fits) {
        return output_cannot("link", path);
    }
    if (lstat(at, &older) == 0 && !S_ISLNK(older.st_mode)) {
        return fail_as(EXIT_OUTPUT, "%.900s: is not a symbolic link", at);
    }
    if (symlink(target, temporary) != 0) {
        return output_cannot("link", temporary);
    }
    if (rename(temporary, at) != 0) {
        status result = output_cannot("link", at);
        unlink(temporary);
        return result;
    }
    return OK;
}

status output_check_space(int folder, const char *path, int64_t bytes, int64_t largest_bytes)
{
    struct statvfs about;
    struct rlimit  limit;
    char           needed[32], room[32];
    if (fstatvfs(folder, &about) != 0) {
        return output_cannot("ask for the space of", path);
    }
    double there = (double)about.f_bavail * (double)about.f_frsize;
    if (about.f_blocks > 0 && there < (double)bytes) {    // 0 blocks: the file system reports no size
        return fail_as(EXIT_OUTPUT, "cannot write %.900s: %s: it needs %s, but only %s are free", path,
                       strerror(ENOSPC), number_bytes(needed, sizeof(needed), (double)bytes),
                       number_bytes(room, sizeof(room), there));
    }
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        (double)limit.rlim_cur < (double)largest_bytes) {
        return fail_as(EXIT_OUTPUT, "cannot write %.900s: %s: it needs %s, but the limit of a file is %s (ulimit -f)",
                       path, strerror(EFBIG), number_bytes(needed, sizeof(needed), (double)largest_bytes),
                       number_bytes(room, sizeof(room), (double)limit.rlim_cur));
    }
    return OK;
}
