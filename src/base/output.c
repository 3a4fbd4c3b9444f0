// SPDX-License-Identifier: MIT
// Writes files under a temporary name and renames them; creates and opens output folders. Uses file descriptors and
// system calls instead of stdio, so that every error has its errno.
#define _GNU_SOURCE    // sync_file_range
#include "gswbench/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "gswbench/input.h"
#include "gswbench/number.h"
#include "gswbench/text.h"

enum { PIECE_BYTES = 64 << 20 };

status output_cannot(const char *action, const char *path)
{
    return fail_as(EXIT_OUTPUT, "cannot %s %.900s: %s", action, path, strerror(errno));
}

static status too_long(const char *action, const char *path)
{
    errno = ENAMETOOLONG;
    return output_cannot(action, path);
}

// Writes all bytes at an offset of the file, or at its end if offset is -1.
static bool put_at(int file, const void *data, size_t bytes, int64_t offset)
{
    for (size_t done = 0; done < bytes;) {
        const char *next    = (const char *)data + done;
        ssize_t     written = offset < 0 ? write(file, next, bytes - done)
                                         : pwrite(file, next, bytes - done, (off_t)offset + (off_t)done);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        done += written > 0 ? (size_t)written : 0;
    }
    return true;
}

bool output_is_blocked(void)
{
    struct pollfd file = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&file, 1, 0) == 0;
}

bool output_put(int file, const void *data, size_t bytes)
{
    return put_at(file, data, bytes, -1);
}

