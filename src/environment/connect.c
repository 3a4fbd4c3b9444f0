// SPDX-License-Identifier: MIT
// Selects the communicator for data in device memory. If each rank has its own device, it is NCCL unless the user names
// another one, because staging through host memory would measure something else. Also explains why NCCL will use TCP
// sockets although the host has InfiniBand.
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "gswbench/connection.h"
#include "gswbench/library.h"
#include "gswbench/text.h"
#include "internal.h"

enum { PATH_BYTES = 512 };

static bool is_selected(const char *list, const char *device, int port)
{
    bool is_inverted = *list == '^';
    list += is_inverted;
    bool is_exact = *list == '=';
    list += is_exact;
    bool is_listed = *list == '\0';
    while (*list != '\0') {
        size_t      length = strcspn(list, ",:"), whole = strcspn(list, ",");
        const char *wanted = list[length] == ':' ? list + length + 1 : NULL;
        is_listed |= strncmp(device, list, length) == 0 && (!is_exact || device[length] == '\0') &&
                     (wanted == NULL || atoi(wanted) == port);
        list += whole + (list[whole] == ',');
    }
    return is_listed != is_inverted;
}

// Numbers of active InfiniBand and RoCE ports: all, and those that NCCL_IB_HCA selects. NCCL reads this list as
// prefixes NAME or NAME:PORT. A leading = makes the names exact, and a leading ^ excludes them.
struct ports {
    int active, chosen;
};

// Adds the active ports of a device, and those that the list selects, to the counts.
static void count_ports(struct ports *ports, const char *folder, const char *device, const char *list)
{
    char           path[PATH_BYTES - 64], file[PATH_BYTES], state[32];
    struct dirent *entry;
    snprintf(path, sizeof(path), "%s/%.64s/ports", folder, device);
    DIR *ports_of = opendir(path);
    while (ports_of != NULL && (entry = readdir(ports_of)) != NULL) {
        snprintf(file, sizeof(file), "%s/%.16s/state", path, entry->d_name);
        if (entry->d_name[0] != '.' && environment_read_line(file, state, sizeof(state)) &&
            strtol(state, NULL, 10) == 4) {    // "4: ACTIVE"
            ports->active++;
            ports->chosen += is_selected(list, device, atoi(entry->d_name));
        }
    }
    if (ports_of != NULL) {
        closedir(ports_of);
    }
}

static struct ports find_ports(const char *root, const char *list)
{
    char           folder[PATH_BYTES / 2];
    struct ports   ports = {0};
    struct dirent *entry;
    snprintf(folder, sizeof(folder), "%s/sys/class/infiniband", root);
    DIR *devices = opendir(folder);
    while (devices != NULL && (entry = readdir(devices)) != NULL) {
        if (entry->d_name[0] != '.') {
            count_ports(&ports, folder, entry->d_name, list);
        }
    }
    if (devices != NULL) {
        closedir(devices);
    }
    return ports;
}

static bool has_verbs(const char *root, const char *verbs)
{
    char   path[PATH_BYTES];
    status opened = library_open(verbs, NULL, 0);
    snprintf(path, sizeof(path), "%s/dev/infiniband", root);
    return !failed(&opened) && access(path, F_OK) == 0;
}

void network_explain_sockets(char *text, size_t bytes, const char *root, const char *verbs)
{
    const char *net = getenv("NCCL_NET"), *list = getenv("NCCL_IB_HCA"), *disabled = getenv("NCCL_IB_DISABLE");
    bool asks = net != NULL && strcasecmp(net, "IB") == 0, refuses = net != NULL && strcasecmp(net, "Socket") == 0;
    char shown[64];
    *text = '\0';
    if ((net != NULL && net[0] != '\0' && !asks && !refuses) || getenv("NCCL_NET_PLUGIN") != NULL) {
        return;    // a network plugin decides, and its choice is unknown
    }
    struct ports ports = find_ports(root, list != NULL ? list : "");
    text_printable(shown, sizeof(shown), list != NULL ? list : "");
    if (refuses && ports.active > 0) {
        snprintf(text, bytes, "NCCL_NET = Socket, but there are %d active InfiniBand or RoCE ports: unset it",
                 ports.active);
    } else if (disabled != NULL && atoi(disabled) != 0 && ports.active > 0) {
        snprintf(text, bytes, "NCCL_IB_DISABLE = 1, but there are %d active InfiniBand or RoCE ports: unset it",
                 ports.active);
    } else if (refuses || (ports.active == 0 && list == NULL && !asks)) {
        return;
    } else if (ports.chosen == 0) {
        snprintf(text, bytes, "none of %d active InfiniBand or RoCE ports matches %s: see ibstat", ports.active,
                 list != NULL ? "NCCL_IB_HCA" : "NCCL_NET");
    } else if (!has_verbs(root, verbs)) {
        snprintf(text, bytes,
                 "%d active InfiniBand or RoCE ports, but no %s or /dev/infiniband: install it, and start containers "
                 "with the devices",
                 ports.active, verbs);
    }
}

