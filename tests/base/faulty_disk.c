// SPDX-License-Identifier: MIT
// Library for LD_PRELOAD that injects disk errors into system calls which write regular files or folders. Writes to
// terminals and pipes are not counted. close takes effect before it fails, as on a real disk.
//
// FAULTY_CALL      number of the call that fails; the first is 1
// FAULTY_ERRNO     errno of that call
// FAULTY_SIGNAL    sends this signal to the process before that call; the call then succeeds
// FAULTY_SECONDS   delays that call, or every call if FAULTY_CALL is not set
// FAULTY_NAME      counts only reads, writes and syncs of files whose path contains this text
// FAULTY_OPENED    logs every open of a path that contains this text
// FAULTY_PIPE      number of such an open, counted from 1, before which the file is replaced by a pipe
// FAULTY_LOG       file that gets a line for each injected fault and logged open
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE    // the wrappers that it adds have the names of the functions defined below
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static atomic_int calls;

static void tell(const char *name, int call)
{
    const char *path = getenv("FAULTY_LOG");
    FILE       *file = path != NULL ? fopen(path, "ae") : NULL;    // libc-internal calls bypass this library
    if (file != NULL) {
        fprintf(file, "%d %s\n", call, name);
        fclose(file);
    }
}

static void wait_for(double seconds)
{
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}, NULL);
}

// Counts this call. Returns whether it must fail, and then sets errno.
static bool fails(const char *name)
{
    const char *wanted = getenv("FAULTY_CALL"), *reason = getenv("FAULTY_ERRNO"), *number = getenv("FAULTY_SIGNAL");
    const char *seconds = getenv("FAULTY_SECONDS");
    int         call    = atomic_fetch_add(&calls, 1) + 1;
    if (seconds != NULL && (wanted == NULL || atoi(wanted) == call)) {
        wait_for(atof(seconds));
    }
    if (wanted == NULL || (reason == NULL && number == NULL) || atoi(wanted) != call) {
        return false;
    }
    tell(name, call);
    if (number != NULL) {
        raise(atoi(number));
        return false;
    }
    errno = atoi(reason);
    return true;
}

static bool is_named(int descriptor)
{
    const char *text = getenv("FAULTY_NAME");
    char        link[64], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
    ssize_t length                = text != NULL ? readlink(link, path, sizeof(path) - 1) : 0;
    path[length > 0 ? length : 0] = '\0';
    return text == NULL || strstr(path, text) != NULL;
}

static bool is_of_a_file(int descriptor)
{
    struct stat about;
    if (!is_named(descriptor)) {
        return false;
    }
    return fstat(descriptor, &about) == 0 && (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) &&
           (fcntl(descriptor, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

static bool is_of_a_folder(int descriptor)
{
    struct stat about;
    return fstat(descriptor, &about) == 0 && S_ISDIR(about.st_mode);
}

// Declares `next`, a pointer to the C library's function of this name.
#define NEXT(name)                                                                                                     \
    static __typeof__(name) *next;                                                                                     \
    if (next == NULL) {                                                                                                \
        void *found = dlsym(RTLD_NEXT, #name);                                                                         \
        memcpy(&next, &found, sizeof(next));                                                                           \
    }

ssize_t write(int descriptor, const void *data, size_t bytes)
{
    NEXT(write)
    return is_of_a_file(descriptor) && fails("write") ? -1 : next(descriptor, data, bytes);
}

// Reads are counted only if FAULTY_NAME is set.
ssize_t pread(int descriptor, void *data, size_t bytes, off_t offset)
{
    NEXT(pread)
    bool counts = getenv("FAULTY_NAME") != NULL && is_named(descriptor);
    return counts && fails("pread") ? -1 : next(descriptor, data, bytes, offset);
}

ssize_t pwrite(int descriptor, const void *data, size_t bytes, off_t offset)
{
    NEXT(pwrite)
    return is_of_a_file(descriptor) && fails("pwrite") ? -1 : next(descriptor, data, bytes, offset);
}

int fsync(int descriptor)
{
    NEXT(fsync)
    return is_named(descriptor) && fails(is_of_a_folder(descriptor) ? "fsync of a folder" : "fsync") ? -1
                                                                                                     : next(descriptor);
}

int close(int descriptor)
{
    NEXT(close)
    bool counts = is_of_a_file(descriptor);
    int  result = next(descriptor);
    return counts && fails("close") ? -1 : result;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    NEXT(renameat)
    return getenv("FAULTY_NAME") == NULL && fails("renameat") ? -1 : next(from_folder, from, to_folder, to);
}

int rename(const char *from, const char *to)
{
    NEXT(rename)
    return getenv("FAULTY_NAME") == NULL && fails("rename") ? -1 : next(from, to);
}

// Never returns an error, because the program could then not remove its temporary files. FAULTY_SIGNAL may kill the
// process here.
int unlinkat(int folder, const char *path, int flags)
{
    NEXT(unlinkat)
    if (getenv("FAULTY_SIGNAL") != NULL) {
        fails("unlinkat");
    }
    return next(folder, path, flags);
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    NEXT(mkdirat)
    return getenv("FAULTY_NAME") == NULL && fails("mkdirat") ? -1 : next(folder, path, mode);
}

int mkdir(const char *path, mode_t mode)
{
    NEXT(mkdir)
    return getenv("FAULTY_NAME") == NULL && fails("mkdir") ? -1 : next(path, mode);
}

// Opening a file to read it is not counted, because libraries read their configuration files.
static bool writes(int flags)
{
    return (flags & (O_CREAT | O_DIRECTORY)) != 0;
}

static void tell_opened(const char *path)
{
    const char *text = getenv("FAULTY_OPENED");
    if (text == NULL || strstr(path, text) == NULL) {
        return;
    }
    static atomic_int opened;
    const char       *number = getenv("FAULTY_PIPE");
    if (number != NULL && atoi(number) == atomic_fetch_add(&opened, 1) + 1) {
        (void)!unlink(path);
        (void)!mkfifo(path, 0600);
    }
    tell(path, 0);
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    NEXT(open)
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    tell_opened(path);
    return getenv("FAULTY_NAME") == NULL && writes(flags) && fails("open") ? -1 : next(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    NEXT(openat)
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return getenv("FAULTY_NAME") == NULL && writes(flags) && fails("openat") ? -1 : next(folder, path, flags, mode);
}
