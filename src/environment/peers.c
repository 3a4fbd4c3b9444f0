// SPDX-License-Identifier: MIT
// First exchange between ranks: same job, shared cores, and placement against the mesh.
#define _GNU_SOURCE
#include "internal.h"
#include "settings.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "gswbench/observe.h"
#include "gswbench/arena.h"
#include "gswbench/version.h"

// Environment variables that profilers set in the profiled process.
static const char *profiler(void)
{
    static const char *const variables[] = {"NSYS_PROFILING_SESSION_ID", "NV_NSIGHT_INJECTION_TRANSPORT_TYPE",
                                            "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        if (getenv(variables[i]) != NULL) {
            return variables[i];
        }
    }
    return "";
}

// Compares builds: sanitizer builds and modified sources have the same version.
status peers_check_program(struct comm *comm)
{
    struct rank_value own;
    char              build[VERSION_BUILD_BYTES], text[SETTING_TEXT_BYTES];
    bool              is_one = true;
    memset(&own, 0, sizeof(own));
    version_build(build);
    text_copy(own.host, sizeof(own.host), comm->topology.host);
    snprintf(own.value, sizeof(own.value), "%s, build %s", version_text, build);
    struct rank_value *voices = comm_gather(comm, &own, sizeof(own));
    for (int rank = 1; rank < comm->topology.ranks; rank++) {
        is_one &= strcmp(voices[rank].value, voices[0].value) == 0;
    }
    if (!is_one) {
        mismatch_describe(text, sizeof(text), "gswbench", voices, comm->topology.ranks);
    }
    free(voices);
    return is_one ? OK : fail_as(EXIT_LAUNCH, "%s: install the same program on every host", text);
}

// Different configurations make a result meaningless; ranks that disagree on --weights-out wait for each other.
static void list_job(struct setting_list *list, const struct config *config, bool writes_weights)
{
    static const char                remedy[] = "give every rank the same files and flags";
    static const struct setting_kind setting  = {SETTING_REQUIRED, true, remedy};
    static const struct setting_kind flag     = {SETTING_REQUIRED, false, remedy};
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        for (const struct option *option = section->options; option->key != NULL; option++) {
            char name[64], value[1024];
            snprintf(name, sizeof(name), "%s.%s", section->name, option->key);
            option_print(option, (const char *)config + section->offset, value, sizeof(value));
            settings_add(list, &setting, name, value);
        }
    }
    settings_add(list, &flag, "--weights-out", writes_weights ? "given" : "");
}

static const struct setting_kind noted = {.rule = SETTING_NOTED}, own_choice = {.rule = SETTING_OWN};

status peers_check_job(struct rank_environment *environment, const struct config *config, bool writes_weights,
                       struct comm *comm)
{
    struct setting_list list = {.rows = NULL};
    list_job(&list, config, writes_weights);
    status result = settings_compare(&list, comm, environment);
    settings_free(&list);
    TRY(result);
    environment->settings = memory_allocate(sizeof(*environment->settings));
    settings_collect_variables(environment->settings);
    if (comm->library[0] != '\0') {
        settings_add(environment->settings, &noted, "control plane", comm->library);
    }
    return settings_compare(environment->settings, comm, environment);
}

// Finds the version in "NVRM version: NVIDIA UNIX x86_64 Kernel Module 550.54.15 Tue Mar 5 ...".
static void read_driver(char *text, size_t bytes)
{
    char  line[256] = "";
    FILE *file      = fopen("/proc/driver/nvidia/version", "r");
    if (file != NULL && fgets(line, sizeof(line), file) == NULL) {
        line[0] = '\0';
    }
    if (file != NULL) {
        fclose(file);
    }
    const char *number = strpbrk(strstr(line, "Module") != NULL ? strstr(line, "Module") : line, "0123456789");
    snprintf(text, bytes, "%.*s", number == NULL ? 0 : (int)strcspn(number, " \n"), number == NULL ? "" : number);
}

// Adds device name and VBIOS version; NVML may be missing.
static void add_device(struct setting_list *list, struct backend *backend, double observe_seconds)
{
    char               id[64], name[DEVICE_NAME_BYTES];
    struct observation observation;
    backend->ops->device_id(backend, id, sizeof(id));
    backend->ops->device_name(backend, name, sizeof(name));
    const struct observe_setup setup = {.library = OBSERVE_LIBRARY, .device = id, .seconds = observe_seconds};
    observer_close(observer_open(&setup), &observation);
    settings_add(list, &noted, "device", name);
    settings_add(list, &noted, "VBIOS", observation.vbios);
}

status peers_compare_backends(struct rank_environment *environment, const struct run_config *run, struct comm *comm)
{
    struct setting_list    list = {.rows = NULL};
    struct backend_library libraries[BACKEND_LIBRARIES];
    char                   driver[32];
    struct backend        *backend = &environment->backend;
    int                    count   = backend->ops->libraries == NULL ? 0 : backend->ops->libraries(backend, libraries);
    for (int i = 0; i < count; i++) {
        settings_add(&list, &noted, libraries[i].name, libraries[i].version);
    }
    read_driver(driver, sizeof(driver));
    settings_add(&list, &noted, "driver", driver);
    settings_add(&list, &own_choice, "cores", environment->binding);
    if (backend->ops->device_id != NULL) {
        add_device(&list, backend, run->observe_seconds);
    }
    status result = settings_compare(&list, comm, environment);
    for (int i = 0; i < list.count; i++) {
        settings_add(environment->settings, &list.rows[i].kind, list.rows[i].name, list.rows[i].value);
    }
    settings_free(&list);
    return result;
}

