// SPDX-License-Identifier: MIT
// Checks that the ranks can connect with NCCL, selects the members that create unique ids, and finds the neighbours in
// the ring of a pipeline.
#include "nccl_job.h"

#include <stdio.h>
#include <string.h>

#include "gswbench/fatal.h"

const char *nccl_print_version(int version, char text[NCCL_TEXT_BYTES])
{
    snprintf(text, NCCL_TEXT_BYTES, "%d.%d.%d", version / 10000, version % 10000 / 100, version % 100);
    return text;
}

// Oldest supported version. maxCTAs in ncclConfig_t needs 2.17; older libraries ignore it silently. commName is newer,
// but optional. The newest function that is required, ncclCommInitRankConfig, is older (2.14).
enum { VERSION_MIN = 21700 };

status nccl_check_version(int version)
{
    char own[NCCL_TEXT_BYTES], minimum[NCCL_TEXT_BYTES];
    return version >= VERSION_MIN ? OK
                                  : fail_as(EXIT_LAUNCH, "NCCL %s is too old: %s or newer is needed",
                                            nccl_print_version(version, own), nccl_print_version(VERSION_MIN, minimum));
}

static status compare_versions(const struct nccl_seat *seats, int rank)
{
    char own[NCCL_TEXT_BYTES], first[NCCL_TEXT_BYTES];
    if (seats[rank].version == seats[0].version) {
        return OK;
    }
    return fail_as(EXIT_LAUNCH, "rank %d on %s has NCCL %s, rank 0 on %s %s: install one version on every host", rank,
                   seats[rank].host, nccl_print_version(seats[rank].version, own), seats[0].host,
                   nccl_print_version(seats[0].version, first));
}

status nccl_check_seats(const struct nccl_seat *seats, int ranks)
{
    for (int rank = 1; rank < ranks; rank++) {
        TRY(compare_versions(seats, rank));
        for (int other = 0; other < rank; other++) {
            if (strcmp(seats[rank].device, seats[other].device) == 0 &&
                strcmp(seats[rank].host_id, seats[other].host_id) == 0) {
                return fail_as(EXIT_LAUNCH,
                               "ranks %d and %d on %s share device %s: launch one rank per device, or use --comm mpi "
                               "(for a test, set a different NCCL_HOSTID per rank)",
                               other, rank, seats[rank].host, seats[rank].device);
            }
        }
    }
    return OK;
}

int nccl_ids(int64_t size, int ranks_per_id)
{
    return ranks_per_id > 0 && size >= 2 * (int64_t)ranks_per_id ? (int)(size / ranks_per_id) : 1;
}

int64_t nccl_id_owner(int64_t size, int ids, int id)
{
    return id * size / ids;
}

int nccl_directions(int64_t size)
{
    return size > 2 ? NCCL_DIRECTIONS : 1;
}

int64_t nccl_receiver(int64_t size, int64_t sender, enum nccl_direction direction)
{
    return (sender + (direction == NCCL_NEXT ? 1 : size - 1)) % size;
}

enum nccl_direction nccl_direction(int64_t size, int64_t sender, int64_t receiver)
{
    for (int direction = 0; direction < nccl_directions(size); direction++) {
        if (nccl_receiver(size, sender, (enum nccl_direction)direction) == receiver) {
            return (enum nccl_direction)direction;
        }
    }
    FATAL(EXIT_INTERNAL, "members %lld and %lld of a pipeline of %lld are no neighbours", (long long)sender,
          (long long)receiver, (long long)size);
}
