// SPDX-License-Identifier: MIT
// Checks InfiniBand and RoCE ports, and the modules with which GPUs reach them directly.
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/library.h"
#include "internal.h"

struct ports {
    int  active, all;
    char rate[64];    // of the first active port
};

static void count_port(const struct doctor *doctor, struct ports *ports, const char *device, const char *port)
{
    char path[300], state[64], rate[64];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%.64s/ports/%.16s/state", device, port);
    doctor_read(doctor, path, state, sizeof(state));
    snprintf(path, sizeof(path), "/sys/class/infiniband/%.64s/ports/%.16s/rate", device, port);
    doctor_read(doctor, path, rate, sizeof(rate));
    bool is_active = strtol(state, NULL, 10) == 4;    // "4: ACTIVE"
    if (is_active && ports->active == 0) {
        snprintf(ports->rate, sizeof(ports->rate), "%s", rate);
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
                 "ibstat names the others; unused ports are no fault", "%d of %d InfiniBand or RoCE ports active, %s",
                 ports.active, ports.all, ports.rate);
    if (failed(&verbs)) {
        doctor_advise(doctor_add(doctor, "verbs", DOCTOR_WRONG, "libibverbs.so.1 cannot be loaded"),
                      "apt-get install libibverbs1 ibverbs-providers, or NCCL uses TCP");
    }
    doctor_read(doctor, "/sys/module/nvidia_peermem/version", module, sizeof(module));
    if (doctor->gpus > 0 && module[0] == '\0') {
        doctor_advise(doctor_add(doctor, "gpudirect", DOCTOR_WARNING, "the module nvidia_peermem is not loaded"),
                      "modprobe nvidia_peermem, unless kernel and driver support DMA-BUF");
    } else if (doctor->gpus > 0) {
        doctor_add(doctor, "gpudirect", DOCTOR_OK, "nvidia_peermem %s", module);
    }
}
