// SPDX-License-Identifier: MIT
// Tests how doctor reports InfiniBand ports. Files in the test's folder imitate the host.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "doctor/internal.h"
#include "folder.h"
#include "line.h"

static void expect_ports(const char *state, const char *expected)
{
    struct doctor doctor = {.root = folder};
    const char   *line =
        line_of("port=%s/sys/class/infiniband/mlx5_0/ports/1 && mkdir -p $port && echo '%s' >$port/state && echo '%s' "
                ">$port/rate",
                folder, state, "400 Gb/sec (4X NDR)");
    cr_assert_eq(system(line), 0);

    doctor_check_network(&doctor);

    cr_expect_str_eq(doctor.lines[0].found, expected);
    doctor_free(&doctor);
}

Test(ports, are_counted_with_the_rate_of_the_first_active_one, .init = make_folder, .fini = remove_folder)
{
    expect_ports("4: ACTIVE", "1 of 1 InfiniBand or RoCE ports active, 400 Gb/sec (4X NDR)");
    expect_ports("1: DOWN", "0 of 1 InfiniBand or RoCE ports active");
}
