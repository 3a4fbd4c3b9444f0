// SPDX-License-Identifier: MIT
// Selects a rank's device and checks that all ranks have the same backend. Ranks may share a device only if [run]
// ranks_per_device allows it. Also binds a rank to the cores near its device, unless the launcher has done so. A rank
// is bound before any allocation, because memory is placed on the NUMA node that first touches it.
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"
#include "gswbench/clock.h"
#include "gswbench/text.h"
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

// Reads the cores of a NUMA node, from a line such as "0-55,112-167".
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
    cpu_set_t      local_cores;
    if (binding.device_node < 0) {
        return binding;
    }
    read_cores(root, binding.device_node, &local_cores);
    CPU_AND(&binding.cores, &local_cores, allowed);
    if (CPU_COUNT(&local_cores) > 0) {    // a NUMA node without cores has only memory
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
        if (task > 0) {    // fails, without harm, for a thread that has exited
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

static struct backend_setup make_setup(const struct config *config, const struct comm_topology *topology,
                                       int64_t threads)
{
    const struct run_config *run = &config->run;
    return (struct backend_setup){.local_rank       = topology->local_rank,
                                  .threads          = (int)threads,
                                  .attention        = run->attention,
                                  .is_deterministic = run->deterministic != 0,
                                  .is_fp32          = config->precision.compute == COMPUTE_FP32,
                                  .sm_margin        = run->sm_margin > 0 ? (int)run->sm_margin : 0,
                                  .cache            = run->cache};
}

status environment_open_backend(struct backend *backend, const struct config *config,
                                const struct comm_topology *topology, int64_t threads)
{
    const struct backend_setup setup = make_setup(config, topology, threads);
    return backend_open(backend, config->run.backend, &setup);
}

void environment_locate_device(const struct config *config, const struct comm_topology *topology, char *text,
                               size_t bytes)
{
    const struct backend_setup setup = make_setup(config, topology, 1);
    backend_locate(config->run.backend, &setup, text, bytes);
}

// The device of a rank, which ranks exchange to count the ranks per device.
struct rank_device {
    int64_t node;
    char    device[64];    // its id; "": the host backend
    char    name[DEVICE_NAME_BYTES];
};

static void add_kind(struct environment_devices *devices, const char *name)
{
    for (int kind = 0; kind < devices->kinds; kind++) {
        if (strcmp(devices->names[kind], name) == 0) {
            return;
        }
    }
    text_copy(*LIST_ADD(devices->names, devices->kinds), sizeof(*devices->names), name);
}

status environment_share_devices(struct environment_devices *devices, struct comm *comm, struct backend *backend,
                                 int64_t allowed)
{
    struct rank_device own = {.node = comm->topology.node};
    if (backend->ops->device_id != NULL) {
        backend->ops->device_id(backend, own.device, sizeof(own.device));
        backend->ops->device_name(backend, own.name, sizeof(own.name));
    }
    status              result  = OK;
    bool                is_host = own.device[0] == '\0';
    struct rank_device *all     = comm_gather(comm, &own, sizeof(own));
    *devices                    = (struct environment_devices){.sharers = is_host};
    for (int rank = 0; rank < comm->topology.ranks; rank++) {
        if (!is_host) {
            devices->sharers += all[rank].node == own.node && strcmp(all[rank].device, own.device) == 0;
            add_kind(devices, all[rank].name);
        }
    }
    free(all);
    if (devices->sharers > allowed) {
        result = fail_as(EXIT_LAUNCH,
                         "%" PRId64 " ranks of host %s share the device %s: launch one rank per device (for a test, "
                         "set run.ranks_per_device = %" PRId64 ")",
                         devices->sharers, comm->topology.host, own.device, devices->sharers);
    }
    return result;
}

status environment_find_machine(struct environment_machine *machine)
{
    struct backend backend;
    TRY(backend_open(&backend, "auto", &(struct backend_setup){.threads = 1}));
    *machine = (struct environment_machine){.cores = cores_usable()};
    if (backend.ops->device_name != NULL) {
        backend.ops->device_name(&backend, machine->device, sizeof(machine->device));
        machine->device_bytes = backend.ops->available_bytes(&backend);
        // Local ranks are assigned to devices round-robin. So the number of devices is the lowest local rank above 0
        // that gets the device of local rank 0.
        char first[64], next[64];
        backend_locate("auto", &(struct backend_setup){.local_rank = 0}, first, sizeof(first));
        do {
            machine->devices++;
            backend_locate("auto", &(struct backend_setup){.local_rank = machine->devices}, next, sizeof(next));
        } while (strcmp(first, next) != 0);
    }
    backend_close(&backend);
    return OK;
}
