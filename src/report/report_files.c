// SPDX-License-Identifier: MIT
// The folder of a run. Files are rendered in memory and then written by system calls, so that every error has its
// errno: stdio forgets the one of a buffered write, and close succeeds after a full disk.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/report.h"
#include "gswbench/result_json.h"
#include "internal.h"

enum { PATH_BYTES = 2048 };

static status cannot(const char *action, const char *path)
{
    return fail_as(EXIT_OUTPUT, "cannot %s %s: %s", action, path, strerror(errno));
}

static bool write_all(int file, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(file, data, bytes);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        data += written > 0 ? written : 0;
        bytes -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static status sync_folder(const char *folder)
{
    int file = open(folder, O_RDONLY | O_DIRECTORY);
    if (file < 0) {
        return cannot("open", folder);
    }
    // File systems that cannot sync a folder say EINVAL; there is nothing more to be done then.
    bool synced = fsync(file) == 0 || errno == EINVAL;
    close(file);
    return synced ? OK : cannot("sync", folder);
}

static status write_temporary(const char *path, const void *data, size_t bytes)
{
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
    if (file < 0) {
        return cannot("create", path);
    }
    bool written = write_all(file, data, bytes) && fsync(file) == 0;
    int  reason  = errno;
    bool closed  = close(file) == 0;
    if (!written) {
        errno = reason;
    }
    return written && closed ? OK : cannot("write", path);
}

status report_write_bytes(const char *folder, const char *name, const void *data, size_t bytes)
{
    char        path[PATH_BYTES], temporary[PATH_BYTES + 8];
    struct stat state;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    snprintf(temporary, sizeof(temporary), "%s.tmp", path);
    if (lstat(path, &state) == 0) {
        errno = EEXIST;
        return cannot("create", path);
    }
    status result = write_temporary(temporary, data, bytes);
    if (!failed(&result) && rename(temporary, path) != 0) {
        result = cannot("rename", temporary);
    }
    if (failed(&result)) {
        unlink(temporary);
        return result;
    }
    return sync_folder(folder);
}

// The caller frees.
static char *render(report_writer *write, const struct result *result, size_t *bytes)
{
    char *data = NULL;
    FILE *file = open_memstream(&data, bytes);
    if (file != NULL) {
        write(result, file);
    }
    if (file == NULL || fclose(file) != 0) {
        FATAL(EXIT_MEMORY, "out of host memory while rendering a result");
    }
    return data;
}

status report_write_file(const char *folder, const char *name, report_writer *write, const struct result *result)
{
    size_t bytes;
    char  *data    = render(write, result, &bytes);
    status written = report_write_bytes(folder, name, data, bytes);
    free(data);
    return written;
}

status report_print(report_writer *write, const struct result *result)
{
    size_t bytes;
    char  *data   = render(write, result, &bytes);
    bool   is_out = fflush(stdout) == 0 && write_all(STDOUT_FILENO, data, bytes);
    free(data);
    return is_out ? OK : cannot("write to", "standard output");
}

void report_write_json(const struct result *result, FILE *file)
{
    result_write_json(result, file);
}

// Creates every folder of the path that is missing. The last one must be new.
static status create_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash        = '\0';
        bool   there  = mkdir(path, 0755) == 0 || errno == EEXIST;
        status result = there ? OK : cannot("create", path);
        *slash        = '/';
        if (!there) {
            return result;
        }
    }
    return mkdir(path, 0755) == 0 ? OK : cannot("create", path);
}

status report_create_folder(const struct result *result, const char *output, char *folder, size_t bytes)
{
    char name[sizeof(result->config_name)];
    report_safe(name, sizeof(name), result->config_name);
    for (char *character = name; *character != '\0'; character++) {
        if (*character == '/' || (*character == '.' && character == name)) {
            *character = '_';    // a name is one folder, never "..", and not a hidden one
        }
    }
    int length = snprintf(folder, bytes, "%s/%s/%s/%" PRId64 "/%s", output, name, result->precision, result->mesh.world,
                          result->run_id);
    if (length < 0 || (size_t)length >= bytes) {
        errno = ENAMETOOLONG;
        return cannot("create", output);
    }
    return create_folders(folder);
}

status report_write_files(const char *folder, const struct result *result)
{
    for (const struct report_format *format = report_formats; format->name != NULL; format++) {
        if (format->file != NULL) {
            TRY(report_write_file(folder, format->file, format->write, result));
        }
    }
    return OK;
}
