// SPDX-License-Identifier: MIT
// Room for the buffers of OpenBLAS. It maps one for each thread that multiplies at the same time, when that first does,
// and where the limit on address space (ulimit -v) has no room it tries again for ever: so room is asked for before.
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gswbench/fatal.h"
#include "internal.h"

enum { BUFFER_BYTES = 128 << 20 };

// Ranks that are threads of one process share its address space.
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t         promised;

static int64_t used_bytes(void)
{
    int64_t pages = 0;
    FILE   *file  = fopen("/proc/self/statm", "re");
    if (file == NULL) {
        return 0;
    }
    if (fscanf(file, "%" SCNd64, &pages) != 1) {
        pages = 0;
    }
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

int64_t host_blas_reserve(int threads)
{
    struct rlimit limit;
    int64_t       bytes = (int64_t)threads * BUFFER_BYTES;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return 0;
    }
    pthread_mutex_lock(&mutex);
    promised += bytes;
    int64_t left = (int64_t)limit.rlim_cur - used_bytes() - promised;
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
    pthread_mutex_unlock(&mutex);
}
