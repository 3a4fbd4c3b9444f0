// SPDX-License-Identifier: MIT
// Datagrams between watches: they arrive complete, and forged ones are ignored.
#include <arpa/inet.h>
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
#include "watch/internal.h"

enum { RANKS = 2 };

static struct local_hub *hub;
static struct comm       comms[RANKS];
static struct channel   *channels[RANKS];

// One host per rank.
static void *open_one(void *argument)
{
    int rank = (int)(intptr_t)argument;
    comm_open_local(&comms[rank], hub, rank);
    comms[rank].topology.node       = rank;
    comms[rank].topology.local_rank = 3 + rank;
    channels[rank]                  = channel_open(&comms[rank]);
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

// Polls, since delivery takes time even on one machine.
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

static bool find_socket(int file, struct sockaddr_in6 *address)
{
    socklen_t length = sizeof(*address);
    bool      is_one = getsockname(file, (struct sockaddr *)address, &length) == 0 && address->sin6_family == AF_INET6;
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &address->sin6_addr);
    return is_one;
}

// Sends to every datagram socket of this process, including the channels.
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

// Peeks at a datagram that has arrived at a socket of this process.
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
    struct letter *letter = memory_allocate(sizeof(*letter));
    cr_assert(receive(rank, letter));
    cr_expect_eq(letter->kind, kind);
    while (channel_receive(channels[rank], letter)) {
        cr_expect_eq(letter->kind, LETTER_ANSWER, "another letter of kind %d", letter->kind);
    }
    free(letter);
}

Test(channel, reads_no_letter_without_the_key_of_its_job)
{
    static char    forged[4096];
    struct letter *letter = memory_allocate(sizeof(*letter));
    cr_expect_geq(send_forged(forged, sizeof(forged)), RANKS);
    cr_expect_geq(send_forged(forged, 1), RANKS);
    for (size_t bytes = 24 + offsetof(struct letter, posts) - 8; bytes < 24 + offsetof(struct letter, posts) + 9;
         bytes++) {
        cr_expect_geq(send_forged(forged, bytes), RANKS);    // the length of a message without slots
    }

    letter->kind = LETTER_ASK;
    channel_send(channels[0], 1, letter);

    expect_only(1, LETTER_ASK);
    free(letter);
}

// Sends a message again, with each bit changed, and to another rank than its recipient.
Test(channel, reads_a_letter_once_and_as_it_was_sent)
{
    static char    seen[4096];
    struct letter *letter = memory_allocate(sizeof(*letter));
    letter->kind          = LETTER_VERDICT;
    channel_send(channels[0], 1, letter);
    ssize_t bytes = look(seen, sizeof(seen));
    cr_assert_gt(bytes, 0);
    expect_only(1, LETTER_VERDICT);

    cr_expect_geq(send_forged(seen, (size_t)bytes), RANKS);
    for (ssize_t bit = 0; bit < 8 * bytes; bit++) {
        seen[bit / 8] ^= (char)(1 << bit % 8);
        cr_expect_geq(send_forged(seen, (size_t)bytes), RANKS);
        seen[bit / 8] ^= (char)(1 << bit % 8);
        for (int rank = 0; rank < RANKS; rank++) {
            cr_expect_not(channel_receive(channels[rank], letter), "bit %d", (int)bit);
        }
    }
    letter->kind = LETTER_ASK;
    channel_send(channels[0], 1, letter);
    expect_only(1, LETTER_ASK);
    free(letter);
}

Test(channel, passes_over_no_more_than_64_letters_of_others_at_once)
{
    struct letter *letter = memory_allocate(sizeof(*letter));
    for (int i = 0; i < 150; i++) {
        cr_expect_geq(send_forged("other", 5), RANKS);
    }
    letter->kind = LETTER_HANG;
    channel_send(channels[0], 1, letter);

    cr_expect_not(channel_receive(channels[1], letter));
    cr_expect_not(channel_receive(channels[1], letter));
    expect_only(1, LETTER_HANG);
    free(letter);
}
