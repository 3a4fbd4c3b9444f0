// SPDX-License-Identifier: MIT
// Compares the ranks of a job before its first step. Checks that they run the same job, finds ranks that share cores,
// and checks that groups of the mesh are on one node if they should be.
#define _GNU_SOURCE
#include "internal.h"

#include <ctype.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "gswbench/observe.h"
#include "gswbench/arena.h"
#include "gswbench/version.h"

// Returns the name of an environment variable that a profiler has set for this process; "": none.
static const char *find_profiler(void)
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

status peers_require_equal(struct comm *comm, const char *name, const char *value, const char *reason,
                           const char *remedy)
{
    struct rank_value own;
    char              text[SETTING_TEXT_BYTES];
    int               ranks = comm->topology.ranks, explained = ranks;
    bool              is_equal = true;
    status            result   = OK;
    memset(&own, 0, sizeof(own));
    text_copy(own.host, sizeof(own.host), comm->topology.host);
    text_copy(own.value, sizeof(own.value), value);
    text_copy(own.remedy, sizeof(own.remedy), reason);
    struct rank_value *values = comm_gather(comm, &own, sizeof(own));
    for (int rank = ranks - 1; rank >= 0; rank--) {
        is_equal &= strcmp(values[rank].value, values[0].value) == 0;
        explained = values[rank].remedy[0] != '\0' ? rank : explained;
    }
    if (!is_equal) {
        char why[280] = "";
        if (explained < ranks) {
            snprintf(why, sizeof(why), " (%s: %s)", values[explained].host, values[explained].remedy);
        }
        mismatch_describe(text, sizeof(text), name, values, ranks);
        result = fail_as(EXIT_LAUNCH, "%s%s: %s", text, why, remedy);
    }
    free(values);
    return result;
}

// Compares builds and not versions, because a sanitizer build or modified sources have the same version.
status peers_check_program(struct comm *comm)
{
    char build[VERSION_BUILD_BYTES], text[SETTING_BYTES];
    version_build(build);
    snprintf(text, sizeof(text), "%s, build %s", version_text, build);
    return peers_require_equal(comm, "gswbench", text, "", "install the same program on every host");
}

