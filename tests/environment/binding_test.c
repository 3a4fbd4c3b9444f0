// SPDX-License-Identifier: MIT
// Tests how ranks are bound to cores, with a fake sysfs of a machine with two sockets. NUMA node 0 has cores 0-3 and
// 8-11, node 1 has 4-7 and 12-15. GPU 1b is on node 0, 9b on node 1, and 01 has no node.
#define _GNU_SOURCE
#include "environment/binding.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"

static void write_file(const char *place, const char *name, const char *text)
{
    char line[512];
    snprintf(line, sizeof(line), "mkdir -p %s/sys/%s && echo '%s' >%s/sys/%s/%s", folder, place, text, folder, place,
             name);
    cr_assert_eq(system(line), 0);
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
