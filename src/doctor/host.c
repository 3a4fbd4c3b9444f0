// SPDX-License-Identifier: MIT
// Checks the host: system, processors, memory, limits of a process, and disk space for results.
#define _GNU_SOURCE    // sched_getaffinity
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "gswbench/text.h"
#include "gswbench/version.h"
#include "internal.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

void doctor_check_host(struct doctor *doctor)
{
    char           name[128], model[128], total[64];
    struct utsname kernel;
    cpu_set_t      allowed;
    int            cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
    long           all   = sysconf(_SC_NPROCESSORS_ONLN);
    uname(&kernel);
    doctor_read(doctor, "/etc/os-release", "PRETTY_NAME", name, sizeof(name));
    doctor_read(doctor, "/proc/cpuinfo", "model name", model, sizeof(model));
    doctor_read(doctor, "/proc/meminfo", "MemTotal", total, sizeof(total));
    doctor_add(doctor, "system", DOCTOR_OK, "%s, Linux %s", name[0] != '\0' ? name : "unknown distribution",
               kernel.release);
    doctor_judge(doctor, "processor", cores >= all / 2, DOCTOR_WARNING,
                 "ask the launcher for more cores (srun --cpus-per-task, mpirun --bind-to none)",
                 "%s, %d of %ld cores allowed, %.1f GiB of memory", model, cores, all,
                 strtod(total, NULL) * 1024 / GIB);
}

const char *const doctor_features[] = {
#ifdef GSWBENCH_CUDA
    "CUDA " TEXT_OF_VALUE(GSWBENCH_CUDA_MAJOR),
#endif
#ifdef GSWBENCH_NCCL
    "NCCL",
#endif
#ifdef GSWBENCH_MPI
    "MPI",
#endif
    NULL,
};

void doctor_check_build(struct doctor *doctor)
{
    struct text_buffer with = {.text = NULL};
    for (int i = 0; doctor_features[i] != NULL; i++) {
        text_append(&with, "%s%s", i > 0 ? ", " : "", doctor_features[i]);
    }
    doctor_add(doctor, "gswbench", DOCTOR_OK, "%s, built with %s", version_text,
               with.length > 0 ? with.text : "no optional library");
    text_free(&with);
}

static void check_locked_memory(struct doctor *doctor)
{
    struct rlimit limit;
    getrlimit(RLIMIT_MEMLOCK, &limit);
    bool is_bounded = limit.rlim_cur != RLIM_INFINITY;
    char shown[32];
    snprintf(shown, sizeof(shown), is_bounded ? "%.1f MiB" : "unlimited", (double)limit.rlim_cur / 1048576);
    if (is_bounded && access("/dev/infiniband", F_OK) != 0) {
        doctor_add(doctor, "memlock", DOCTOR_ABSENT, "locked memory: %s", shown);
        return;
    }
    doctor_judge(doctor, "memlock", !is_bounded, DOCTOR_WRONG,
                 "InfiniBand registers memory: ulimit -l unlimited (Slurm: PropagateResourceLimitsExcept=MEMLOCK;"
                 " containers: --ulimit memlock=-1)",
                 "locked memory: %s", shown);
}

static void check_files(struct doctor *doctor)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    doctor_judge(doctor, "files", limit.rlim_cur >= 4096 || limit.rlim_max >= 4096, DOCTOR_WARNING,
                 "jobs of many ranks need more: ulimit -n 65536", "%" PRIu64 " open files, at most %" PRIu64,
                 (uint64_t)limit.rlim_cur, (uint64_t)limit.rlim_max);
}

static void check_space(struct doctor *doctor, const char *name, const char *folder, double minimum, const char *remedy)
{
    struct statvfs space;
    if (statvfs(folder, &space) != 0) {
        doctor_advise(doctor_add(doctor, name, DOCTOR_WARNING, "%s cannot be read", folder), "%s", remedy);
        return;
    }
    double left        = (double)space.f_bavail * (double)space.f_frsize;
    bool   is_writable = access(folder, W_OK) == 0;
    doctor_judge(doctor, name, is_writable && left >= minimum, DOCTOR_WARNING, remedy, "%s: %.1f GiB free%s", folder,
                 left / GIB, is_writable ? "" : ", not writable");
}

void doctor_check_limits(struct doctor *doctor)
{
    check_locked_memory(doctor);
    check_files(doctor);
    check_space(doctor, "shm", "/dev/shm", 512.0 * 1024 * 1024,
                "NCCL and MPI use it between ranks of a host; start containers with --shm-size=8g or --ipc=host");
    check_space(doctor, "results", doctor->folder, 64.0 * 1024 * 1024, "choose another folder with --out");
}
