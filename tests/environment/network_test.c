// SPDX-License-Identifier: MIT
// Tests that a host with InfiniBand on which NCCL would use sockets gets a message. Files in the test's folder imitate
// the host. Also tests how ranks are bound to cores, with a fake sysfs of a machine with two sockets. NUMA node 0 has
// cores 0-3 and 8-11, node 1 has 4-7 and 12-15. GPU 1b is on node 0, 9b on node 1, and 01 has no node.
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "environment/binding.h"
#include "environment/internal.h"
#include "folder.h"
#include "line.h"

// Used in place of libibverbs, because this library exists on every host.
#define PRESENT "libc.so.6"

static void make(const char *command, const char *argument)
{
    cr_assert_eq(system(line_of(command, folder, argument, folder, argument)), 0);
}

static void add_port(const char *device_and_port, const char *state)
{
    const char *line = line_of("mkdir -p %s/sys/class/infiniband/%s && echo '%s' >%s/sys/class/infiniband/%s/state",
                               folder, device_and_port, state, folder, device_and_port);
    cr_assert_eq(system(line), 0);
}

// The host has three InfiniBand devices with three active ports.
static void make_host(void)
{
    make_folder();
    make("mkdir -p %s/dev/%s", "infiniband");
    add_port("mlx5_0/ports/1", "4: ACTIVE");
    add_port("mlx5_1/ports/1", "4: ACTIVE");
    add_port("mlx5_1/ports/2", "1: DOWN");
    add_port("mlx5_10/ports/1", "4: ACTIVE");
    unsetenv("NCCL_NET");
    unsetenv("NCCL_NET_PLUGIN");
    unsetenv("NCCL_IB_HCA");
    unsetenv("NCCL_IB_DISABLE");
}

static const char *explain(const char *variable, const char *value, const char *verbs)
{
    static char text[160];
    if (variable != NULL) {
        setenv(variable, value, 1);
    }
    network_explain_sockets(text, sizeof(text), folder, verbs);
    if (variable != NULL) {
        unsetenv(variable);
    }
    return text;
}

Test(network, is_infiniband_where_nothing_speaks_against_it, .init = make_host, .fini = remove_folder)
{
    cr_expect_str_empty(explain(NULL, NULL, PRESENT));
    cr_expect_str_empty(explain("NCCL_NET", "IB", PRESENT));
    cr_expect_str_empty(explain("NCCL_IB_DISABLE", "0", PRESENT));
    cr_expect_str_empty(explain("NCCL_NET", "AWS Libfabric", "libnone.so"));
    cr_expect_str_empty(explain("NCCL_NET_PLUGIN", "ucx", "libnone.so"));
}

Test(network, is_sockets_where_a_variable_says_so, .init = make_host, .fini = remove_folder)
{
    cr_expect_str_eq(explain("NCCL_NET", "socket", PRESENT),
                     "NCCL_NET = Socket, but there are 3 active InfiniBand or RoCE ports: unset it");
    cr_expect_str_eq(explain("NCCL_IB_DISABLE", "1", PRESENT),
                     "NCCL_IB_DISABLE = 1, but there are 3 active InfiniBand or RoCE ports: unset it");
}

Test(network, is_sockets_where_no_active_port_has_a_name_of_the_list, .init = make_host, .fini = remove_folder)
{
    static const char *const taken[]   = {"mlx5",      "mlx5_0",  "=mlx5_0",   "mlx5_9,mlx5_1",
                                          "=mlx5_1:1", "^mlx5_1", "^=mlx5_1:2"};
    static const char *const refused[] = {"mlx4",  "=mlx5",          "=mlx5_1:2", "mlx5_1:2,mlx5_0:2",
                                          "^mlx5", "^=mlx5_0,mlx5_1"};
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        cr_expect_str_empty(explain("NCCL_IB_HCA", taken[i], PRESENT), "%s", taken[i]);
    }
    for (size_t i = 0; i + 1 < sizeof(refused) / sizeof(refused[0]); i++) {
        cr_expect_str_eq(explain("NCCL_IB_HCA", refused[i], PRESENT),
                         "none of 3 active InfiniBand or RoCE ports matches NCCL_IB_HCA: see ibstat", "%s", refused[i]);
    }
    cr_expect_str_empty(explain("NCCL_IB_HCA", refused[5], PRESENT), "mlx5_10 is left");
}

