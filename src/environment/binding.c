// SPDX-License-Identifier: MIT
// Binds ranks to the cores near their devices, unless the launcher did. This precedes all allocations, since memory is
// placed on the node that first touches it.
#define _GNU_SOURCE
#include "binding.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { PATH_BYTES = 512, NODES_MAX = 1024 };

bool environment_read_line(const char *path, char *line, int bytes)
{
    FILE *file    = fopen(path, "r");
    bool  is_read = file != NULL && fgets(line, bytes, file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    return is_read;
}

// "0-55,112-167"
static void read_cores(const char *root, int node, cpu_set_t *cores)
{
    char path[PATH_BYTES], line[4096], *next = line;
    CPU_ZERO(cores);
    snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%d/cpulist", root, node);
    if (!environment_read_line(path, line, sizeof(line))) {
        return;
    }
    while (isdigit((unsigned char)*next)) {
        long first = strtol(next, &next, 10);
        long last  = *next == '-' ? strtol(next + 1, &next, 10) : first;
        for (long core = first; core <= last && core < CPU_SETSIZE; core++) {
            CPU_SET((size_t)core, cores);
        }
        next += *next == ',';
    }
}

static int find_device_node(const char *root, const char *pci)
{
    char path[PATH_BYTES], line[32], id[32];
    text_copy(id, sizeof(id), pci);
    for (char *letter = id; *letter != '\0'; letter++) {
        *letter = (char)tolower((unsigned char)*letter);
    }
    snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/numa_node", root, id);
    return id[0] != '\0' && environment_read_line(path, line, sizeof(line)) ? atoi(line) : -1;
}

static int find_first_node(const char *root, const cpu_set_t *allowed)
{
    for (int node = 0; node < NODES_MAX; node++) {
        cpu_set_t cores;
        read_cores(root, node, &cores);
        CPU_AND(&cores, &cores, allowed);
        if (CPU_COUNT(&cores) > 0) {
            return node;
        }
    }
    return -1;
}

struct binding binding_find(const char *root, const char *pci, const cpu_set_t *allowed)
{
    struct binding binding = {.state = BINDING_UNKNOWN, .device_node = find_device_node(root, pci), .node = -1};
    cpu_set_t      beside;
    if (binding.device_node < 0) {
        return binding;
    }
    read_cores(root, binding.device_node, &beside);
    CPU_AND(&binding.cores, &beside, allowed);
    if (CPU_COUNT(&beside) > 0) {    // a NUMA node may have memory only
        binding.state = CPU_COUNT(&binding.cores) == 0       ? BINDING_ELSEWHERE
                        : CPU_EQUAL(&binding.cores, allowed) ? BINDING_FITS
                                                             : BINDING_OPEN;
        binding.node  = find_first_node(root, allowed);
    }
    return binding;
}

bool binding_apply(const cpu_set_t *cores, bool whole_process)
{
    DIR           *tasks   = whole_process ? opendir("/proc/self/task") : NULL;
    bool           is_done = sched_setaffinity(0, sizeof(*cores), cores) == 0;
    struct dirent *entry;
    while (is_done && tasks != NULL && (entry = readdir(tasks)) != NULL) {
        int task = atoi(entry->d_name);
        if (task > 0) {    // a thread that has exited is ignored
            sched_setaffinity(task, sizeof(*cores), cores);
        }
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return is_done;
}

void environment_bind(struct rank_environment *environment, const struct config *config, struct comm *comm)
{
    char      pci[32], own[NOTE_TEXT_BYTES] = "", *text = environment->binding;
    size_t    bytes = sizeof(environment->binding);
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    environment_locate_device(config, &comm->topology, pci, sizeof(pci));
    if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
        struct binding binding       = binding_find("", pci, &allowed);
        bool           whole_process = strcmp(comm->ops->name, "local") != 0 || comm->topology.ranks == 1;
        bool           is_bound      = binding.state == BINDING_OPEN && binding_apply(&binding.cores, whole_process);
        int            count         = CPU_COUNT(&allowed);
        if (is_bound || binding.state == BINDING_FITS) {
            snprintf(text, bytes, "%d of NUMA node %d, the node of the device%s", CPU_COUNT(&binding.cores),
                     binding.device_node, is_bound ? ", bound by gswbench" : "");
        } else if (binding.state == BINDING_ELSEWHERE) {
            snprintf(text, bytes, "%d of NUMA node %d, the device is on node %d", count, binding.node,
                     binding.device_node);
            snprintf(
                own, sizeof(own),
                "the launcher bound it to NUMA node %d, but its device %s is on node %d: use mpirun --bind-to none "
                "or srun --cpu-bind=none",
                binding.node, pci, binding.device_node);
        } else {
            snprintf(text, bytes, "%d", count);
        }
        if (binding.state == BINDING_OPEN && !is_bound) {
            snprintf(own, sizeof(own), "it is not allowed on the cores of NUMA node %d, where its device %s is",
                     binding.device_node, pci);
        }
    }
    environment_note_ranks(&environment->notes, "bound-elsewhere", comm, own);
}
