// SPDX-License-Identifier: MIT
// Tests which environment variables are compared between ranks and recorded, and how NCCL's configuration files are
// read. If launcher and MPI disagree on the local rank, a note must say so. Variables of the launcher that are about
// another process must give no note.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "environment/internal.h"

static struct setting_list list;

static const struct setting *find(const char *name)
{
    for (int i = 0; i < list.count; i++) {
        char known[64];
        settings_print_name(known, sizeof(known), list.rows[i].name);
        if (strcmp(known, name) == 0) {
            return &list.rows[i];
        }
    }
    return NULL;
}

static void add(const char *line)
{
    char *const variables[] = {(char *)line, NULL};
    variables_add(&list, variables);
}

Test(variables, has_what_bears_on_a_run_and_by_which_rule)
{
    static const struct {
        const char       *line, *name;
        enum setting_rule rule;
    } rows[] = {{"NCCL_ALGO=Ring", "NCCL_ALGO", SETTING_REQUIRED},
                {"NCCL_MAX_NCHANNELS=8", "NCCL_MAX_NCHANNELS", SETTING_REQUIRED},
                {"NCCL_LL128_NTHREADS=8", "NCCL_LL128_NTHREADS", SETTING_REQUIRED},
                {"CUDA_DEVICE_MAX_CONNECTIONS=16", "CUDA_DEVICE_MAX_CONNECTIONS", SETTING_NOTED},
                {"NCCL_IB_HCA=mlx5_0", "NCCL_IB_HCA", SETTING_OWN},
                {"NCCL_DEBUG_FILE=x", "NCCL_DEBUG_FILE", SETTING_OWN},
                {"NCCL_IB_TIMEOUT=22", "NCCL_IB_TIMEOUT", SETTING_NOTED},
                {"UCX_TLS=rc", "UCX_TLS", SETTING_REQUIRED},
                {"UCX_RNDV_THRESH=1", "UCX_RNDV_THRESH", SETTING_NOTED},
                {"OMPI_MCA_btl=self", "OMPI_MCA_btl", SETTING_NOTED},
                {"CUDA_VISIBLE_DEVICES=3", "CUDA_VISIBLE_DEVICES", SETTING_OWN},
                {"CUDA_LAUNCH_BLOCKING=1", "CUDA_LAUNCH_BLOCKING", SETTING_NOTED}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        add(rows[i].line);
        const struct setting *row = find(rows[i].name);
        cr_assert_not_null(row, "%s", rows[i].name);
        cr_expect_eq(row->kind.rule, rows[i].rule, "%s", rows[i].name);
        cr_expect_str_eq(row->value, strchr(rows[i].line, '=') + 1);
    }
}

Test(variables, keeps_secrets_and_what_a_launcher_tells_its_ranks)
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

Test(variables, shows_values_escaped_and_no_longer_than_there_is_room)
{
    char line[600] = "NCCL_DEBUG_SUBSYS=\033[2Jx";
    memset(line + strlen(line), 'y', 500);
    add(line);
    cr_expect_eq(strncmp(find("NCCL_DEBUG_SUBSYS")->value, "?[2Jxyyy", 8), 0);
    cr_expect_eq(strlen(find("NCCL_DEBUG_SUBSYS")->value), 127);
}

Test(variables, has_the_lines_of_a_file_where_the_environment_does_not_say_otherwise)
{
    char  path[] = "/tmp/environment_XXXXXX";
    FILE *file   = fdopen(mkstemp(path), "w");
    fprintf(file, "# comment\nNCCL_ALGO=Tree\nNCCL_PROTO=Simple\n\nSECRET=x\nNCCL_DEBUG");
    fclose(file);
    add("NCCL_ALGO=Ring");

    variables_add_file(&list, path);

    cr_expect_eq(list.count, 3);
    cr_expect_str_eq(find("NCCL_ALGO")->value, "Ring");
    cr_expect_str_eq(find("NCCL_PROTO")->value, "Simple");
    cr_expect_eq(find("NCCL_PROTO")->kind.rule, SETTING_REQUIRED);
    cr_expect_str_eq(find(path)->value, "63 bytes, xxh3:09eabec6be243e6f");
    cr_expect_eq(find(path)->kind.rule, SETTING_NOTED);
    unlink(path);
    variables_add_file(&list, path);
    cr_expect_eq(list.count, 3);
}

// Replaces the gather of a job with two ranks. The rank that is not this process sends zeros.
static void gather_two(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    memset(out, 0, 2 * (size_t)bytes);
    memcpy((char *)out + comm->topology.rank * bytes, in, (size_t)bytes);
}

static void set(const char *const names[3], const char *const values[3])
{
    for (int i = 0; i < 3; i++) {
        setenv(names[i], values[i], 1);
    }
}

// Returns the note of rank 1, which has local rank 0 according to MPI.
static const char *note(void)
{
    static const struct comm_ops ops = {.name = "mpi", .gather_all = gather_two};
    static char                  text[256];
    struct comm             comm = {.ops = &ops, .topology = {.rank = 1, .ranks = 2, .local_ranks = 1, .host = "h1"}};
    struct rank_environment environment = {.comm = NULL};
    peers_meet(&environment, &comm);
    text_copy(text, sizeof(text), environment.notes.count == 0 ? "" : environment.notes.list[0].text);
    cr_expect(environment.notes.count == 0 || strcmp(environment.notes.list[0].id, "local-rank") == 0);
    free(environment.notes.list);
    free(environment.peers);
    return text;
}

static const char *const mpirun[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
static const char *const srun[]   = {"SLURM_LOCALID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"};

Test(local_rank, is_the_same_to_launcher_and_mpi)
{
    set(mpirun, (const char *const[]){"0", "1", "2"});
    set(srun, (const char *const[]){"0", "1", "2"});
    cr_expect_str_empty(note());
}

Test(local_rank, is_noted_where_mpi_counts_otherwise)
{
    set(srun, (const char *const[]){"1", "1", "2"});
    cr_expect_str_eq(note(), "rank 1 on h1: SLURM_LOCALID = 1, but MPI has local rank 0, which is used: let ranks of a "
                             "host share its hostname and /dev/shm");
    set(srun, (const char *const[]){"0", "1", "2"});
    set(mpirun, (const char *const[]){"1", "1", "2"});
    cr_expect_str_eq(note(), "rank 1 on h1: OMPI_COMM_WORLD_LOCAL_RANK = 1, but MPI has local rank 0, which is used: "
                             "let ranks of a host share its hostname and /dev/shm");
}

Test(local_rank, of_the_batch_script_is_none_of_its_ranks)
{
    set(srun, (const char *const[]){"3", "0", "1"});
    cr_expect_str_empty(note());
}