Test(network, is_sockets_without_the_library_or_the_devices, .init = make_host, .fini = remove_folder)
{
#define LACKS                                                                                                          \
    "3 active InfiniBand or RoCE ports, but no %s or /dev/infiniband: install it, and start containers with the "      \
    "devices"
    cr_expect_str_eq(explain(NULL, NULL, "libnone.so"), line_of(LACKS, "libnone.so"));
    make("rmdir %s/dev/%s", "infiniband");
    cr_expect_str_eq(explain(NULL, NULL, PRESENT), line_of(LACKS, PRESENT));
}

Test(network, is_not_missed_on_a_host_without_ports, .init = make_host, .fini = remove_folder)
{
    make("rm -r %s/sys%s", "");
    cr_expect_str_empty(explain(NULL, NULL, PRESENT));
    cr_expect_str_empty(explain("NCCL_NET", "Socket", PRESENT));
    cr_expect_str_eq(explain("NCCL_NET", "IB", PRESENT),
                     "none of 0 active InfiniBand or RoCE ports matches NCCL_NET: see ibstat");
}

static void write_file(const char *place, const char *name, const char *text)
{
    cr_assert_eq(
        system(line_of("mkdir -p %s/sys/%s && echo '%s' >%s/sys/%s/%s", folder, place, text, folder, place, name)), 0);
}

static void make_machine(void)
{
    make_folder();
    write_file("devices/system/node/node0", "cpulist", "0-3,8-11");
    write_file("devices/system/node/node1", "cpulist", "4-7,12-15");
    write_file("devices/system/node/node2", "cpulist", "");    // a node that has memory but no cores
    write_file("bus/pci/devices/0000:1b:00.0", "numa_node", "0");
    write_file("bus/pci/devices/0000:9b:00.0", "numa_node", "1");
    write_file("bus/pci/devices/0000:01:00.0", "numa_node", "-1");
    write_file("bus/pci/devices/0000:02:00.0", "numa_node", "2");
}

static cpu_set_t cores_from(int first, int last)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (int core = first; core <= last; core++) {
        CPU_SET((size_t)core, &cores);
    }
    return cores;
}

// Each case allows the cores from first to last, and expects the allowed cores that are near the GPU.
Test(binding, is_to_the_allowed_cores_beside_the_device_unless_the_launcher_chose, .init = make_machine,
     .fini = remove_folder)
{
    static const struct {
        const char        *pci;
        int                first, last;
        enum binding_state state;
        int                device_node, node, near[4];    // near: the expected cores, as two ranges
    } cases[] = {
        {"0000:9B:00.0", 0, 15, BINDING_OPEN, 1, 0, {4, 7, 12, 15}},
        {"0000:1b:00.0", 2, 5, BINDING_OPEN, 0, 0, {2, 3, 2, 3}},
        {"0000:1b:00.0", 0, 3, BINDING_FITS, 0, 0, {0, 3, 0, 3}},
        {"0000:9b:00.0", 12, 12, BINDING_FITS, 1, 1, {12, 12, 12, 12}},
        {"0000:9b:00.0", 0, 3, BINDING_ELSEWHERE, 1, 0, {1, 0, 1, 0}},
        {"0000:01:00.0", 0, 15, BINDING_UNKNOWN, -1, -1, {1, 0, 1, 0}},
        {"0000:02:00.0", 0, 15, BINDING_UNKNOWN, 2, -1, {1, 0, 1, 0}},
        {"0000:77:00.0", 0, 15, BINDING_UNKNOWN, -1, -1, {1, 0, 1, 0}},
        {"", 0, 15, BINDING_UNKNOWN, -1, -1, {1, 0, 1, 0}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int     *near    = cases[i].near;
        cpu_set_t      allowed = cores_from(cases[i].first, cases[i].last), expected, other;
        struct binding binding = binding_find(folder, cases[i].pci, &allowed);
        expected               = cores_from(near[0], near[1]);
        other                  = cores_from(near[2], near[3]);
        CPU_OR(&expected, &expected, &other);
        cr_expect_eq(binding.state, cases[i].state, "%s, case %zu", cases[i].pci, i);
        cr_expect_eq(binding.device_node, cases[i].device_node, "%s, case %zu", cases[i].pci, i);
        cr_expect_eq(binding.node, cases[i].node, "%s, case %zu", cases[i].pci, i);
        cr_expect(CPU_EQUAL(&binding.cores, &expected), "%s, case %zu", cases[i].pci, i);
    }
}

Test(binding, is_of_the_thread_and_what_it_starts)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    size_t core = 0;
    while (!CPU_ISSET(core, &all)) {
        core++;
    }
    CPU_SET(core, &one);
    cr_expect(binding_apply(&one, true));
    cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    cr_expect(CPU_EQUAL(&all, &one));
    CPU_ZERO(&one);
    cr_expect_not(binding_apply(&one, false), "no cores at all");
}
