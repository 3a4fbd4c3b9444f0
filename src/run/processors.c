// SPDX-License-Identifier: MIT
// CPU time that other processes took during the measured steps: busy time of the job's CPUs in /proc/stat minus the
// ranks' own. Interrupts may be our communication and are not counted. Steal time is foreign.
#define _GNU_SOURCE
#include "internal.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gswbench/clock.h"

// /proc/stat has ticks of 10 ms; over less time the error exceeds the limits.
static const double wall_seconds_min = 1;

// Exchanged between ranks. Threads of one process share one CPU time.
struct share {
    int64_t   node, process;
    uint64_t  machine;
    double    seconds;
    cpu_set_t cores;
};

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

static void add_busy(double *busy, double sign, FILE *file)
{
    char   line[512];
    double tick = 1 / (double)sysconf(_SC_CLK_TCK);
    while (fgets(line, sizeof(line), file) != NULL) {
        double user, nice, kernel, steal;
        int    processor;
        if (sscanf(line, "cpu%d %lf %lf %lf %*f %*f %*f %*f %lf", &processor, &user, &nice, &kernel, &steal) == 5 &&
            processor >= 0 && processor < PROCESSORS_MAX) {
            busy[processor] += sign * tick * (user + nice + kernel + steal);
        }
    }
}

// sign is -1 at the start and 1 at the end, leaving the difference.
static void sample(struct processors *processors, double sign, const char *path)
{
    struct rusage usage;
    FILE         *file = fopen(path, "r");
    getrusage(RUSAGE_SELF, &usage);
    processors->wall_seconds += file != NULL ? sign * clock_seconds() : NAN;
    processors->own_seconds += sign * (seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
    if (file != NULL) {
        add_busy(processors->busy_seconds, sign, file);
        fclose(file);
    }
}

void processors_begin(struct processors *processors, const char *path)
{
    *processors = (struct processors){.is_begun = true};
    sample(processors, -1, path);
}

void processors_end(struct processors *processors, const char *path)
{
    if (processors->is_begun) {
        sample(processors, 1, path);
    }
}

static bool is_counted(const struct share *shares, int rank)
{
    for (int i = 0; i < rank; i++) {
        if (shares[i].node == shares[rank].node && shares[i].process == shares[rank].process) {
            return true;
        }
    }
    return false;
}

void processors_gather(const struct processors *processors, struct comm *comm, uint64_t machine,
                       struct result_rank *own)
{
    int          ranks = comm->topology.ranks;
    struct share mine  = {
         .node = comm->topology.node, .process = getpid(), .machine = machine, .seconds = processors->own_seconds};
    bool      is_known = sched_getaffinity(0, sizeof(mine.cores), &mine.cores) == 0;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    struct share *all     = comm_gather(comm, &mine, sizeof(mine));
    double        foreign = 0;
    for (int rank = 0; rank < ranks; rank++) {
        if (all[rank].machine == machine) {
            CPU_OR(&cores, &cores, &all[rank].cores);
            foreign -= is_counted(all, rank) ? 0 : all[rank].seconds;
        }
    }
    for (size_t processor = 0; processor < PROCESSORS_MAX; processor++) {
        foreign += CPU_ISSET(processor, &cores) ? processors->busy_seconds[processor] : 0;
    }
    free(all);
    own->processors = CPU_COUNT(&cores);
    own->foreign =
        is_known && processors->wall_seconds >= wall_seconds_min ? fmax(0, foreign / processors->wall_seconds) : NAN;
}
