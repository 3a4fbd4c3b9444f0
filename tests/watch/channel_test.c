// SPDX-License-Identifier: MIT
// Tests datagrams between watchdogs: they arrive complete, and forged datagrams are ignored.
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "ranks.h"
#include "watch/internal.h"

enum { RANKS = 2 };

static struct channel *channels[RANKS];
static struct datagram datagram;

// Opens a channel. Each rank is on its own host.
static void open_one(struct comm *comm, void *unused)
{
    (void)unused;
    comm->topology.node           = comm->topology.rank;
    comm->topology.local_rank     = 3 + comm->topology.rank;
    channels[comm->topology.rank] = channel_open(comm);
}

static void open_all(void)
{
    ranks_run(RANKS, open_one, NULL);
}

static void close_all(void)
{
    for (int rank = 0; rank < RANKS; rank++) {
        channel_close(channels[rank]);
    }
}

TestSuite(channel, .init = open_all, .fini = close_all);

// Polls for a datagram, since delivery takes time even on one machine.
static bool receive(int rank)
{
    for (int i = 0; i < 1000; i++) {
        if (channel_receive(channels[rank], &datagram)) {
            return true;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

Test(channel, brings_what_ranks_of_another_host_show)
{
    datagram.kind  = DATAGRAM_ANSWER;
    datagram.count = DATAGRAM_SLOTS;
    for (int i = 0; i < DATAGRAM_SLOTS; i++) {
        datagram.slots[i].rank = 100 + i;
    }
    cr_expect_eq(channel_node(channels[0], 1), 1);
    cr_expect_eq(channel_local_rank(channels[0], 1), 4);
    cr_expect_not(channel_receive(channels[0], &datagram));

    channel_send(channels[1], 0, &datagram);

    memset(&datagram, 0, sizeof(datagram));
    cr_assert(receive(0));
    cr_expect_eq(datagram.kind, DATAGRAM_ANSWER);
    cr_expect_eq(datagram.from, 1);
    cr_expect_eq(datagram.count, DATAGRAM_SLOTS);
    cr_expect_eq(datagram.slots[DATAGRAM_SLOTS - 1].rank, 99 + DATAGRAM_SLOTS);
}

static bool find_socket(int file, struct sockaddr_in6 *address)
{
    socklen_t length = sizeof(*address);
    bool      is_one = getsockname(file, (struct sockaddr *)address, &length) == 0 && address->sin6_family == AF_INET6;
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &address->sin6_addr);
    return is_one;
}

// Sends bytes to every datagram socket of this process, including the channels' sockets. Returns the number of
// datagrams.
static int send_forged(const void *bytes, size_t count)
{
    int own = socket(AF_INET6, SOCK_DGRAM, 0), sent = 0;
    for (int file = 0; file < 64; file++) {
        struct sockaddr_in6 address;
        if (file != own && find_socket(file, &address)) {
            sent += sendto(own, bytes, count, 0, (struct sockaddr *)&address, sizeof(address)) == (ssize_t)count;
        }
    }
    close(own);
    return sent;
}

// Copies a datagram that has arrived at a socket of this process, without receiving it.
static ssize_t look(char *bytes, size_t room)
{
    for (int i = 0; i < 1000; i++) {
        for (int file = 0; file < 64; file++) {
            struct sockaddr_in6 address;
            ssize_t count = find_socket(file, &address) ? recv(file, bytes, room, MSG_PEEK | MSG_DONTWAIT) : -1;
            if (count > 0) {
                return count;
            }
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return 0;
}

static void expect_only(int rank, int kind)
{
    cr_assert(receive(rank));
    cr_expect_eq(datagram.kind, kind);
    while (channel_receive(channels[rank], &datagram)) {
        cr_expect_eq(datagram.kind, DATAGRAM_ANSWER, "another datagram of kind %d", datagram.kind);
    }
}

static void send_kind(int kind)
{
    datagram.kind = kind;
    channel_send(channels[0], 1, &datagram);
}

Test(channel, reads_no_datagram_without_the_key_of_its_job)
{
    static char forged[4096];
    cr_expect_geq(send_forged(forged, sizeof(forged)), RANKS);
    cr_expect_geq(send_forged(forged, 1), RANKS);
    for (size_t bytes = 24 + offsetof(struct datagram, slots) - 8; bytes < 24 + offsetof(struct datagram, slots) + 9;
         bytes++) {
        cr_expect_geq(send_forged(forged, bytes), RANKS);    // long enough for a datagram without slots
    }

    send_kind(DATAGRAM_ASK);

    expect_only(1, DATAGRAM_ASK);
}

// Replays a datagram to its recipient, sends it with each bit flipped, and sends it to another rank. Only the original
// may be accepted.
Test(channel, reads_a_datagram_once_and_as_it_was_sent)
{
    static char seen[4096];
    send_kind(DATAGRAM_VERDICT);
    ssize_t bytes = look(seen, sizeof(seen));
    cr_assert_gt(bytes, 0);
    expect_only(1, DATAGRAM_VERDICT);

    cr_expect_geq(send_forged(seen, (size_t)bytes), RANKS);
    for (ssize_t bit = 0; bit < 8 * bytes; bit++) {
        seen[bit / 8] ^= (char)(1 << bit % 8);
        cr_expect_geq(send_forged(seen, (size_t)bytes), RANKS);
        seen[bit / 8] ^= (char)(1 << bit % 8);
        for (int rank = 0; rank < RANKS; rank++) {
            cr_expect_not(channel_receive(channels[rank], &datagram), "bit %d", (int)bit);
        }
    }
    send_kind(DATAGRAM_ASK);
    expect_only(1, DATAGRAM_ASK);
}

Test(channel, passes_over_no_more_than_64_datagrams_of_others_at_once)
{
    for (int i = 0; i < 150; i++) {
        cr_expect_geq(send_forged("other", 5), RANKS);
    }
    send_kind(DATAGRAM_HANG);

    cr_expect_not(channel_receive(channels[1], &datagram));
    cr_expect_not(channel_receive(channels[1], &datagram));
    expect_only(1, DATAGRAM_HANG);
}
