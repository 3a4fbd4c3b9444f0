// SPDX-License-Identifier: MIT
// Ends this process when its launcher ends. Otherwise ranks would survive a killed mpirun, and MPI libraries react
// differently to the lost connection.
//
// A rank watches its nearest ancestor process that is not part of the rank. On mpirun's host this is mpirun, on other
// hosts its daemon (orted, prted, hydra_pmi_proxy, slurmstepd). A script that the launcher runs as the rank has the
// same rank in its environment, and is skipped.
#define _GNU_SOURCE
#include <fcntl.h>
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
#include "internal.h"

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

// Reads /proc/NUMBER/stat. Returns false if there is no such process. The fields are read after the last closing
// parenthesis, because the program's name is in parentheses and may contain any character.
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

// Returns whether a process has this process's rank in its environment. If the environment cannot be read, the process
// belongs to another user and is part of the launcher.
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

// Finds the ancestor to watch. Returns false if no ancestor is visible, as for the first process of a container.
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

// Opens a descriptor that becomes readable when the process ends. Returns -1 on Linux before 5.3.
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
        poll(&file, 1, file.fd >= 0 ? -1 : LOOK_MS);    // with a negative descriptor, poll only sleeps
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
    const char           *variable = comm_rank_variable();
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
