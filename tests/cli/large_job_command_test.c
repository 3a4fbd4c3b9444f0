// SPDX-License-Identifier: MIT
// Commands for jobs of published size, which build hundreds of plans.
#include <criterion/criterion.h>
#include <string.h>

#include "command.h"

Test(large_job_command, checks_and_verifies_every_row_when_no_ranks_are_given)
{
    expect_success("check --config llama2-70b-fsdp");
    expect_output("\n    64  bf16  68.98 B    fsdp 64 ");
    expect_output("\n  2048  fp8   68.98 B    fsdp 128 dp 16 ");
    expect_output(" 37.31 % ");
    expect_output("  verified: 6 plans built, 1 distinct\n");
    expect_output(
        "\n12 of 12 rows verified: 8064 ranks, 932 plans built, 12 distinct with 38696 ops, 3450 of them transfers\n");
}

Test(large_job_command, advises_where_no_layout_fits)
{
    expect_success("predict --config llama3.1-70b --ranks 8 --set train.global_batch=8 --sweep");
    expect_output(", 0 may fit, ");
    expect_output("tp 8 with full recompute and micro_batch = 1 needs least memory, 133.29 GiB per rank; ");
    expect_output("--ranks 16, or --set hardware.profile=b200 would do\n");
    expect_success("predict --config llama3.1-70b --ranks 16 --set train.global_batch=8 --sweep --json");
    cr_expect_null(strstr(output, "\"fit\": 0,"), "the advice is right: %s", output);
}
