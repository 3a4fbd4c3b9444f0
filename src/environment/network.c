// SPDX-License-Identifier: MIT
// Finds active InfiniBand and RoCE ports that match NCCL_IB_HCA, as NCCL does: NAME or NAME:PORT prefixes, exact after
// =, excluded after ^.
#include "internal.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "gswbench/library.h"
#include "gswbench/text.h"

enum { PATH_BYTES = 512 };

static bool matches(const char *list, const char *device, int port)
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

struct ports {
    int active, chosen;
};

// "4: ACTIVE"
static bool is_active(const char *folder, const char *port)
{
    char  path[PATH_BYTES], state[32] = "";
    FILE *file;
    snprintf(path, sizeof(path), "%s/%.16s/state", folder, port);
    file = fopen(path, "r");
    if (file != NULL) {
        bool is_read = fgets(state, sizeof(state), file) != NULL;
        fclose(file);
        return is_read && strtol(state, NULL, 10) == 4;
    }
    return false;
}

static void count_device(struct ports *ports, const char *folder, const char *device, const char *list)
{
    char           path[PATH_BYTES - 64];
    struct dirent *entry;
    snprintf(path, sizeof(path), "%s/%.64s/ports", folder, device);
    DIR *ports_of = opendir(path);
    while (ports_of != NULL && (entry = readdir(ports_of)) != NULL) {
        if (entry->d_name[0] != '.' && is_active(path, entry->d_name)) {
            ports->active++;
            ports->chosen += matches(list, device, atoi(entry->d_name));
        }
    }
    if (ports_of != NULL) {
        closedir(ports_of);
    }
}

static struct ports count_ports(const char *root, const char *list)
{
    char           folder[PATH_BYTES / 2];
    struct ports   ports = {0};
    struct dirent *entry;
    snprintf(folder, sizeof(folder), "%s/sys/class/infiniband", root);
    DIR *devices = opendir(folder);
    while (devices != NULL && (entry = readdir(devices)) != NULL) {
        if (entry->d_name[0] != '.') {
            count_device(&ports, folder, entry->d_name, list);
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
        return;    // a network plugin, whose choice is unknown
    }
    struct ports ports = count_ports(root, list != NULL ? list : "");
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
