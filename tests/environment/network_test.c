// SPDX-License-Identifier: MIT
// Tests that a host with InfiniBand on which NCCL would use sockets gets a message. Files in the test's folder imitate
// the host.
#include "environment/internal.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"

// Used in place of libibverbs, because this library exists on every host.
#define PRESENT "libc.so.6"

static void make(const char *command, const char *argument)
{
    char line[512];
    snprintf(line, sizeof(line), command, folder, argument, folder, argument);
    cr_assert_eq(system(line), 0);
}

static void add_port(const char *device_and_port, const char *state)
{
    char line[512];
    snprintf(line, sizeof(line), "mkdir -p %s/sys/class/infiniband/%s && echo '%s' >%s/sys/class/infiniband/%s/state",
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
    static const char lacks[] =
        "3 active InfiniBand or RoCE ports, but no %s or /dev/infiniband: install it, and start "
        "containers with the devices";
    char expected[160];
    snprintf(expected, sizeof(expected), lacks, "libnone.so");
    cr_expect_str_eq(explain(NULL, NULL, "libnone.so"), expected);
    make("rmdir %s/dev/%s", "infiniband");
    snprintf(expected, sizeof(expected), lacks, PRESENT);
    cr_expect_str_eq(explain(NULL, NULL, PRESENT), expected);
}

Test(network, is_not_missed_on_a_host_without_ports, .init = make_host, .fini = remove_folder)
{
    make("rm -r %s/sys%s", "");
    cr_expect_str_empty(explain(NULL, NULL, PRESENT));
    cr_expect_str_empty(explain("NCCL_NET", "Socket", PRESENT));
    cr_expect_str_eq(explain("NCCL_NET", "IB", PRESENT),
                     "none of 0 active InfiniBand or RoCE ports matches NCCL_NET: see ibstat");
}
