// SPDX-License-Identifier: MIT
// Opens and reads regular files.
#include "gswbench/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/arena.h"

const char *input_kind(mode_t mode)
{
    return S_ISDIR(mode)    ? "a directory"
           : S_ISLNK(mode)  ? "a symbolic link"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

// Uses O_NONBLOCK, because opening a pipe would otherwise wait until another process writes to it.
status input_open(const char *path, int *file, struct stat *about)
{
    *file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    FAIL_IF(*file < 0, "cannot be opened: %s", strerror(errno));
    status result = OK;
    if (fstat(*file, about) != 0) {
        result = fail("cannot be read: %s", strerror(errno));
    } else if (!S_ISREG(about->st_mode)) {
        result = fail("is %s, not a file", input_kind(about->st_mode));
    }
    if (failed(&result)) {
        close(*file);
    }
    return result;
}

status input_open_stream(const char *path, FILE **stream, struct stat *about)
{
    int file;
    TRY(input_open(path, &file, about));
    *stream = fdopen(file, "r");
    if (*stream == NULL) {
        status result = fail("cannot be read: %s", strerror(errno));
        close(file);
        return result;
    }
    return OK;
}

// Reads an open file in full; the caller frees the text. Returns NULL with errno on failure.
static char *read_all(int file, size_t bytes)
{
    char *text = memory_allocate(bytes + 1);
    for (size_t done = 0; done < bytes;) {
        ssize_t count = read(file, text + done, bytes - done);
        if (count == 0 || (count < 0 && errno != EINTR)) {
            errno = count == 0 ? EIO : errno;
            free(text);
            return NULL;
        }
        done += count > 0 ? (size_t)count : 0;
    }
    return text;
}

status input_load(const char *path, size_t bytes_max, char **text, size_t *bytes)
{
    struct stat about;
    int         file;
    *text = NULL;
    TRY(input_open(path, &file, &about));
    status result = OK;
    *bytes        = (size_t)about.st_size;
    if (*bytes > bytes_max) {
        result = fail("has %zu bytes: the limit is %zu", *bytes, bytes_max);
    } else if ((*text = read_all(file, *bytes)) == NULL) {
        result = fail("cannot be read: %s", strerror(errno));
    }
    close(file);
    return result;
}

status input_check_owner(const struct stat *about)
{
    FAIL_IF(about->st_uid != geteuid() && about->st_uid != 0, "belongs to user %ld", (long)about->st_uid);
    return (about->st_mode & (S_IWGRP | S_IWOTH)) == 0 ? OK : fail("may be written by others");
}
