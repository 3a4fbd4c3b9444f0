// SPDX-License-Identifier: MIT
// Observes the machine during the measured steps: the device (src/observe), and the CPU time that other processes take
// on the job's cores. That time is the busy time of these cores in /proc/stat minus the CPU time of the ranks. It
// includes steal time, but no interrupts, because these may serve the job's communication. Also serves profilers: emits
// NVTX ranges for ops, and starts collection at the selected steps.
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gswbench/clock.h"
#include "internal.h"

// Minimum seconds of a measurement. Over a shorter time the error is too large, because /proc/stat counts ticks of 10
// ms.
static const double wall_seconds_min = 1;

// CPU time and cores of a rank, which ranks exchange. Ranks that are threads of one process all report its CPU time.
struct usage {
    int64_t   node, process;
    uint64_t  machine;
    double    seconds;
    cpu_set_t cores;
};

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

static void read_busy(double *busy, FILE *file)
{
    char   line[512];
    double tick = 1 / (double)sysconf(_SC_CLK_TCK);
    while (fgets(line, sizeof(line), file) != NULL) {
        double user, nice, kernel, steal;
        int    processor;
        if (sscanf(line, "cpu%d %lf %lf %lf %*f %*f %*f %*f %lf", &processor, &user, &nice, &kernel, &steal) == 5 &&
            processor >= 0 && processor < PROCESSORS_MAX) {
            busy[processor] = tick * (user + nice + kernel + steal);
        }
    }
}

void processors_begin(struct processors *processors, const char *path)
{
    struct rusage usage;
    FILE         *file = fopen(path, "r");
    getrusage(RUSAGE_SELF, &usage);
    *processors = (struct processors){.is_begun     = true,
                                      .wall_seconds = file != NULL ? clock_seconds() : NAN,
                                      .own_seconds  = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime)};
    if (file != NULL) {
        read_busy(processors->busy_seconds, file);
        fclose(file);
    }
}

void processors_end(struct processors *processors, const char *path)
{
    struct processors end;
    if (!processors->is_begun) {
        return;
    }
    processors_begin(&end, path);
    processors->wall_seconds = end.wall_seconds - processors->wall_seconds;
    processors->own_seconds  = end.own_seconds - processors->own_seconds;
    for (int i = 0; i < PROCESSORS_MAX; i++) {
        processors->busy_seconds[i] = end.busy_seconds[i] - processors->busy_seconds[i];
    }
}

static bool is_process_counted(const struct usage *usages, int rank)
{
    for (int i = 0; i < rank; i++) {
        if (usages[i].node == usages[rank].node && usages[i].process == usages[rank].process) {
            return true;
        }
    }
    return false;
}

void processors_gather(const struct processors *processors, struct comm *comm, uint64_t machine,
                       struct result_rank *own)
{
    int          ranks = comm->topology.ranks;
    struct usage mine  = {
         .node = comm->topology.node, .process = getpid(), .machine = machine, .seconds = processors->own_seconds};
    bool      is_known = sched_getaffinity(0, sizeof(mine.cores), &mine.cores) == 0;
    cpu_set_t cores;
    CPU_ZERO(&cores);
    struct usage *all     = comm_gather(comm, &mine, sizeof(mine));
    double        foreign = 0;
    for (int rank = 0; rank < ranks; rank++) {
        if (all[rank].machine == machine) {
            CPU_OR(&cores, &cores, &all[rank].cores);
            foreign -= is_process_counted(all, rank) ? 0 : all[rank].seconds;
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

static bool has_device(const struct steps *steps)
{
    return steps->backend->ops->device_id != NULL;
}

void observations_open(struct steps *steps, int64_t sharers)
{
    char name[64];
    if (has_device(steps) && sharers == 1) {
        steps->backend->ops->device_id(steps->backend, name, sizeof(name));
        const struct observe_setup setup = {
            .library = OBSERVE_LIBRARY, .device = name, .seconds = steps->benchmark->job.config.run.observe_seconds};
        steps->observed.device = observer_open(&setup);
    }
}

void observations_gather(struct steps *steps, int64_t sharers)
{
    const struct comm_topology *topology = &steps->comm->topology;
    struct result              *result   = steps->result;
    struct observation          own;
    char                        missing[64];
    if (!has_device(steps)) {    // all ranks have the same backend, so all return here
        return;
    }
    snprintf(missing, sizeof(missing), "%" PRId64 " ranks share the device", sharers);
    observation_init(&own, missing);
    if (steps->observed.device != NULL) {
        observer_close(steps->observed.device, &own);
        steps->observed.device = NULL;
    }
    own.rank                  = topology->rank;
    result->observations      = comm_gather(steps->comm, &own, sizeof(own));
    result->observation_count = topology->ranks;
}

void profile_open(struct steps *steps)
{
    steps->ranges = ranges_open(steps->plan, step_can_capture(steps->step));
    profile_watch(steps, true);
}

void profile_advise(const struct profile_config *profile)
{
    if (profile_config_is_set(profile) && getenv("NSYS_PROFILING_SESSION_ID") == NULL) {
        printf("# profile steps %" PRId64 " to %" PRId64 ": no profiler is attached. After mpirun or srun, write:\n"
               "#   nsys profile -t cuda,nvtx -s none -c cudaProfilerApi --capture-range-end=stop gswbench ...\n",
               profile->start_step, profile_config_last_step(profile));
    }
}

void profile_watch(const struct steps *steps, bool is_on)
{
    const struct step_watch watch = {ranges_begin_op, ranges_end_op, steps->ranges};
    step_set_watch(steps->step, is_on && steps->ranges != NULL ? &watch : NULL);
}

void profile_close(struct steps *steps)
{
    if (steps->ranges != NULL) {
        profile_watch(steps, false);
        ranges_close(steps->ranges);
        steps->ranges = NULL;
    }
}

// Starts or ends the collection of a profiler, by the profiler API and by an NVTX range. The range also works without a
// device.
static void collect(const struct steps *steps, bool is_on, int64_t step)
{
    struct backend *backend = steps->backend;
    if (!is_on) {
        ranges_end(steps->ranges);
    }
    if (backend->ops->profile != NULL) {
        backend->ops->profile(backend, is_on);
    }
    if (is_on) {
        ranges_begin(steps->ranges, RANGE_PROFILE, step);
    }
}

void profile_begin(const struct steps *steps, int64_t step)
{
    const struct profile_config *profile = &steps->benchmark->job.config.profile;
    if (step == profile->start_step && profile_config_has_rank(profile, steps->comm->topology.rank)) {
        collect(steps, true, step);
    }
}

void profile_end(const struct steps *steps, int64_t step, bool is_stopped)
{
    const struct profile_config *profile = &steps->benchmark->job.config.profile;
    int64_t                      last    = profile_config_last_step(profile);
    bool                         is_last = step == last || (is_stopped && step < last && step >= profile->start_step);
    if (profile_config_is_set(profile) && is_last && profile_config_has_rank(profile, steps->comm->topology.rank)) {
        collect(steps, false, step);
    }
}
