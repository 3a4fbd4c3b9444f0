// SPDX-License-Identifier: MIT
// Starts ranks as threads.
#include "ranks.h"

#include <pthread.h>
#include <string.h>

enum { RANKS_MAX = 16 };

struct rank {
    struct local_hub *hub;
    int               number;
    rank_function    *run;
    void             *context;
    pthread_t         thread;
};

static void *run_rank(void *argument)
{
    const struct rank *rank = argument;
    struct comm        comm;
    comm_open_local(&comm, rank->hub, rank->number);
    rank->run(&comm, rank->context);
    comm_close(&comm);
    return NULL;
}

void ranks_run(int ranks, rank_function *run, void *context)
{
    struct local_hub *hub = local_hub_open(ranks);
    struct rank       all[RANKS_MAX];
    for (int i = 0; i < ranks; i++) {
        all[i] = (struct rank){.hub = hub, .number = i, .run = run, .context = context};
        pthread_create(&all[i].thread, NULL, run_rank, &all[i]);
    }
    for (int i = 0; i < ranks; i++) {
        pthread_join(all[i].thread, NULL);
    }
    local_hub_close(hub);
}

void ranks_report_the_same(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    for (int rank = 0; rank < comm->topology.ranks; rank++) {
        memcpy((char *)out + rank * bytes, in, (size_t)bytes);
    }
}
