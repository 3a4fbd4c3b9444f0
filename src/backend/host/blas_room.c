// SPDX-License-Identifier: MIT
// Checks in advance that the limit on address space (ulimit -v) leaves room for OpenBLAS. OpenBLAS maps one buffer for
// each concurrent thread at its first GEMM. If the limit is too low, OpenBLAS retries forever.
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gswbench/fatal.h"
#include "internal.h"

enum { BUFFER_BYTES = 128 << 20 };

// promised: bytes that all ranks of this process have reserved and not yet released. reused: bytes of the buffers that
// OpenBLAS mapped for earlier jobs of this process, and uses again. Earlier jobs may have reserved more, if not all of
// their threads called OpenBLAS at the same time.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t         promised, reused;

static bool is_limited(struct rlimit *limit)
{
    return getrlimit(RLIMIT_AS, limit) == 0 && limit->rlim_cur != RLIM_INFINITY;
}

// Returns the address space in use. Uses system calls only, because stdio may not be initialised yet.
static int64_t mapped_bytes(void)
{
    char    text[64] = "";
    int64_t pages    = 0;
    int     file     = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t bytes    = file >= 0 ? read(file, text, sizeof(text) - 1) : 0;
    for (ssize_t i = 0; i < bytes && text[i] >= '0' && text[i] <= '9'; i++) {
        pages = 10 * pages + text[i] - '0';
    }
    if (file >= 0) {
        close(file);
    }
    return pages * sysconf(_SC_PAGESIZE);
}

// The following check runs before library constructors, from .preinit_array, which a shared library must not have.
// gswbench_core is a shared library (gswbench_core_EXPORTS) only in packed programs, which contain their own OpenBLAS
// and do not need the check.
#if !defined(GSWBENCH_SANITIZED) && !defined(gswbench_core_EXPORTS)
enum { LOADING_BYTES = BUFFER_BYTES + (32 << 20) };

static char one_thread[] = "OPENBLAS_NUM_THREADS=1";

// Executes the program again with OPENBLAS_NUM_THREADS=1. Returns only if the variable is 1 already, or if this fails.
static void execute_again(char **arguments, char **variables)
{
    size_t count = 0, kept = 0;
    for (; variables[count] != NULL; count++) {
        if (strcmp(variables[count], one_thread) == 0) {
            return;
        }
    }
    char **more = mmap(NULL, (count + 2) * sizeof(*more), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (more == MAP_FAILED) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (strncmp(variables[i], one_thread, sizeof(one_thread) - 2) != 0) {
            more[kept++] = variables[i];
        }
    }
    more[kept] = one_thread;
    execve("/proc/self/exe", arguments, more);
}

// Newer OpenBLAS versions map a buffer for each of their threads when they are loaded, before main. The program does
// not use these threads. If address space is limited, it therefore executes itself again with OPENBLAS_NUM_THREADS=1.
// .preinit_array runs before any library constructor, when only system calls are safe.
static void check_loading(int count, char **arguments, char **variables)
{
    static const char message[] = "gswbench: out of address space: its limit (ulimit -v) leaves OpenBLAS less than the "
                                  "160 MiB that it may take when it is loaded; raise the limit\n";
    struct rlimit     limit;
    (void)count;
    if (!is_limited(&limit)) {
        return;
    }
    execute_again(arguments, variables);
    if ((int64_t)limit.rlim_cur - mapped_bytes() < LOADING_BYTES) {
        ssize_t unused = write(STDERR_FILENO, message, sizeof(message) - 1);
        (void)unused;
        _exit(EXIT_MEMORY);
    }
}

__attribute__((section(".preinit_array"), used)) static void (*before_libraries)(int, char **, char **) = check_loading;
#endif

// Returns the bytes of the buffers that OpenBLAS has mapped. Once the jobs of this process have ended, it has no other
// private mapping of BUFFER_BYTES or more without a file or name.
static int64_t buffer_bytes(void)
{
    FILE         *maps = fopen("/proc/self/maps", "re");
    char          line[512], name;
    unsigned long begin, end, inode;
    int64_t       bytes = 0;
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        if (sscanf(line, "%lx-%lx rw-p %*x %*s %lu %c", &begin, &end, &inode, &name) == 3 && inode == 0) {
            bytes += (int64_t)((end - begin) / BUFFER_BYTES * BUFFER_BYTES);    // neighbours are one mapping
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return bytes;
}

int64_t host_blas_reserve(int threads)
{
    struct rlimit limit;
    int64_t       bytes = (int64_t)threads * BUFFER_BYTES;
    if (!is_limited(&limit)) {
        return 0;
    }
    pthread_mutex_lock(&mutex);
    promised += bytes;
    int64_t left = (int64_t)limit.rlim_cur - mapped_bytes() - number_max(promised - reused, 0);
    pthread_mutex_unlock(&mutex);
    if (left < 0) {
        FATAL(EXIT_MEMORY,
              "out of address space: its limit (ulimit -v) is %" PRId64 " MiB, and OpenBLAS needs %" PRId64
              " MiB of it for %d thread%s of this rank: %" PRId64 " MiB are missing; raise the limit, or take fewer "
              "threads (run.threads)",
              (int64_t)(limit.rlim_cur >> 20), bytes >> 20, threads, threads == 1 ? "" : "s", (-left >> 20) + 1);
    }
    return bytes;
}

void host_blas_release(int64_t bytes)
{
    pthread_mutex_lock(&mutex);
    promised -= bytes;
    reused = bytes > 0 && promised == 0 ? buffer_bytes() : reused;
    pthread_mutex_unlock(&mutex);
}
