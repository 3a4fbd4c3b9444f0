// SPDX-License-Identifier: MIT
// Has the functions that all communicators share, with stubs for communicators that the build lacks. Reads the
// launcher's variables, and notices when the launcher ends.
//
// A killed mpirun does not end its ranks, and MPI libraries react differently to the lost connection. So a rank watches
// its nearest ancestor that is not part of the rank: mpirun on its own host, its daemon (orted, prted, hydra_pmi_proxy,
// slurmstepd) on others. A script that starts the rank has the same rank in its environment and is skipped.
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "internal.h"

// Returns the first variable that holds a number of at least minimum, and sets the number; NULL and -1: none.
static const char *find_variable(const char *const *names, long minimum, int *found)
{
    for (; *names != NULL; names++) {
        const char *text   = getenv(*names);
        char       *end    = NULL;
        long        number = text != NULL ? strtol(text, &end, 10) : -1;
        if (end != text && number >= minimum && number <= INT_MAX) {
            *found = (int)number;
            return *names;
        }
    }
    *found = -1;
    return NULL;
}

int comm_launched_ranks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", NULL};
    int                      ranks;
    return find_variable(names, 1, &ranks) != NULL ? ranks : 0;
}

static const char *const rank_variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", NULL};

int comm_launched_rank(void)
{
    int rank;
    find_variable(rank_variables, 0, &rank);
    return rank;
}

status comm_check_launch(bool is_named)
{
    static const char remedy[] = "use srun --mpi=pmix (srun --mpi=list says what this Slurm has), or mpirun";
    int               ranks    = comm_launched_ranks();
    bool              has_pmi2 = getenv("PMI_SIZE") != NULL;
    bool              is_direct =
        getenv("SLURM_STEP_NUM_TASKS") != NULL && getenv("OMPI_COMM_WORLD_SIZE") == NULL && getenv("PMIX_RANK") == NULL;
    if (ranks <= 1 || !is_direct) {
        return OK;
    }
    if (!has_pmi2) {
        return fail_as(EXIT_LAUNCH, "srun started %d processes without PMIx, so MPI cannot connect them: %s", ranks,
                       remedy);
    }
    if (comm_mpi_asks_for_pmix() && !is_named) {    // MPI would end the process before we can print an error
        return fail_as(EXIT_LAUNCH,
                       "srun started %d processes with PMI-2 instead of PMIx, which few builds of Open MPI support: "
                       "%s; or force it with --comm mpi",
                       ranks, remedy);
    }
    return OK;
}

const char *comm_launcher(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") != NULL ? "Open MPI's mpirun (OMPI_COMM_WORLD_SIZE is set)"
           : getenv("PMIX_RANK") != NULL          ? "a launcher with PMIx, such as srun --mpi=pmix (PMIX_RANK is set)"
           : getenv("PMI_SIZE") != NULL           ? "mpirun of MPICH or Intel MPI, or srun --mpi=pmi2 (PMI_SIZE is set)"
           : getenv("SLURM_STEP_NUM_TASKS") != NULL ? "srun (SLURM_STEP_NUM_TASKS is set)"
                                                    : "no launcher";
}

#ifndef GSWBENCH_NCCL
status comm_detect_nccl(void)
{
    return fail_as(EXIT_LAUNCH, "this gswbench was built without NCCL: set NCCL_HOME, and build again");
}

status comm_open_nccl(struct comm *comm, struct comm *control, struct backend *backend,
                      const struct comm_nccl_setup *setup)
{
    (void)comm, (void)control, (void)backend, (void)setup;
    return comm_detect_nccl();
}
#endif

void comm_close(struct comm *comm)
{
    comm->ops->close(comm);
}

int64_t comm_ring_member(int64_t index, int64_t size)
{
    return (index % size + size) % size;
}

int comm_rendezvous_stream(int stream)
{
    return stream == STREAM_PIPELINE_RECEIVE ? STREAM_PIPELINE_SEND : stream;
}

struct comm_topology comm_one_host(int rank, int ranks)
{
    struct comm_topology topology = {
        .rank = rank, .ranks = ranks, .local_rank = rank, .local_ranks = ranks, .nodes = 1};
    gethostname(topology.host, sizeof(topology.host) - 1);
    return topology;
}

void *comm_gather(struct comm *comm, const void *own, size_t bytes)
{
    void *all = memory_allocate((size_t)comm->topology.ranks * bytes);
    comm->ops->gather_all(comm, own, all, (int64_t)bytes);
    return all;
}

static double choose(struct comm *comm, double own, double (*better)(double, double))
{
    double *all = comm_gather(comm, &own, sizeof(own));
    for (int i = 0; i < comm->topology.ranks; i++) {
        own = better(own, all[i]);
    }
    free(all);
    return own;
}

double comm_largest(struct comm *comm, double own)
{
    return choose(comm, own, fmax);
}

double comm_smallest(struct comm *comm, double own)
{
    return choose(comm, own, fmin);
}

