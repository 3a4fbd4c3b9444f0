// SPDX-License-Identifier: MIT
// Usage: channel_hosts FILE FILE. Each file is the network namespace of a host. Two watchdogs, one in each namespace,
// exchange datagrams. The exit code is 0 if both have received one.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gswbench/arena.h"
#include "ranks.h"
#include "watch/internal.h"

enum { HOSTS = 2 };

static char **files;
static bool   has_come[HOSTS];

// Sends until both hosts have received a datagram, since a link that has just come up may drop the first ones.
static void run(struct comm *comm, void *unused)
{
    int              host = comm->topology.rank, file = open(files[host], O_RDONLY | O_CLOEXEC);
    struct datagram *datagram = memory_allocate(sizeof(*datagram));
    (void)unused;
    if (file < 0 || setns(file, CLONE_NEWNET) != 0) {
        perror(files[host]);
        exit(1);
    }
    comm->topology.node     = host;
    struct channel *channel = channel_open(comm);
    for (int i = 0; i < 200 && !(has_come[0] && has_come[1]); i++) {
        *datagram = (struct datagram){.kind = DATAGRAM_ASK};
        channel_send(channel, 1 - host, datagram);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        if (channel_receive(channel, datagram) && datagram->from == 1 - host) {
            has_come[host] = true;
        }
    }
    channel_close(channel);
    free(datagram);
}

int main(int count, char **words)
{
    if (count != 1 + HOSTS) {
        return 2;
    }
    files = words + 1;
    ranks_run(HOSTS, run, NULL);
    for (int host = 0; host < HOSTS; host++) {
        printf("host %d: %s\n", host, has_come[host] ? "a datagram has come" : "no datagram");
    }
    return has_come[0] && has_come[1] ? 0 : 1;
}
