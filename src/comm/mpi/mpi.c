// SPDX-License-Identifier: MIT
// Ranks as MPI processes: startup, topology, control plane and shutdown.
#include "mpi_internal.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/text.h"

enum { EAGER_POLLS = 512, PAUSE_NS = 50000 };

void mpi_check(int error, const char *call, const char *file, int line)
{
    if (error != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int  length;
        MPI_Error_string(error, text, &length);
        fatal_at(file, line, EXIT_LOST, "%s: %s", call, text);
    }
}

static void abort_job(int exit_code)
{
    MPI_Abort(MPI_COMM_WORLD, exit_code);
}

int mpi_test_all(MPI_Request *requests, int count, MPI_Status *statuses)
{
    static const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int polls = 0;; polls++) {
        int is_done;
        int error = MPI_Testall(count, requests, &is_done, statuses);
        if (is_done || error != MPI_SUCCESS) {
            return error;
        }
        if (polls < EAGER_POLLS) {
            sched_yield();
        } else {
            nanosleep(&pause, NULL);
        }
    }
}

void mpi_wait_all(MPI_Request *requests, int count)
{
    MPI_CHECK(mpi_test_all(requests, count, MPI_STATUSES_IGNORE));
}

static void barrier(struct comm *comm)
{
    (void)comm;
    MPI_Request request;
    MPI_CHECK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    mpi_wait_all(&request, 1);
}

static int control_count(int64_t bytes)
{
    if (bytes > INT_MAX) {
        FATAL(EXIT_INTERNAL, "%lld bytes are too many for the control plane", (long long)bytes);
    }
    return (int)bytes;
}

static void gather_all(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    (void)comm;
    MPI_Request request;
    int         count = control_count(bytes);
    MPI_CHECK(MPI_Iallgather(in, count, MPI_BYTE, out, count, MPI_BYTE, MPI_COMM_WORLD, &request));
    mpi_wait_all(&request, 1);
}

static void share(struct comm *comm, void *data, int64_t bytes, int from)
{
    (void)comm;
    MPI_Request request;
    MPI_CHECK(MPI_Ibcast(data, control_count(bytes), MPI_BYTE, from, MPI_COMM_WORLD, &request));
    mpi_wait_all(&request, 1);
}

static void close_mpi(struct comm *comm)
{
    free(comm->state);
    fatal_set_hook(NULL);
    MPI_CHECK(MPI_Finalize());
}

static const struct comm_ops mpi_ops = {
    .name        = "mpi",
    .close       = close_mpi,
    .group_open  = mpi_group_open,
    .group_close = mpi_group_close,
    .run         = mpi_run,
    .barrier     = barrier,
    .gather_all  = gather_all,
    .share       = share,
};

// Finds the caller's local rank and its host's number. Hosts are numbered by their lowest rank.
static void find_node(struct comm_topology *topology)
{
    MPI_Comm node, leaders;
    MPI_CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, topology->rank, MPI_INFO_NULL, &node));
    MPI_CHECK(MPI_Comm_rank(node, &topology->local_rank));
    MPI_CHECK(MPI_Comm_size(node, &topology->local_ranks));
    MPI_CHECK(MPI_Comm_split(MPI_COMM_WORLD, topology->local_rank == 0 ? 0 : MPI_UNDEFINED, topology->rank, &leaders));
    int where[2] = {0, 0};
    if (leaders != MPI_COMM_NULL) {
        MPI_CHECK(MPI_Comm_rank(leaders, &where[0]));
        MPI_CHECK(MPI_Comm_size(leaders, &where[1]));
        MPI_CHECK(MPI_Comm_free(&leaders));
    }
    MPI_CHECK(MPI_Bcast(where, 2, MPI_INT, 0, node));
    MPI_CHECK(MPI_Comm_free(&node));
    topology->node  = where[0];
    topology->nodes = where[1];
}

// Shortens "Open MPI v4.1.4, package: ..." or "MPICH Version:\t4.0.2\n..." to the text before a comma or newline.
static void name_library(struct comm *comm)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int  length;
    MPI_CHECK(MPI_Get_library_version(text, &length));
    text[strcspn(text, ",\n")] = '\0';
    text_printable(comm->library, sizeof(comm->library), text);
}

status mpi_module_open(struct comm *comm)
{
    int provided, rank, ranks;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) {
        return fail_as(EXIT_LAUNCH, "MPI does not start: see its message above");
    }
    MPI_CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    fatal_set_hook(abort_job);
    struct mpi_state *state = memory_allocate(sizeof(*state));
    state->message_bytes    = MPI_MESSAGE_BYTES;
    *comm                   = (struct comm){.ops         = &mpi_ops,
                                            .state       = state,
                                            .topology    = comm_one_host(rank, ranks),
                                            .is_threaded = provided == MPI_THREAD_MULTIPLE};
    find_node(&comm->topology);
    name_library(comm);
    return OK;
}

// Open MPI 5 requires PMIx, and builds of version 4 with PMI-2 are rare.
bool mpi_module_asks_for_pmix(void)
{
#ifdef OPEN_MPI
    return true;
#else
    return false;
#endif
}

bool mpi_module_has_opened(void)
{
    int has;
    MPI_CHECK(MPI_Initialized(&has));
    return has;
}
