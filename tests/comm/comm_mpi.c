// SPDX-License-Identifier: MIT
// The communicator's contract with ranks as processes, under mpirun. Rank 0 prints the counts. A failure on any rank
// makes every exit code non-zero.
#include <stdio.h>

#include "comm_contract.h"
#include "comm/mpi_module.h"
#include "gswbench/status.h"

// The ranks share one host in this test.
static int64_t check_topology(struct comm *comm)
{
    const struct comm_topology *topology = &comm->topology;
    return (comm_launched_ranks() != topology->ranks) + (topology->local_ranks != topology->ranks) +
           (topology->local_rank != topology->rank) + (topology->nodes != 1) + (topology->node != 0);
}

// Splits every transfer into several messages, the last one partial. At the real limit this would take 256 MiB.
static int64_t check_split_messages(struct comm *comm)
{
    struct mpi_state *state = comm->state;
    int               limit = state->message_bytes;
    state->message_bytes    = 1000;
    int64_t wrong           = contract_check_collectives(comm) + contract_check_parts(comm);
    state->message_bytes    = limit;
    return wrong;
}

int main(void)
{
    static const struct {
        const char *name;
        int64_t (*check)(struct comm *comm);
    } checks[] = {
        {"collectives give the bits of a sum in rank order", contract_check_collectives},
        {"unequal parts go where they belong", contract_check_parts},
        {"large buffers are reduced whole", contract_check_large},
        {"messages above the limit are split and arrive whole", check_split_messages},
        {"a maximum is the largest of all members", contract_check_maximum},
        {"a sum shows the order and the single rounding", contract_check_rank_order},
        {"lanes run beside each other and repeat their bits", contract_check_lanes},
        {"a ring of sends and receives passes every value", contract_check_ring},
        {"the control plane reaches all ranks", contract_check_control},
        {"every rank knows its topology", check_topology},
    };
    struct comm comm;
    status      opened = comm_open_mpi(&comm);
    if (failed(&opened)) {
        fprintf(stderr, "%s\n", opened.text);
        return opened.exit_code;
    }
    int failures = 0, count = (int)(sizeof(checks) / sizeof(checks[0]));
    for (int i = 0; i < count; i++) {
        int64_t wrong = checks[i].check(&comm), all[CONTRACT_RANKS_MAX], sum = 0;
        comm.ops->gather_all(&comm, &wrong, all, sizeof(wrong));
        for (int rank = 0; rank < comm.topology.ranks; rank++) {
            sum += all[rank];
        }
        if (sum != 0 && comm.topology.rank == 0) {
            printf("FAILED: %s: %lld wrong\n", checks[i].name, (long long)sum);
        }
        failures += sum != 0;
    }
    if (comm.topology.rank == 0) {
        printf("%d passed, %d failed\n", count - failures, failures);
    }
    comm_close(&comm);
    return failures > 0;
}