status comm_find_failed(struct comm *comm, status own, int *first)
{
    status *all    = comm_gather(comm, &own, sizeof(own));
    status  result = OK;
    *first         = -1;
    for (int rank = comm->topology.ranks - 1; rank >= 0; rank--) {
        if (failed(&all[rank])) {
            *first = rank;
            result = all[rank];
        }
    }
    free(all);
    return result;
}

status comm_agree_first(struct comm *comm, status own, int *first)
{
    status error = comm_find_failed(comm, own, first);
    if (*first <= 0) {
        return error;
    }
    status named  = {.exit_code = error.exit_code};
    int    length = snprintf(named.text, sizeof(named.text), "rank %d: ", *first);
    text_copy(named.text + length, sizeof(named.text) - (size_t)length, error.text);    // keeps further lines
    return named;
}

status comm_agree(struct comm *comm, status own)
{
    int first;
    return comm_agree_first(comm, own, &first);
}

enum { LOOK_MS = 200, SECONDS_TO_LEAVE = 2, ANCESTORS_MAX = 64, ENVIRONMENT_BYTES_MAX = 4 << 20 };

static atomic_bool is_watching, has_ended;

// A process in /proc. Its start time distinguishes it from a later process with the same number.
struct process {
    long               number, parent;
    char               state;
    unsigned long long started;
};

static char *read_file(long number, const char *name, size_t maximum, size_t *bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%ld/%s", number, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return NULL;
    }
    char   *text = memory_allocate(maximum + 1);
    ssize_t count;
    *bytes = 0;
    while (*bytes < maximum && (count = read(file, text + *bytes, maximum - *bytes)) > 0) {
        *bytes += (size_t)count;
    }
    close(file);
    text[*bytes] = '\0';
    return text;
}

// Reads /proc/NUMBER/stat; false: no such process. The fields follow the last closing parenthesis, because the
// program's name before it is in parentheses and may contain any character.
static bool read_process(struct process *process, long number)
{
    size_t bytes;
    char  *text    = read_file(number, "stat", 4096, &bytes);
    char  *bracket = text != NULL ? strrchr(text, ')') : NULL;
    *process       = (struct process){.number = number};
    bool is_read   = bracket != NULL && sscanf(bracket + 1,
                                               " %c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                                                 "%*d %llu",
                                               &process->state, &process->parent, &process->started) == 3;
    free(text);
    return is_read;
}

static bool is_same(const struct process *process)
{
    struct process now;
    return read_process(&now, process->number) && now.started == process->started && strchr("ZXx", now.state) == NULL;
}

// Returns whether a process has the same rank in its environment. The environment of another user's process cannot be
// read; such a process is the launcher's.
static bool has_rank(long number, const char *variable)
{
    size_t      bytes;
    const char *value       = getenv(variable);
    size_t      name        = strlen(variable);
    char       *environment = read_file(number, "environ", ENVIRONMENT_BYTES_MAX, &bytes);
    bool        has         = false;
    for (size_t i = 0; environment != NULL && i < bytes && !has; i += strlen(environment + i) + 1) {
        const char *entry = environment + i;
        has = strncmp(entry, variable, name) == 0 && entry[name] == '=' && strcmp(entry + name + 1, value) == 0;
    }
    free(environment);
    return has;
}

// Returns false if no ancestor is visible, as for the first process of a container.
static bool find_launcher(struct process *launcher, const char *variable)
{
    long parent = getppid();
    for (int i = 0; i < ANCESTORS_MAX && parent > 1; i++) {
        if (!read_process(launcher, parent)) {
            return false;
        }
        if (!has_rank(parent, variable)) {
            return true;
        }
        parent = launcher->parent;
    }
    return false;
}

// Returns -1 before Linux 5.3.
static int open_process(long number)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, (pid_t)number, 0U);
#else
    (void)number;
    return -1;
#endif
}

static void await_end(const struct process *launcher)
{
    struct pollfd file = {.fd = open_process(launcher->number), .events = POLLIN};
    while (is_same(launcher)) {
        poll(&file, 1, file.fd >= 0 ? -1 : LOOK_MS);    // a descriptor below 0 is passed over
    }
    if (file.fd >= 0) {
        close(file.fd);
    }
}

static void *look_on(void *argument)
{
    struct process *launcher = argument;
    char            host[64] = "";
    await_end(launcher);
    gethostname(host, sizeof(host) - 1);
    fprintf(stderr, "gswbench: rank %d on %s: its launcher (pid %ld) has ended: so does this rank\n",
            comm_launched_rank(), host, launcher->number);
    has_ended = true;
    nanosleep(&(struct timespec){.tv_sec = SECONDS_TO_LEAVE}, NULL);
    _exit(EXIT_LOST);
}

void comm_watch_launcher(void)
{
    static struct process launcher;
    pthread_t             thread;
    int                   rank;
    const char           *variable = find_variable(rank_variables, 0, &rank);
    if (variable == NULL || atomic_exchange(&is_watching, true) || !find_launcher(&launcher, variable)) {
        return;
    }
    if (pthread_create(&thread, NULL, look_on, &launcher) == 0) {
        pthread_detach(thread);
    }
}

bool comm_has_lost_launcher(void)
{
    return has_ended;
}
