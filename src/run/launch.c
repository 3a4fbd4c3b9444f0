// SPDX-License-Identifier: MIT
// Finds the number of ranks of a job. Runs one rank on the main thread of this process (MPI), or all ranks as threads
// of this process (local communicator).
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/fatal.h"
#include "internal.h"

// The number of ranks is the launcher's, even if that is 1; else the requested one; else the product of the axes in
// [parallel], where auto counts as 1.
status launch_count_ranks(struct job_selection *selection)
{
    int launched = comm_launched_ranks();
    FAIL_AS_IF(launched > 0 && selection->ranks > 0 && launched != selection->ranks, EXIT_LAUNCH,
               "--ranks %" PRId64 ", but %d ranks were launched: leave --ranks out", selection->ranks, launched);
    if (launched > 0) {
        selection->ranks = launched;
    }
    if (selection->ranks == 0) {
        struct config config;
        TRY(job_read_config(&config, selection));
        selection->ranks = mesh_asked_ranks(&config.parallel, MESH_ALL_AXES);
    }
    return OK;
}

// Maximum ranks as threads of one process. Each rank has several threads, which synchronize in every collective.
enum { LOCAL_RANKS_MAX = 256 };

// Arguments and result of a rank that runs as a thread.
struct local_rank {
    launch_rank      *run;
    const void       *shared;
    struct local_hub *hub;
    int               rank;
    status            result;
};

static void *run_local_rank(void *argument)
{
    struct local_rank *local = argument;
    struct comm        comm;
    comm_open_local(&comm, local->hub, local->rank);
    local->result = local->run(local->shared, &comm);
    comm_close(&comm);
    return NULL;
}

static status run_local(launch_rank *run, const void *shared, int ranks)
{
    FAIL_AS_IF(ranks > LOCAL_RANKS_MAX, EXIT_LAUNCH,
               "%d ranks as threads of one process are more than the limit of %d: start them with mpirun or srun, or "
               "use fewer (--ranks)",
               ranks, LOCAL_RANKS_MAX);
    struct local_hub  *hub     = local_hub_open(ranks);
    struct local_rank *locals  = memory_allocate((size_t)ranks * sizeof(*locals));
    pthread_t         *threads = memory_allocate((size_t)ranks * sizeof(*threads));
    for (int rank = 0; rank < ranks; rank++) {
        locals[rank] = (struct local_rank){.run = run, .shared = shared, .hub = hub, .rank = rank};
    }
    for (int rank = 1; rank < ranks; rank++) {
        int error = pthread_create(&threads[rank], NULL, run_local_rank, &locals[rank]);
        if (error != 0) {
            FATAL(EXIT_LAUNCH, "cannot start rank %d of %d as a thread: %s", rank, ranks, strerror(error));
        }
    }
    run_local_rank(&locals[0]);
    for (int rank = 1; rank < ranks; rank++) {
        pthread_join(threads[rank], NULL);
    }
    status result = locals[0].result;
    local_hub_close(hub);
    free(locals);
    free(threads);
    return result;
}

// Every process has this error. Removes its text except on the first process, so that it is printed once.
static status print_once(status error)
{
    if (comm_launched_rank() > 0) {
        error.text[0] = '\0';
    }
    return error;
}

// Opens MPI. Fails if MPI has another number of ranks than the job, for example if each process is alone in its MPI
// world.
static status open_mpi(struct comm *comm, int ranks, bool is_named)
{
    TRY(comm_check_launch(is_named));
    TRY(comm_open_mpi(comm));
    if (comm->topology.ranks == 1 && ranks > 1) {
        comm_close(comm);
        return fail_as(EXIT_LAUNCH,
                       "MPI has 1 rank, the job %d: it was started by %s, but %s does not find the other ranks: launch "
                       "all ranks with one mpirun or srun of this MPI",
                       ranks, comm_launcher(), comm->library[0] != '\0' ? comm->library : "this MPI");
    }
    if (comm->topology.ranks != ranks) {
        comm_close(comm);
        return fail_as(EXIT_LAUNCH,
                       "MPI has %d ranks, the job %d: launch all ranks with one mpirun or srun of this MPI",
                       comm->topology.ranks, ranks);
    }
    return OK;
}

// Sends the error lines of the first failed rank to rank 0, which prints them.
static void share_lines(struct comm *comm, int rank, struct text_buffer *errors)
{
    enum { LINES_BYTES = 8192 };
    char *own = memory_allocate(LINES_BYTES);
    text_copy(own, LINES_BYTES, errors->text == NULL ? "" : errors->text);
    char *all = comm_gather(comm, own, LINES_BYTES);
    if (comm->topology.rank == 0 && rank > 0) {
        text_free(errors);
        text_append(errors, "%s", all + (size_t)rank * LINES_BYTES);
    }
    free(own);
    free(all);
}

// Checks that all ranks run the same build, and that no rank has failed already. Collective.
static status agree_to_start(struct comm *comm, status own, struct text_buffer *errors)
{
    TRY(peers_check_program(comm));
    int    first;
    status agreed = comm_agree_first(comm, own, &first);
    if (failed(&agreed)) {
        share_lines(comm, first, errors);
    }
    return agreed;
}

// Closes MPI. All ranks have the same error here, so the text is removed except on rank 0, which prints it.
static status close_mpi(struct comm *comm, status result)
{
    if (comm->topology.rank != 0) {
        result.text[0] = '\0';
    }
    comm_close(comm);
    return result;
}

static status run_mpi(launch_rank *run, const void *shared, int ranks, bool is_named, struct text_buffer *errors)
{
    struct comm comm;
    comm_watch_launcher();
    status opened = open_mpi(&comm, ranks, is_named);
    if (failed(&opened)) {
        return print_once(opened);
    }
    status met = agree_to_start(&comm, OK, errors);
    return close_mpi(&comm, failed(&met) ? met : run(shared, &comm));
}

status launch_fail(status own, struct text_buffer *errors)
{
    int launched = comm_launched_ranks();
    if (launched <= 1 || comm_has_opened_mpi()) {
        return own;
    }
    struct comm comm;
    status      opened = open_mpi(&comm, launched, false);
    return failed(&opened) ? print_once(own) : close_mpi(&comm, agree_to_start(&comm, own, errors));
}

// With communicator local, the ranks are threads. With auto and nccl, the processes of a launcher connect by MPI; NCCL
// is opened later and uses MPI as control plane.
status launch_ranks(const struct run_config *config, int ranks, launch_rank *run, const void *shared,
                    struct text_buffer *errors)
{
    const char *name     = config->communicator;
    int         launched = comm_launched_ranks();
    signals_catch(comm_launched_rank() <= 0, config->time_limit);
    if (strcmp(name, "mpi") == 0 || (strcmp(name, "local") != 0 && launched > 1)) {
        return run_mpi(run, shared, ranks, strcmp(name, "auto") != 0, errors);
    }
    FAIL_AS_IF(strcmp(name, "nccl") == 0 && ranks > 1, EXIT_LAUNCH,
               "[run] communicator = nccl: %d ranks need one process each: start them with mpirun or srun", ranks);
    FAIL_AS_IF(launched > 1, EXIT_LAUNCH,
               "%d processes were launched, but communicator local runs all ranks in one: start it without a launcher, "
               "or use --comm mpi",
               launched);
    return run_local(run, shared, ranks);
}
