// SPDX-License-Identifier: MIT
// What ranks tell each other before anything else, and what follows from it: whether all of them run the same job, who
// shares cores, and whether the launcher put them where the mesh wants them.
#define _GNU_SOURCE
#include "internal.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "gswbench/version.h"

// What profilers set in the environment of a program that they watch.
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

// Ranks that read different configurations would measure nothing that has a meaning, and ranks that do not all write
// weights would wait for each other.
static status check_same_job(const struct place_peer *peers, int ranks)
{
    const struct place_peer *first = &peers[0];
    for (int rank = 1; rank < ranks; rank++) {
        const struct place_peer *other = &peers[rank];
        if (strcmp(other->version, first->version) != 0) {
            return fail_as(EXIT_LAUNCH,
                           "rank %d on %s is gswbench %s, rank 0 on %s is %s: install the same program on every host",
                           rank, other->place.host, other->version, first->place.host, first->version);
        }
        if (other->job_hash != first->job_hash) {
            return fail_as(EXIT_LAUNCH,
                           "rank %d on %s has another configuration or another --weights-out than rank 0 on %s: give "
                           "every rank the same files and flags",
                           rank, other->place.host, first->place.host);
        }
    }
    return OK;
}

// Containers with a name each may be one machine, with one kernel and its cores.
static uint64_t hash_machine(const struct comm_place *place)
{
    char  machine[64] = "";
    FILE *file        = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file == NULL || fgets(machine, sizeof(machine), file) == NULL) {
        text_copy(machine, sizeof(machine), place->host);
    }
    if (file != NULL) {
        fclose(file);
    }
    return XXH3_64bits(machine, strlen(machine));
}

status peers_meet(struct place_peer **peers, uint64_t job_hash, struct comm *comm)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    bool              knows_cores = sched_getaffinity(0, sizeof(cores), &cores) == 0;
    struct place_peer own         = {
                .place    = comm->place,
                .job_hash = job_hash,
                .machine  = hash_machine(&comm->place),
                .cores    = knows_cores ? CPU_COUNT(&cores) : sysconf(_SC_NPROCESSORS_ONLN),
    };
    own.cores_hash = XXH3_64bits_withSeed(&cores, sizeof(cores), own.machine);
    text_copy(own.version, sizeof(own.version), version_text);
    text_copy(own.profiler, sizeof(own.profiler), profiler());
    *peers = memory_allocate((size_t)comm->place.ranks * sizeof(**peers));
    comm->ops->gather_all(comm, &own, *peers, sizeof(own));
    return check_same_job(*peers, comm->place.ranks);
}

struct place_cores peers_share_cores(const struct place_peer *peers, const struct comm_place *place,
                                     int64_t requested_threads)
{
    const struct place_peer *own   = &peers[place->rank];
    struct place_cores       share = {.cores = own->cores, .sharers = 1};
    for (int rank = 0; rank < place->ranks; rank++) {
        bool shares = rank != place->rank && peers[rank].cores_hash == own->cores_hash;
        share.sharers += shares;
        share.index += shares && rank < place->rank;
    }
    share.threads = requested_threads > 0 ? requested_threads : share.cores / share.sharers;
    share.threads = share.threads > 0 ? share.threads : 1;
    return share;
}

// The tensor-parallel group that begins with this rank lies on one node: tp is the fastest axis, its ranks follow each
// other.
static bool is_together(const struct place_peer *peers, int first, int size)
{
    for (int rank = first; rank < first + size; rank++) {
        if (peers[rank].place.node != peers[first].place.node) {
            return false;
        }
    }
    return true;
}

// Of an axis whose ranks follow each other, with those of all faster axes.
static void check_places(struct result *result, const struct place_peer *peers, enum axis axis)
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
    int                  fitting  = peers[first].place.local_ranks / size * size;
    int                  per_node = fitting > 0 ? fitting : size;
    struct result_reason reason   = {.verdict = VERDICT_VALID, .id = "ranks-apart", .rank = first, .step = -1};
    snprintf(reason.message, sizeof(reason.message),
             "%d of %d %s groups span nodes, the first is ranks %d (%.16s) to %d (%.16s): place ranks node by node "
             "(mpirun --map-by ppr:%d:node, srun --ntasks-per-node=%d --distribution=block)",
             apart, groups, axis_rows[axis].name, first, peers[first].place.host, last, peers[last].place.host,
             per_node, per_node);
    result_add_reason(result, &reason);
}

void peers_check_places(struct result *result, const struct place_peer *peers)
{
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (axis_rows[axis].stays_in_node) {
            check_places(result, peers, (enum axis)axis);
        }
    }
}

void peers_check_profilers(struct result *result, const struct place_peer *peers, int ranks)
{
    int rank = 0;
    while (rank < ranks && peers[rank].profiler[0] == '\0') {
        rank++;
    }
    if (rank < ranks) {
        struct result_reason reason = {.verdict = VERDICT_VALID, .id = RESULT_PROFILED, .rank = rank, .step = -1};
        snprintf(reason.message, sizeof(reason.message),
                 "a profiler watched rank %d (%s is set): the times are no measure of a run without it", rank,
                 peers[rank].profiler);
        result_add_reason(result, &reason);
    }
}
