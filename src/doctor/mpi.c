// SPDX-License-Identifier: MIT
// Checks the MPI library that ranks load, its launchers (mpirun, and srun with PMIx), and the network: InfiniBand and
// RoCE ports, and the kernel module for GPUDirect.
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/library.h"
#include "gswbench/text.h"
#include "internal.h"

#ifdef GSWBENCH_MPI
static const bool has_mpi = true;
#else
static const bool has_mpi = false;
#endif

static bool can_start(char *program)
{
    char *words[] = {program, "--version", NULL}, answer[160];
    doctor_ask(words, answer, sizeof(answer));
    return answer[0] != '\0';
}

// Checks the MPI library. Its version is the first part of "Open MPI v4.1.4, package: ..." or "MPICH Version:
// 4.0.2\n...".
static void check_library(struct doctor *doctor, char version[128])
{
    int (*describe)(char *text, int *length);
    const struct library_symbol symbols[] = {{"MPI_Get_library_version", &describe, false}};
    char                        path[1024], text[8192] = "";
    int                         length = 0;
    library_beside_program(path, sizeof(path), "lib/gswbench/mpi.so");
    status opened = library_open(path, symbols, 1);
    if (failed(&opened)) {
        // Without a launcher no job can use MPI, so a missing library is no error.
        if (can_start("mpirun") || can_start("srun")) {
            doctor_cut_remedy(&opened);
            doctor_advise(doctor_add(doctor, "mpi", DOCTOR_WRONG, "%s", opened.text),
                          "install the MPI of the build (Debian: apt-get install openmpi-bin), or build again here");
        } else {
            doctor_advise(
                doctor_add(doctor, "mpi", DOCTOR_ABSENT, "no Open MPI 4 or 5 here"),
                "one host runs with --comm local; for more, load the module of Open MPI, or install openmpi-bin");
        }
        return;
    }
    describe(text, &length);
    text[strcspn(text, ",\n")] = '\0';
    text_copy(version, 128, text);
    doctor_add(doctor, "mpi", DOCTOR_OK, "%s", version);
}

// Returns the major version of Open MPI, from "Open MPI v4.1.4" or "mpirun (Open MPI) 4.1.4"; 0 if there is none.
static long find_major(const char *text)
{
    const char *number = strpbrk(text, "0123456789");
    return strstr(text, "Open MPI") != NULL && number != NULL ? strtol(number, NULL, 10) : 0;
}

