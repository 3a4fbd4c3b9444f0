// SPDX-License-Identifier: MIT
// Tests the `mpi` communicator with processes under mpirun, by the checks that every communicator must pass. Rank 0
// prints the failed checks. If any rank fails, every rank exits with a non-zero code.
#include <stdio.h>
#include <stdlib.h>

#include "comm_contract.h"
#include "comm/mpi_module.h"
#include "gswbench/status.h"

// In this test, all ranks run on one host.
static int64_t check_topology(struct comm *comm)
{
    const struct comm_topology *topology = &comm->topology;
    return (comm_launched_ranks() != topology->ranks) + (topology->local_ranks != topology->ranks) +
           (topology->local_rank != topology->rank) + (topology->nodes != 1) + (topology->node != 0);
}

// Limits messages to 1000 bytes, so that every collective is sent in several messages and the last is shorter. The real
// limit would need collectives of 256 MiB.
static int64_t check_split_messages(struct comm *comm)
{
    struct mpi_state *state = comm->state;
    int               limit = state->message_bytes;
    state->message_bytes    = 1000;
    int64_t wrong           = contract_check_collectives(comm) + contract_check_parts(comm);
    state->message_bytes    = limit;
    return wrong;
}

// Returns whether the check fails on any rank. All ranks get the same answer.
static bool fails(struct comm *comm, const struct contract_check *check)
{
    int64_t  wrong = check->check(comm), sum = 0;
    int64_t *all = comm_gather(comm, &wrong, sizeof(wrong));
    for (int rank = 0; rank < comm->topology.ranks; rank++) {
        sum += all[rank];
    }
    free(all);
    if (sum != 0 && comm->topology.rank == 0) {
        printf("FAILED: %s: %lld wrong\n", check->name, (long long)sum);
    }
    return sum != 0;
}

int main(void)
{
    struct comm comm;
    status      opened = comm_open_mpi(&comm);
    if (failed(&opened)) {
        fprintf(stderr, "%s\n", opened.text);
        return opened.exit_code;
    }
    int failures = fails(&comm, &(struct contract_check){"split messages arrive whole", check_split_messages}) +
                   fails(&comm, &(struct contract_check){"every rank knows its topology", check_topology});
    int passed = 2 - failures;
    for (const struct contract_check *check = contract_checks; check->name != NULL; check++) {
        bool has_failed = fails(&comm, check);
        failures += has_failed;
        passed += !has_failed;
    }
    if (comm.topology.rank == 0) {
        printf("%d passed, %d failed\n", passed, failures);
    }
    comm_close(&comm);
    return failures > 0;
}