// Uses the kernel's boot id: containers have separate host names but share kernel and cores.
static uint64_t hash_machine(const struct comm_topology *topology)
{
    char  machine[64] = "";
    FILE *file        = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file == NULL || fgets(machine, sizeof(machine), file) == NULL) {
        text_copy(machine, sizeof(machine), topology->host);
    }
    if (file != NULL) {
        fclose(file);
    }
    return XXH3_64bits(machine, strlen(machine));
}

// MPI's local rank selects the device. Notes a different one in the launcher's variables, if they describe this
// process: under mpirun in a Slurm allocation, Slurm's do not.
static void check_local_rank(struct rank_environment *environment, struct comm *comm)
{
    static const char *const names[][3] = {
        {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"SLURM_LOCALID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    char own[NOTE_TEXT_BYTES] = "";
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *local = getenv(names[i][0]), *rank = getenv(names[i][1]), *ranks = getenv(names[i][2]);
        if (local != NULL && rank != NULL && ranks != NULL && atoi(rank) == comm->topology.rank &&
            atoi(ranks) == comm->topology.ranks && atoi(local) != comm->topology.local_rank) {
            snprintf(own, sizeof(own),
                     "%s = %d, but MPI has local rank %d, which is used: let ranks of a host share its hostname and "
                     "/dev/shm",
                     names[i][0], atoi(local), comm->topology.local_rank);
        }
    }
    environment_note_ranks(&environment->notes, "local-rank", comm, own);
}

void peers_meet(struct rank_environment *environment, struct comm *comm)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    bool                    knows_cores = sched_getaffinity(0, sizeof(cores), &cores) == 0;
    struct environment_peer own         = {
                .topology = comm->topology,
                .machine  = hash_machine(&comm->topology),
                .cores    = knows_cores ? CPU_COUNT(&cores) : sysconf(_SC_NPROCESSORS_ONLN),
    };
    own.cores_hash = XXH3_64bits_withSeed(&cores, sizeof(cores), own.machine);
    text_copy(own.profiler, sizeof(own.profiler), profiler());
    environment->peers = comm_gather(comm, &own, sizeof(own));
    check_local_rank(environment, comm);
}

struct environment_cores peers_share_cores(const struct environment_peer *peers, const struct comm_topology *topology,
                                           int64_t requested_threads)
{
    const struct environment_peer *own   = &peers[topology->rank];
    struct environment_cores       share = {.cores = own->cores, .sharers = 1};
    for (int rank = 0; rank < topology->ranks; rank++) {
        bool shares = rank != topology->rank && peers[rank].cores_hash == own->cores_hash;
        share.sharers += shares;
        share.index += shares && rank < topology->rank;
    }
    share.threads = requested_threads > 0 ? requested_threads : share.cores / share.sharers;
    share.threads = share.threads > 0 ? share.threads : 1;
    return share;
}

// Whether ranks first .. first + size - 1 are on one node. tp is the fastest axis, so its ranks are consecutive.
static bool is_together(const struct environment_peer *peers, int first, int size)
{
    for (int rank = first; rank < first + size; rank++) {
        if (peers[rank].topology.node != peers[first].topology.node) {
            return false;
        }
    }
    return true;
}

// Checks an axis with all faster axes, whose ranks are consecutive.
static void check_places(struct result *result, const struct environment_peer *peers, enum axis axis)
{
    int size = (int)mesh_stride(&result->mesh, (enum axis)(axis + 1)), groups = (int)(result->mesh.world / size);
    int apart = 0, first = -1;
    for (int group = groups - 1; group >= 0; group--) {
        if (!is_together(peers, group * size, size)) {
            apart++;
            first = group * size;
        }
    }
    if (apart == 0) {
        return;
    }
    int                  last     = first + size - 1;
    int                  fitting  = peers[first].topology.local_ranks / size * size;
    int                  per_node = fitting > 0 ? fitting : size;
    struct result_reason reason   = {.verdict = VERDICT_VALID, .id = "ranks-apart", .rank = first, .step = -1};
    snprintf(reason.message, sizeof(reason.message),
             "%d of %d %s groups span nodes, the first is ranks %d (%.16s) to %d (%.16s): place ranks node by node "
             "(mpirun --map-by ppr:%d:node --bind-to none, srun --ntasks-per-node=%d --distribution=block)",
             apart, groups, axis_rows[axis].name, first, peers[first].topology.host, last, peers[last].topology.host,
             per_node, per_node);
    result_add_reason(result, &reason);
}

void peers_check_topology(struct result *result, const struct environment_peer *peers)
{
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (axis_rows[axis].stays_in_node) {
            check_places(result, peers, (enum axis)axis);
        }
    }
}

void peers_check_profilers(struct result *result, const struct environment_peer *peers, int ranks)
{
    int rank = 0;
    while (rank < ranks && peers[rank].profiler[0] == '\0') {
        rank++;
    }
    if (rank < ranks) {
        struct result_reason reason = {.verdict = VERDICT_DEGRADED, .id = RESULT_PROFILED, .rank = rank, .step = -1};
        snprintf(reason.message, sizeof(reason.message),
                 "a profiler watched rank %d (%s is set): step times are not those of a normal run", rank,
                 peers[rank].profiler);
        result_add_reason(result, &reason);
    }
}