static void check_launcher(struct doctor *doctor, const char *library)
{
    char  answer[160];
    char *words[] = {"mpirun", "--version", NULL};
    doctor_ask(words, answer, sizeof(answer));
    if (answer[0] == '\0' && library[0] == '\0') {
        return;    // the line of check_library has the remedy
    }
    if (answer[0] == '\0') {
        doctor_advise(doctor_add(doctor, "mpirun", DOCTOR_WARNING, "mpirun is not in PATH"),
                      "jobs then start with srun --mpi=pmix; Debian: apt-get install openmpi-bin");
    } else if (find_major(answer) != 0 && find_major(library) != 0 && find_major(answer) != find_major(library)) {
        doctor_advise(doctor_add(doctor, "mpirun", DOCTOR_WRONG, "%s, but ranks load %s", answer, library),
                      "put the mpirun of that version first in PATH, or every rank becomes a job of its own");
    } else if (geteuid() == 0 && strstr(answer, "Open MPI") != NULL &&
               (getenv("OMPI_ALLOW_RUN_AS_ROOT") == NULL || getenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") == NULL)) {
        doctor_advise(doctor_add(doctor, "mpirun", DOCTOR_WARNING, "%s refuses to run as root", answer),
                      "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1, or use another user");
    } else {
        doctor_add(doctor, "mpirun", DOCTOR_OK, "%s", answer);
    }
}

static void check_slurm(struct doctor *doctor, const char *library)
{
    char  version[96], command[] = "srun --mpi=list 2>&1 | tr '\\n' ' '", plugins[512];
    char *ask_version[] = {"srun", "--version", NULL}, *ask_plugins[] = {"sh", "-c", command, NULL};
    doctor_ask(ask_version, version, sizeof(version));
    if (version[0] == '\0') {
        return;
    }
    doctor_ask(ask_plugins, plugins, sizeof(plugins));
    bool        has_pmix = strstr(plugins, "pmix") != NULL;
    const char *remedy   = find_major(library) > 0
                               ? "Open MPI needs it under srun: start ranks with mpirun inside salloc or sbatch"
                               : "use srun --mpi=pmi2: start ranks with mpirun inside salloc or sbatch";
    doctor_judge(doctor, "slurm", has_pmix, DOCTOR_WARNING, remedy, "%s %s PMIx", version,
                 has_pmix ? "with" : "without");
}

void doctor_check_mpi(struct doctor *doctor)
{
    char library[128] = "";
    if (!has_mpi) {
        doctor_advise(doctor_add(doctor, "mpi", DOCTOR_ABSENT, "this gswbench was built without MPI"),
                      "one host runs with --comm local; for more, install libopenmpi-dev and build again");
    } else {
        check_library(doctor, library);
        check_launcher(doctor, library);
    }
    check_slurm(doctor, library);
}

struct ports {
    int  active, all;
    char rate[64];    // rate of the first active port
};

static void count_port(const struct doctor *doctor, struct ports *ports, const char *device, const char *port)
{
    char path[300], state[64];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%.64s/ports/%.16s/state", device, port);
    doctor_read(doctor, path, "", state, sizeof(state));
    bool is_active = strtol(state, NULL, 10) == 4;    // "4: ACTIVE"
    if (is_active && ports->active == 0) {
        snprintf(path, sizeof(path), "/sys/class/infiniband/%.64s/ports/%.16s/rate", device, port);
        doctor_read(doctor, path, "", ports->rate, sizeof(ports->rate));
    }
    ports->active += is_active;
    ports->all++;
}

static struct ports count_ports(const struct doctor *doctor)
{
    struct ports   ports = {0};
    char           path[512];
    struct dirent *device, *port;
    snprintf(path, sizeof(path), "%s/sys/class/infiniband", doctor->root);
    DIR *devices = opendir(path);
    while (devices != NULL && (device = readdir(devices)) != NULL) {
        snprintf(path, sizeof(path), "%s/sys/class/infiniband/%.64s/ports", doctor->root, device->d_name);
        DIR *list = device->d_name[0] != '.' ? opendir(path) : NULL;
        while (list != NULL && (port = readdir(list)) != NULL) {
            if (port->d_name[0] != '.') {
                count_port(doctor, &ports, device->d_name, port->d_name);
            }
        }
        if (list != NULL) {
            closedir(list);
        }
    }
    if (devices != NULL) {
        closedir(devices);
    }
    return ports;
}

void doctor_check_network(struct doctor *doctor)
{
    struct ports ports = count_ports(doctor);
    status       verbs = library_open("libibverbs.so.1", NULL, 0);
    char         module[64];
    if (ports.all == 0) {
        doctor_add(doctor, "infiniband", DOCTOR_ABSENT, "no InfiniBand or RoCE port: NCCL between hosts uses TCP");
        return;
    }
    doctor_judge(doctor, "infiniband", ports.active == ports.all, DOCTOR_WARNING,
                 "ibstat names the others; unused ports are no fault", "%d of %d InfiniBand or RoCE ports active%s%s",
                 ports.active, ports.all, ports.rate[0] != '\0' ? ", " : "", ports.rate);
    if (failed(&verbs)) {
        doctor_advise(doctor_add(doctor, "verbs", DOCTOR_WRONG, "libibverbs.so.1 cannot be loaded"),
                      "apt-get install libibverbs1 ibverbs-providers, or NCCL uses TCP");
    }
    doctor_read(doctor, "/sys/module/nvidia_peermem/version", "", module, sizeof(module));
    if (doctor->gpus > 0 && module[0] == '\0') {
        doctor_advise(doctor_add(doctor, "gpudirect", DOCTOR_WARNING, "the module nvidia_peermem is not loaded"),
                      "modprobe nvidia_peermem, unless kernel and driver support DMA-BUF");
    } else if (doctor->gpus > 0) {
        doctor_add(doctor, "gpudirect", DOCTOR_OK, "nvidia_peermem %s", module);
    }
}
