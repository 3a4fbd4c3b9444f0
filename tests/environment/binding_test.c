// SPDX-License-Identifier: MIT
// Core binding of ranks, on a fake sysfs of a two-socket machine: cores 0-3 and 8-11, and 4-7 and 12-15; devices 1b on
// node 0, 9b on node 1, 01 without a node.
#define _GNU_SOURCE
#include "environment/binding.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char root[32];

static void write_file(const char *folder, const char *name, const char *text)
{
    char line[512];
    snprintf(line, sizeof(line), "mkdir -p %s/sys/%s && echo '%s' >%s/sys/%s/%s", root, folder, text, root, folder,
             name);
    cr_assert_eq(system(line), 0);
}

static void make_machine(void)
{
    strcpy(root, "/tmp/binding_XXXXXX");
    cr_assert_not_null(mkdtemp(root));
    write_file("devices/system/node/node0", "cpulist", "0-3,8-11");
    write_file("devices/system/node/node1", "cpulist", "4-7,12-15");
    write_file("devices/system/node/node2", "cpulist", "");    // memory only
    write_file("bus/pci/devices/0000:1b:00.0", "numa_node", "0");
    write_file("bus/pci/devices/0000:9b:00.0", "numa_node", "1");
    write_file("bus/pci/devices/0000:01:00.0", "numa_node", "-1");
    write_file("bus/pci/devices/0000:02:00.0", "numa_node", "2");
}

static void remove_machine(void)
{
    char line[64];
    snprintf(line, sizeof(line), "rm -r %s", root);
    cr_assert_eq(system(line), 0);
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

static struct binding find(const char *pci, int first, int last)
{
    cpu_set_t allowed = cores_from(first, last);
    return binding_find(root, pci, &allowed);
}

Test(binding, is_to_the_cores_beside_the_device_where_the_launcher_left_both_nodes, .init = make_machine,
     .fini = remove_machine)
{
    struct binding binding = find("0000:9B:00.0", 0, 15);
    cr_expect_eq(binding.state, BINDING_OPEN);
    cr_expect_eq(binding.device_node, 1);
    cr_expect_eq(CPU_COUNT(&binding.cores), 8);
    cr_expect(CPU_ISSET(4, &binding.cores) && CPU_ISSET(7, &binding.cores) && CPU_ISSET(12, &binding.cores));
    cr_expect_not(CPU_ISSET(3, &binding.cores) || CPU_ISSET(8, &binding.cores));
}

Test(binding, keeps_to_the_cores_that_are_allowed, .init = make_machine, .fini = remove_machine)
{
    struct binding binding = find("0000:1b:00.0", 2, 5);
    cr_expect_eq(binding.state, BINDING_OPEN);
    cr_expect_eq(CPU_COUNT(&binding.cores), 2);
    cr_expect(CPU_ISSET(2, &binding.cores) && CPU_ISSET(3, &binding.cores));
}

Test(binding, is_left_where_the_launcher_chose_well, .init = make_machine, .fini = remove_machine)
{
    cr_expect_eq(find("0000:1b:00.0", 0, 3).state, BINDING_FITS);
    cr_expect_eq(find("0000:9b:00.0", 12, 12).state, BINDING_FITS);
}

Test(binding, is_noticed_where_the_launcher_chose_the_other_node, .init = make_machine, .fini = remove_machine)
{
    struct binding binding = find("0000:9b:00.0", 0, 3);
    cr_expect_eq(binding.state, BINDING_ELSEWHERE);
    cr_expect_eq(binding.device_node, 1);
    cr_expect_eq(binding.node, 0);
}

Test(binding, is_not_guessed_where_nothing_is_known, .init = make_machine, .fini = remove_machine)
{
    cr_expect_eq(find("0000:01:00.0", 0, 15).state, BINDING_UNKNOWN);
    cr_expect_eq(find("0000:02:00.0", 0, 15).state, BINDING_UNKNOWN);
    cr_expect_eq(find("0000:77:00.0", 0, 15).state, BINDING_UNKNOWN);
    cr_expect_eq(find("", 0, 15).state, BINDING_UNKNOWN);
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
