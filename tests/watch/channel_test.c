// SPDX-License-Identifier: MIT
// Letters between watches: they arrive whole, and others' are not read.
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "watch/channel.h"

enum { RANKS = 2 };

static struct local_hub *hub;
static struct comm       comms[RANKS];
static struct channel   *channels[RANKS];

// A host for each rank.
static void *open_one(void *argument)
{
    int rank = (int)(intptr_t)argument;
    comm_open_local(&comms[rank], hub, rank);
    comms[rank].place.node       = rank;
    comms[rank].place.local_rank = 3 + rank;
    channels[rank]               = channel_open(&comms[rank]);
    return NULL;
}

static void open_all(void)
{
    pthread_t threads[RANKS];
    hub = local_hub_open(RANKS);
    for (intptr_t rank = 0; rank < RANKS; rank++) {
        pthread_create(&threads[rank], NULL, open_one, (void *)rank);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        pthread_join(threads[rank], NULL);
    }
}

static void close_all(void)
{
    for (int rank = 0; rank < RANKS; rank++) {
        channel_close(channels[rank]);
        comm_close(&comms[rank]);
    }
    local_hub_close(hub);
}

TestSuite(channel, .init = open_all, .fini = close_all);

// A datagram takes its time, also to this machine.
static bool receive(int rank, struct letter *letter)
{
    for (int i = 0; i < 1000; i++) {
        if (channel_receive(channels[rank], letter)) {
            return true;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

Test(channel, brings_what_ranks_of_another_host_show)
{
    struct letter *letter = memory_allocate(sizeof(*letter));
    letter->kind          = LETTER_ANSWER;
    letter->count         = LETTER_POSTS;
    for (int i = 0; i < LETTER_POSTS; i++) {
        letter->posts[i].rank = 100 + i;
    }
    cr_expect_eq(channel_node(channels[0], 1), 1);
    cr_expect_eq(channel_local_rank(channels[0], 1), 4);
    cr_expect_not(channel_receive(channels[0], letter));

    channel_send(channels[1], 0, letter);

    memset(letter, 0, sizeof(*letter));
    cr_assert(receive(0, letter));
    cr_expect_eq(letter->kind, LETTER_ANSWER);
    cr_expect_eq(letter->from, 1);
    cr_expect_eq(letter->count, LETTER_POSTS);
    cr_expect_eq(letter->posts[LETTER_POSTS - 1].rank, 99 + LETTER_POSTS);
    free(letter);
}

// To every datagram socket of this process, which has those of the channels.
static int send_forged(const void *bytes, size_t count)
{
    int own = socket(AF_INET, SOCK_DGRAM, 0), sent = 0;
    for (int file = 0; file < 64; file++) {
        struct sockaddr_in inet;
        socklen_t          length = sizeof(inet);
        if (file != own && getsockname(file, (struct sockaddr *)&inet, &length) == 0 && inet.sin_family == AF_INET) {
            inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            sent += sendto(own, bytes, count, 0, (struct sockaddr *)&inet, sizeof(inet)) == (ssize_t)count;
        }
    }
    close(own);
    return sent;
}

Test(channel, reads_no_letter_without_the_number_of_its_job)
{
    static char    forged[4096];
    struct letter *letter = memory_allocate(sizeof(*letter));
    struct letter  verdict;
    memset(&verdict, 0, sizeof(verdict));
    verdict.kind = LETTER_VERDICT;
    memcpy(forged + 32, &verdict, offsetof(struct letter, posts));    // behind the number
    cr_expect_geq(send_forged(forged, 32 + offsetof(struct letter, posts)), RANKS);
    cr_expect_geq(send_forged(forged, 1), RANKS);
    cr_expect_geq(send_forged(forged, sizeof(forged)), RANKS);

    letter->kind = LETTER_ASK;
    channel_send(channels[0], 1, letter);

    cr_assert(receive(1, letter));
    cr_expect_eq(letter->kind, LETTER_ASK);
    cr_expect_not(channel_receive(channels[1], letter));
    free(letter);
}