// Checks that every rank can use NCCL. Fails on all ranks with the reason and host of the first rank that cannot.
static status check_nccl(struct comm *comm, const struct backend *backend)
{
    if (backend->ops->streams == NULL) {
        return fail_as(EXIT_LAUNCH, "it connects devices, but backend %s has none%s%s%s: use mpi or local",
                       backend->ops->name, backend->choice[0] != '\0' ? " (" : "", backend->choice,
                       backend->choice[0] != '\0' ? ")" : "");
    }
    int    first;
    status own = comm_detect_nccl();
    if (failed(&own)) {
        own = fail_as(own.exit_code, "rank %d on %s has its own device, but cannot use NCCL: %.600s",
                      comm->topology.rank, comm->topology.host, own.text);
    }
    return comm_find_failed(comm, own, &first);
}

// Rejects options that only NCCL implements, for a job with another communicator.
static status check_without_nccl(const struct comm *comm, const struct run_config *run)
{
    const char *asked = run->registered_buffers == REGISTERED_YES ? "registered_buffers = yes"
                        : run->zero_cta != 0                      ? "zero_cta = yes"
                        : run->communication_algorithms != 0      ? "communication_algorithms = yes"
                                                                  : NULL;
    return asked == NULL
               ? OK
               : fail_as(EXIT_LAUNCH, "[run] %s: communicator %s does not support it%s%s: leave it out", asked,
                         comm->ops->name, comm->choice[0] != '\0' ? ", and was chosen because " : "", comm->choice);
}

status environment_connect(struct comm *nccl, struct comm *comm, struct backend *backend, const struct run_config *run,
                           int64_t sharers)
{
    bool is_auto = strcmp(run->communicator, "auto") == 0;
    if (strcmp(run->communicator, "nccl") != 0 &&
        !(is_auto && comm->topology.ranks > 1 && backend->ops->streams != NULL)) {
        return check_without_nccl(comm, run);
    }
    status shared = is_auto && sharers > 1 ? fail("%" PRId64 " ranks share a device", sharers) : OK;
    shared        = is_auto ? comm_agree(comm, shared) : OK;
    if (failed(&shared)) {
        snprintf(comm->choice, sizeof(comm->choice), "not nccl: %.140s", shared.text);
        return check_without_nccl(comm, run);
    }
    status checked = check_nccl(comm, backend);
    if (failed(&checked)) {
        return fail_as(checked.exit_code, "[run] communicator = %s: %.800s%s", run->communicator, checked.text,
                       is_auto ? "; or use --comm mpi, which is slower: data goes through host memory" : "");
    }
    const struct comm_nccl_setup setup = {.connect_seconds = (int)run->connect_seconds,
                                          .ranks_per_id    = (int)run->ranks_per_id,
                                          .tells           = run->communication_algorithms != 0,
                                          .registers       = run->registered_buffers != REGISTERED_NO,
                                          .must_register =
                                              run->registered_buffers == REGISTERED_YES || run->zero_cta != 0,
                                          .copies = run->zero_cta != 0};
    TRY(comm_agree(comm, comm_open_nccl(nccl, comm, backend, &setup)));
    nccl->processors = backend->sm_margin;
    return OK;
}

void environment_check_network(struct rank_environment *environment, struct comm *comm)
{
    char own[NOTE_TEXT_BYTES] = "";
    if (environment->nccl.ops != NULL && comm->topology.nodes > 1) {
        network_explain_sockets(own, sizeof(own), "", "libibverbs.so.1");
    }
    environment_note_ranks(&environment->notes, "sockets", comm, own);
}

status environment_check_processors(struct rank_environment *environment, const struct plan *plan,
                                    const struct run_config *run)
{
    struct plan_connections connections;
    char                    own[NOTE_TEXT_BYTES] = "";
    if (environment->nccl.ops == NULL) {
        return OK;
    }
    plan_connections(&connections, plan, environment->comm->topology.local_ranks);
    plan_connections_excess(&connections, environment->backend.ops->processors(&environment->backend),
                            environment->comm->processors, own, sizeof(own));
    free(connections.list);
    environment_note_ranks(&environment->notes, "ctas", environment->comm, own);
    return environment_check_notes(&environment->notes, run->conditions);
}
