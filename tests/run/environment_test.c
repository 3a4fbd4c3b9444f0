// SPDX-License-Identifier: MIT
// Which variables are compared and recorded, and what of NCCL's files.
#include "run/environment.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct likeness_list list;

static const struct likeness *find(const char *name)
{
    for (int i = 0; i < list.count; i++) {
        char known[64];
        likeness_print_name(known, sizeof(known), list.rows[i].name);
        if (strcmp(known, name) == 0) {
            return &list.rows[i];
        }
    }
    return NULL;
}

static void add(const char *line)
{
    char *const variables[] = {(char *)line, NULL};
    environment_add_variables(&list, variables);
}

Test(environment, has_what_bears_on_a_run_and_by_which_rule)
{
    static const struct {
        const char        *line, *name;
        enum likeness_rule rule;
    } rows[] = {{"NCCL_ALGO=Ring", "NCCL_ALGO", LIKENESS_REQUIRED},
                {"NCCL_MAX_NCHANNELS=8", "NCCL_MAX_NCHANNELS", LIKENESS_REQUIRED},
                {"NCCL_LL128_NTHREADS=8", "NCCL_LL128_NTHREADS", LIKENESS_REQUIRED},
                {"CUDA_DEVICE_MAX_CONNECTIONS=16", "CUDA_DEVICE_MAX_CONNECTIONS", LIKENESS_NOTED},
                {"NCCL_IB_HCA=mlx5_0", "NCCL_IB_HCA", LIKENESS_OWN},
                {"NCCL_DEBUG_FILE=x", "NCCL_DEBUG_FILE", LIKENESS_OWN},
                {"NCCL_IB_TIMEOUT=22", "NCCL_IB_TIMEOUT", LIKENESS_NOTED},
                {"UCX_TLS=rc", "UCX_TLS", LIKENESS_REQUIRED},
                {"UCX_RNDV_THRESH=1", "UCX_RNDV_THRESH", LIKENESS_NOTED},
                {"OMPI_MCA_btl=self", "OMPI_MCA_btl", LIKENESS_NOTED},
                {"CUDA_VISIBLE_DEVICES=3", "CUDA_VISIBLE_DEVICES", LIKENESS_OWN},
                {"CUDA_LAUNCH_BLOCKING=1", "CUDA_LAUNCH_BLOCKING", LIKENESS_NOTED}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        add(rows[i].line);
        const struct likeness *row = find(rows[i].name);
        cr_assert_not_null(row, "%s", rows[i].name);
        cr_expect_eq(row->kind.rule, rows[i].rule, "%s", rows[i].name);
        cr_expect_str_eq(row->value, strchr(rows[i].line, '=') + 1);
    }
}

Test(environment, keeps_secrets_and_what_a_launcher_tells_its_ranks)
{
    static const char *const lines[] = {"HOME=/root",
                                        "AWS_SECRET_ACCESS_KEY=x",
                                        "NCCL_AUTH_TOKEN=x",
                                        "UCX_PASSWORD=x",
                                        "OMPI_MCA_orte_precondition_transports=1-2",
                                        "OMPI_MCA_ess_base_vpid=1",
                                        "OMPI_MCA_plm=rsh",
                                        "XNCCL_ALGO=Ring",
                                        "CUDA_DEVICE_MAX_CONNECTIONS=32",
                                        "NCCL_NOT_SET"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        add(lines[i]);
    }
    cr_expect_eq(list.count, 0);
}

Test(environment, shows_values_escaped_and_no_longer_than_there_is_room)
{
    char line[600] = "NCCL_DEBUG_SUBSYS=\033[2Jx";
    memset(line + strlen(line), 'y', 500);
    add(line);
    cr_expect_eq(strncmp(find("NCCL_DEBUG_SUBSYS")->value, "?[2Jxyyy", 8), 0);
    cr_expect_eq(strlen(find("NCCL_DEBUG_SUBSYS")->value), 127);
}

Test(environment, has_the_lines_of_a_file_where_the_environment_does_not_say_otherwise)
{
    char  path[] = "/tmp/environment_XXXXXX";
    FILE *file   = fdopen(mkstemp(path), "w");
    fprintf(file, "# comment\nNCCL_ALGO=Tree\nNCCL_PROTO=Simple\n\nSECRET=x\nNCCL_DEBUG");
    fclose(file);
    add("NCCL_ALGO=Ring");

    environment_add_file(&list, path);

    cr_expect_eq(list.count, 3);
    cr_expect_str_eq(find("NCCL_ALGO")->value, "Ring");
    cr_expect_str_eq(find("NCCL_PROTO")->value, "Simple");
    cr_expect_eq(find("NCCL_PROTO")->kind.rule, LIKENESS_REQUIRED);
    cr_expect_str_eq(find(path)->value, "63 bytes, xxh3:09eabec6be243e6f");
    cr_expect_eq(find(path)->kind.rule, LIKENESS_NOTED);
    unlink(path);
    environment_add_file(&list, path);
    cr_expect_eq(list.count, 3);
}