// Checks the final name: it must not exist yet, or must be a regular file that may be replaced.
static status check_name(const struct output *output)
{
    struct stat about;
    if (fstatat(output->folder, output->name, &about, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? OK : output_cannot("write", output->path);
    }
    FAIL_AS_IF(!S_ISREG(about.st_mode), EXIT_OUTPUT, "cannot write %.900s: it is %s, not a file", output->path,
               input_kind(about.st_mode));
    return output->replaces
               ? OK
               : fail_as(EXIT_OUTPUT, "cannot write %.900s: the file exists; delete it or use another name",
                         output->path);
}

// Creates the temporary file. Tries other names if a file of this name exists already, made by another process or left
// by one that was killed.
static status create_temporary(struct output *output)
{
    enum { TRIES = 100, SUFFIX_BYTES = 16 };
    for (int try = 0; try < TRIES; try++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        unsigned number = (unsigned)now.tv_nsec ^ (unsigned)getpid() << 12;
        snprintf(output->temporary, sizeof(output->temporary), "%.*s.%08x.tmp",
                 (int)sizeof(output->temporary) - SUFFIX_BYTES, output->name, number);
        output->file =
            openat(output->folder, output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (output->file >= 0) {
            output->is_open = true;
            return OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return output_cannot("write", output->path);
}

// Starts a file in the folder with the descriptor output->folder. Takes ownership of this descriptor, also on failure.
static status begin(struct output *output, const char *name)
{
    if (!text_copy(output->name, sizeof(output->name), name)) {
        close(output->folder);
        return too_long("write", output->path);
    }
    status result = check_name(output);
    result        = failed(&result) ? result : create_temporary(output);
    if (failed(&result)) {
        close(output->folder);
    }
    return result;
}

// Refuses "-", which other programs take for standard output.
static status check_path(const char *path)
{
    return strcmp(path, "-") == 0 ? fail_as(EXIT_OUTPUT, "cannot write to -: name a file or folder, such as ./-") : OK;
}

static status begin_at(struct output *output, const char *path, bool replaces)
{
    const char *slash = strrchr(path, '/');
    char        folder[OUTPUT_PATH_BYTES];
    *output = (struct output){.replaces = replaces};
    TRY(check_path(path));
    if (!text_copy(output->path, OUTPUT_PATH_BYTES, path)) {
        return too_long("write", path);
    }
    snprintf(folder, sizeof(folder), "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1, slash == NULL ? "." : path);
    output->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return output->folder >= 0 ? begin(output, slash == NULL ? path : slash + 1) : output_cannot("write", path);
}

status output_begin(struct output *output, const char *path)
{
    return begin_at(output, path, true);
}

static status begin_inside(struct output *output, const struct output_folder *folder, const char *name, bool replaces)
{
    *output = (struct output){.folder = fcntl(folder->descriptor, F_DUPFD_CLOEXEC, 0), .replaces = replaces};
    snprintf(output->path, sizeof(output->path), "%s/%s", folder->path, name);
    return output->folder >= 0 ? begin(output, name) : output_cannot("write", output->path);
}

status output_begin_in(struct output *output, const struct output_folder *folder, const char *name)
{
    return begin_inside(output, folder, name, false);
}

// Starts writing data to disk piece by piece, so that the final fsync is short and progress is visible. fsync reports
// the errors.
static void send_to_disk(struct output *output, int64_t bytes)
{
    output->appended += bytes;
    if (output->appended - output->sent >= PIECE_BYTES) {
        if (output->sent > 0) {
            sync_file_range(output->file, 0, (off_t)output->sent,
                            SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
        }
        sync_file_range(output->file, (off_t)output->sent, (off_t)(output->appended - output->sent),
                        SYNC_FILE_RANGE_WRITE);
        output->sent = output->appended;
    }
}

static status put_or_abandon(struct output *output, const void *data, size_t bytes, int64_t offset)
{
    status result = put_at(output->file, data, bytes, offset) ? OK : output_cannot("write", output->path);
    if (failed(&result)) {
        output_abandon(output);
    }
    return result;
}

status output_append(struct output *output, const void *data, size_t bytes)
{
    TRY(put_or_abandon(output, data, bytes, -1));
    send_to_disk(output, (int64_t)bytes);
    return OK;
}

status output_rewrite(struct output *output, const void *data, size_t bytes, int64_t offset)
{
    return put_or_abandon(output, data, bytes, offset);
}

static status settle(const struct output *output)
{
    bool is_synced = fsync(output->file) == 0;
    int  reason    = errno;
    if (close(output->file) != 0 || !is_synced) {
        errno = is_synced ? errno : reason;
        return output_cannot("write", output->path);
    }
    return check_name(output);
}

// Ignores EINVAL from fsync of the folder, which file systems return if they cannot sync a folder.
status output_finish(struct output *output)
{
    status result = settle(output);
    if (!failed(&result) && renameat(output->folder, output->temporary, output->folder, output->name) != 0) {
        result = output_cannot("write", output->path);
    }
    if (failed(&result)) {
        unlinkat(output->folder, output->temporary, 0);
    } else if (fsync(output->folder) != 0 && errno != EINVAL) {
        result = output_cannot("sync the folder of", output->path);
    }
    close(output->folder);
    output->is_open = false;
    return result;
}

void output_abandon(struct output *output)
{
    if (output->is_open) {
        close(output->file);
        unlinkat(output->folder, output->temporary, 0);
        close(output->folder);
        output->is_open = false;
    }
}

// Writes a whole file. `begun` is the status of the call that has opened it.
static status fill(struct output *output, status begun, const void *data, size_t bytes)
{
    TRY(begun);
    TRY(output_append(output, data, bytes));
    return output_finish(output);
}

status output_write(const struct output_folder *folder, const char *name, const void *data, size_t bytes)
{
    struct output output;
    return fill(&output, begin_inside(&output, folder, name, false), data, bytes);
}

status output_replace_in(const struct output_folder *folder, const char *name, const void *data, size_t bytes)
{
    struct output output;
    return fill(&output, begin_inside(&output, folder, name, true), data, bytes);
}

status output_replace(const char *path, const void *data, size_t bytes)
{
    struct output output;
    return fill(&output, begin_at(&output, path, true), data, bytes);
}

status output_save(struct text_stream *stream, const char *path, ...)
{
    char    whole[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    va_list values;
    va_start(values, path);
    vsnprintf(whole, sizeof(whole), path, values);
    va_end(values);
    text_stream_close(stream);
    status written = output_replace(whole, stream->data, stream->bytes);
    free(stream->data);
    return written;
}

status output_create(const char *path, const void *data, size_t bytes)
{
    struct output output;
    return fill(&output, begin_at(&output, path, false), data, bytes);
}

status output_extend(const char *path, const void *data, size_t bytes)
{
    struct stat about;
    int         file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
    if (file < 0) {
        return output_cannot("write", path);
    }
    status result = OK;
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        result = fail_as(EXIT_OUTPUT, "cannot write %.900s: it is not a regular file", path);
    } else if (!output_put(file, data, bytes)) {
        result = output_cannot("write", path);
    }
    close(file);
    return result;
}

status output_open_log(const struct output_folder *folder, const char *name, int *file)
{
    char path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    *file = openat(folder->descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    return *file >= 0 ? OK : output_cannot("create", path);
}

status output_create_folders(const char *path)
{
    char part[OUTPUT_PATH_BYTES];
    TRY(check_path(path));
    if (!text_copy(part, sizeof(part), path)) {
        return too_long("create", path);
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
    FAIL_AS_IF(entries > 0, EXIT_OUTPUT, "%.900s: is not empty: name a new folder", folder->path);
    return faccessat(folder->descriptor, ".", W_OK, AT_EACCESS) == 0 ? OK : output_cannot("write to", folder->path);
}

status output_claim_folder(struct output_folder *folder, const char *path)
{
    TRY(check_path(path));
    if (strlen(path) >= sizeof(folder->path)) {
        return too_long("create", path);
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

// Returns the path "FOLDER/NAME", or NULL if it is too long.
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

// Creates a temporary link and renames it, because this replaces an existing link atomically.
status output_link(const char *path, const char *name, const char *target)
{
    char        at[OUTPUT_PATH_BYTES], temporary[OUTPUT_PATH_BYTES];
    struct stat older;
    bool        fits = snprintf(at, sizeof(at), "%s/%s", path, name) < (int)sizeof(at) &&
                snprintf(temporary, sizeof(temporary), "%s/.%s-%d", path, name, (int)getpid()) < (int)sizeof(temporary);
    if (!fits) {
        return too_long("link", path);
    }
    FAIL_AS_IF(lstat(at, &older) == 0 && !S_ISLNK(older.st_mode), EXIT_OUTPUT, "%.900s: is not a symbolic link", at);
    unlink(temporary);    // a killed process with the same ID may have left it
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
    FAIL_AS_IF(getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
                   (double)limit.rlim_cur < (double)largest_bytes,
               EXIT_OUTPUT, "cannot write %.900s: %s: it needs %s, but the limit of a file is %s (ulimit -f)", path,
               strerror(EFBIG), number_bytes(needed, sizeof(needed), (double)largest_bytes),
               number_bytes(room, sizeof(room), (double)limit.rlim_cur));
    return OK;
}