// Lists the settings of the job that must agree. With different configurations a result means nothing. If ranks
// disagree on --weights-out, some wait for the others forever.
static void list_job(struct setting_list *list, const struct config *config, bool writes_weights)
{
    static const char                remedy[] = "give every rank the same files and flags";
    static const struct setting_kind setting  = {SETTING_REQUIRED, true, remedy};
    static const struct setting_kind flag     = {SETTING_REQUIRED, false, remedy};
    for (const struct config_section *section = config_sections; section->name != NULL; section++) {
        for (const struct option *option = section->options; option->key != NULL; option++) {
            char name[64], value[OPTION_PATH_BYTES];
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

void peers_find_driver(char *text, size_t bytes, const char *line)
{
    while (*line != '\0' && !isdigit((unsigned char)*line)) {
        line += strcspn(line, " ");
        line += strspn(line, " ");
    }
    snprintf(text, bytes, "%.*s", (int)strcspn(line, " \n"), line);
}

status peers_compare_backends(struct rank_environment *environment, const struct run_config *run, struct comm *comm)
{
    struct setting_list    list = {.rows = NULL};
    struct backend_library libraries[BACKEND_LIBRARIES];
    char                   driver[32] = "", line[256];
    struct backend        *backend    = &environment->backend;
    int                    count = backend->ops->libraries == NULL ? 0 : backend->ops->libraries(backend, libraries);
    for (int i = 0; i < count; i++) {
        settings_add(&list, &noted, libraries[i].name, libraries[i].version);
    }
    if (environment_read_line("/proc/driver/nvidia/version", line, sizeof(line))) {
        peers_find_driver(driver, sizeof(driver), line);
    }
    settings_add(&list, &noted, "driver", driver);
    settings_add(&list, &own_choice, "cores", environment->binding);
    if (backend->ops->device_id != NULL) {
        char               id[64], name[DEVICE_NAME_BYTES];
        struct observation observation;    // empty without NVML
        backend->ops->device_id(backend, id, sizeof(id));
        backend->ops->device_name(backend, name, sizeof(name));
        observer_close(observer_open(&(struct observe_setup){
                           .library = OBSERVE_LIBRARY, .device = id, .seconds = run->observe_seconds}),
                       &observation);
        settings_add(&list, &noted, "device", name);
        settings_add(&list, &noted, "VBIOS", observation.vbios);
    }
    status result = settings_compare(&list, comm, environment);
    for (int i = 0; i < list.count; i++) {
        settings_add(environment->settings, &list.rows[i].kind, list.rows[i].name, list.rows[i].value);
    }
    settings_free(&list);
    return result;
}

// Returns a hash of the kernel's boot id. Containers on one machine have different host names, but the same kernel and
// cores.
static uint64_t hash_machine(const struct comm_topology *topology)
{
    char machine[64];
    if (!environment_read_line("/proc/sys/kernel/random/boot_id", machine, sizeof(machine))) {
        text_copy(machine, sizeof(machine), topology->host);
    }
    return XXH3_64bits(machine, strlen(machine));
}

// Adds a note if the launcher's variables have another local rank than MPI, whose local rank selects the device. A
// launcher's variables count only if their rank and number of ranks are this job's: under mpirun in a Slurm allocation,
// Slurm's variables describe another process.
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
    text_copy(own.profiler, sizeof(own.profiler), find_profiler());
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

// Adds a note if groups span nodes. A group here has the ranks of `axis` and of all axes that vary faster with the rank
// number, so its ranks are consecutive.
static void check_axis(struct result *result, const struct environment_peer *peers, enum axis axis)
{
    int size = (int)mesh_stride(&result->mesh, (enum axis)(axis + 1)), groups = (int)(result->mesh.world / size);
    int apart = 0, first = -1;
    for (int group = groups - 1; group >= 0; group--) {
        bool is_together = true;
        for (int rank = group * size; rank < (group + 1) * size; rank++) {
            is_together &= peers[rank].topology.node == peers[group * size].topology.node;
        }
        apart += !is_together;
        first = is_together ? first : group * size;
    }
    if (apart > 0) {
        int last    = first + size - 1;
        int fitting = peers[first].topology.local_ranks / size * size, per_node = fitting > 0 ? fitting : size;
        result_note(result, (struct result_reason){"ranks-apart", VERDICT_VALID, first, -1, ""},
                    "%d of %d %s groups span nodes, the first is ranks %d (%.16s) to %d (%.16s): place ranks node by "
                    "node (mpirun --map-by ppr:%d:node --bind-to none, srun --ntasks-per-node=%d --distribution=block)",
                    apart, groups, axis_rows[axis].name, first, peers[first].topology.host, last,
                    peers[last].topology.host, per_node, per_node);
    }
}

void peers_check_topology(struct result *result, const struct environment_peer *peers)
{
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (axis_rows[axis].stays_in_node) {
            check_axis(result, peers, (enum axis)axis);
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
        result_note(result, (struct result_reason){RESULT_PROFILED, VERDICT_DEGRADED, rank, -1, ""},
                    "a profiler watched rank %d (%s is set): step times are not those of a normal run", rank,
                    peers[rank].profiler);
    }
}

// Notes the first rank that uses gswbench's attention kernels instead of cuDNN's. Also notes the first rank whose
// implementation differs from rank 0's, because the job then waits for the slowest rank.
void attention_gather(struct result *result, struct comm *comm, struct backend *backend)
{
    struct backend_attention own   = {.provider = ""};
    int                      count = comm->topology.ranks, refused = 0, differing = 0;
    if (backend->ops->attention == NULL) {    // true on all ranks or on none, as they have the same backend
        return;
    }
    backend->ops->attention(backend, &own);
    struct backend_attention *ranks = comm_gather(comm, &own, sizeof(own));
    text_copy(result->attention.provider, sizeof(result->attention.provider), ranks->provider);
    text_copy(result->attention.library, sizeof(result->attention.library), ranks->library);
    text_copy(result->attention.engines, sizeof(result->attention.engines), ranks->engines);
    text_copy(result->attention.refusal, sizeof(result->attention.refusal), ranks->refusal);
    while (refused < count && ranks[refused].refusal[0] == '\0') {
        refused++;
    }
    if (refused < count) {
        result_note(result, (struct result_reason){"own-attention", VERDICT_VALID, refused, -1, ""},
                    "attention by gswbench's kernels, not cuDNN: %.200s", ranks[refused].refusal);
    }
    while (differing < count && strcmp(ranks[differing].provider, ranks->provider) == 0 &&
           strcmp(ranks[differing].library, ranks->library) == 0) {
        differing++;
    }
    if (differing < count) {
        result_note(result, (struct result_reason){"attention-differs", VERDICT_VALID, differing, -1, ""},
                    "attention on rank %d is by %s %s, on rank 0 by %s %s", differing, ranks[differing].provider,
                    ranks[differing].library, ranks->provider, ranks->library);
    }
    free(ranks);
}
