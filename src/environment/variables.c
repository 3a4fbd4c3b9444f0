// SPDX-License-Identifier: MIT
// Collects environment variables, to compare them between ranks. Takes only names on an allow-list (`rows`), because
// other variables may hold secrets. The first row whose pattern matches a name applies.
#include "internal.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/input.h"

enum { HIDDEN = -1 };

static const char remedy[] = "give every rank the same environment (mpirun -x, srun --export)";

// REQUIRED: if ranks have different values, a collective hangs or computes something else. NOTED: a difference is only
// noted. OWN: each rank or host may have its own value. HIDDEN: left out, as are variables that match no row, such as
// other OMPI variables, to which the launcher gives another value on each host.
// clang-format off
static const struct {
    const char *pattern;
    int         rule;
} rows[] = {
    {"*SECRET*", HIDDEN}, {"*TOKEN*", HIDDEN}, {"*PASSW*", HIDDEN}, {"*CREDENTIAL*", HIDDEN},
    {"*API_KEY*", HIDDEN}, {"NCCL_ALGO", SETTING_REQUIRED}, {"NCCL_PROTO", SETTING_REQUIRED},
    {"NCCL_NET", SETTING_REQUIRED}, {"NCCL_M??_CTAS", SETTING_REQUIRED}, {"NCCL_M??_NCHANNELS", SETTING_REQUIRED},
    {"NCCL_*NTHREADS", SETTING_REQUIRED}, {"NCCL_*BUFFSIZE", SETTING_REQUIRED},
    {"NCCL_NVLS_ENABLE", SETTING_REQUIRED}, {"NCCL_COLLNET_ENABLE", SETTING_REQUIRED},
    {"NCCL_PAT_ENABLE", SETTING_REQUIRED}, {"NCCL_MNNVL_ENABLE", SETTING_REQUIRED}, {"NCCL_IB_HCA", SETTING_OWN},
    {"NCCL_SOCKET_IFNAME", SETTING_OWN}, {"NCCL_HOSTID", SETTING_OWN}, {"NCCL_*_FILE", SETTING_OWN},
    {"NCCL_*", SETTING_NOTED}, {"UCX_TLS", SETTING_REQUIRED}, {"UCX_NET_DEVICES", SETTING_OWN},
    {"UCX_*", SETTING_NOTED}, {"OMPI_MCA_btl*", SETTING_NOTED}, {"OMPI_MCA_pml*", SETTING_NOTED},
    {"OMPI_MCA_mtl*", SETTING_NOTED}, {"OMPI_MCA_coll*", SETTING_NOTED}, {"OMPI_MCA_mpi_*", SETTING_NOTED},
    {"OMPI_MCA_opal_*", SETTING_NOTED}, {"OMPI_MCA_hwloc_*", SETTING_NOTED},
    {"OMPI_COMM_WORLD_*SIZE", SETTING_OWN}, {"CUDA_VISIBLE_DEVICES", SETTING_OWN}, {"CUDA_MPS_*", SETTING_OWN},
    {"CUDA_INJECTION*", SETTING_OWN}, {"CUDA_HOME", SETTING_OWN}, {"CUDA_*PATH", SETTING_OWN},
    {"CUDA_*", SETTING_NOTED}, {"OMP_NUM_THREADS", SETTING_OWN}, {"OPENBLAS_NUM_THREADS", SETTING_OWN},
    {"OPENBLAS_CORETYPE", SETTING_REQUIRED}, {"SLURM_JOB_ID", SETTING_OWN}, {"SLURM_JOB_NUM_NODES", SETTING_OWN},
    {"SLURM_NTASKS", SETTING_OWN}, {"SLURM_JOB_PARTITION", SETTING_OWN},
};
// clang-format on

static int find_rule(const char *name)
{
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        if (fnmatch(rows[row].pattern, name, 0) == 0) {
            return rows[row].rule;
        }
    }
    return HIDDEN;
}

static bool has_variable(const struct setting_list *list, const char *name)
{
    for (int i = 0; i < list->count; i++) {
        char known[64];
        settings_print_name(known, sizeof(known), list->rows[i].name);
        if (strcmp(known, name) == 0) {
            return true;
        }
    }
    return false;
}

// Returns whether the line is a default that the cuda backend sets itself. Without this check, a second run in the same
// process would report the default as the user's setting.
static bool is_default(const char *line)
{
    return strcmp(line, "CUDA_DEVICE_MAX_CONNECTIONS=32") == 0;
}

// Adds the variable of a line "NAME=VALUE" if a row allows it. Ignores other lines, and names that are too long.
static void add_variable(struct setting_list *list, const char *line)
{
    char   name[60];
    size_t length = strcspn(line, "=");
    if (line[length] == '\0' || length >= sizeof(name)) {
        return;
    }
    snprintf(name, sizeof(name), "%.*s", (int)length, line);
    int                       rule = find_rule(name);
    const struct setting_kind kind = {.rule = (enum setting_rule)rule, .is_setting = true, .remedy = remedy};
    if (rule != HIDDEN && !is_default(line) && !has_variable(list, name)) {
        settings_add(list, &kind, name, line + length + 1);
    }
}

void variables_add(struct setting_list *list, char *const *variables)
{
    for (int i = 0; variables[i] != NULL; i++) {
        add_variable(list, variables[i]);
    }
}

void variables_add_file(struct setting_list *list, const char *path)
{
    static const struct setting_kind noted = {.rule = SETTING_NOTED};
    enum { FILE_BYTES = 1 << 16 };
    int         descriptor;
    struct stat about;
    status      opened = input_open(path, &descriptor, &about);
    if (failed(&opened)) {
        return;
    }
    char   *text       = memory_allocate(FILE_BYTES);
    ssize_t read_bytes = read(descriptor, text, FILE_BYTES - 1);
    close(descriptor);
    if (read_bytes >= 0) {
        char shown[64], *rest = NULL;
        snprintf(shown, sizeof(shown), "%" PRId64 " bytes, xxh3:%016" PRIx64, (int64_t)about.st_size,
                 (uint64_t)XXH3_64bits(text, (size_t)read_bytes));
        settings_add(list, &noted, path, shown);
        for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
            add_variable(list, line);
        }
    }
    free(text);
}

extern char **environ;

void settings_collect_variables(struct setting_list *list)
{
    const char          *named = getenv("NCCL_CONF_FILE");
    const struct passwd *user  = getpwuid(getuid());
    char                 path[1024];
    variables_add(list, environ);
    if (named != NULL || user != NULL) {
        snprintf(path, sizeof(path), "%s%s", named != NULL ? named : user->pw_dir, named != NULL ? "" : "/.nccl.conf");
        variables_add_file(list, path);
    }
    variables_add_file(list, "/etc/nccl.conf");
}
