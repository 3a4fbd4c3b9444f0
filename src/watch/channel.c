// SPDX-License-Identifier: MIT
// Letters between the watches of different hosts, as datagrams: no connection that could hang, and neither MPI nor NCCL
// has a part in it. A letter bears a number that rank 0 draws and only the job's ranks know; others' are not read.
#define _GNU_SOURCE
#include "channel.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gswbench/arena.h"

enum { ADDRESSES = 4, SECRET_BYTES = 32 };

// Where a rank is reached: all IPv4 addresses of its host, of which one is that of a network both are in.
struct station {
    int32_t  node, local_rank;
    uint32_t address[ADDRESSES];
    int32_t  count;
    uint16_t port;
};

struct channel {
    int             socket;
    int             rank;
    uint8_t         secret[SECRET_BYTES];
    struct station *stations;    // [ranks]
};

struct sealed {
    uint8_t       secret[SECRET_BYTES];
    struct letter letter;
};

static int32_t find_addresses(uint32_t address[ADDRESSES], bool is_loopback)
{
    struct ifaddrs *list;
    int32_t         count = 0;
    if (getifaddrs(&list) != 0) {
        return 0;
    }
    for (const struct ifaddrs *at = list; at != NULL && count < ADDRESSES; at = at->ifa_next) {
        bool is_fit = at->ifa_addr != NULL && at->ifa_addr->sa_family == AF_INET && (at->ifa_flags & IFF_UP) &&
                      ((at->ifa_flags & IFF_LOOPBACK) != 0) == is_loopback;
        if (is_fit) {
            struct sockaddr_in inet;
            memcpy(&inet, at->ifa_addr, sizeof(inet));
            address[count++] = inet.sin_addr.s_addr;
        }
    }
    freeifaddrs(list);
    return count;
}

// A rank without a socket is reached by nobody, and its host speaks for itself.
static void open_socket(struct channel *channel, struct station *own)
{
    struct sockaddr_in inet   = {.sin_family = AF_INET};
    socklen_t          length = sizeof(inet);
    channel->socket           = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (channel->socket < 0 || bind(channel->socket, (struct sockaddr *)&inet, sizeof(inet)) != 0 ||
        getsockname(channel->socket, (struct sockaddr *)&inet, &length) != 0) {
        return;
    }
    own->port  = inet.sin_port;
    own->count = find_addresses(own->address, false);
    if (own->count == 0) {
        own->count = find_addresses(own->address, true);
    }
}

struct channel *channel_open(struct comm *comm)
{
    struct channel *channel = memory_allocate(sizeof(*channel));
    struct station  own     = {.node = comm->place.node, .local_rank = comm->place.local_rank};
    channel->rank           = comm->place.rank;
    channel->stations       = memory_allocate((size_t)comm->place.ranks * sizeof(*channel->stations));
    if (channel->rank == 0 && getrandom(channel->secret, SECRET_BYTES, 0) != SECRET_BYTES) {
        memset(channel->secret, 0, SECRET_BYTES);    // opens no letter
    }
    comm->ops->share(comm, channel->secret, SECRET_BYTES, 0);
    open_socket(channel, &own);
    comm->ops->gather_all(comm, &own, channel->stations, sizeof(own));
    return channel;
}

void channel_close(struct channel *channel)
{
    if (channel->socket >= 0) {
        close(channel->socket);
    }
    free(channel->stations);
    free(channel);
}

int channel_node(const struct channel *channel, int rank)
{
    return channel->stations[rank].node;
}

int channel_local_rank(const struct channel *channel, int rank)
{
    return channel->stations[rank].local_rank;
}

static size_t bytes_of(int32_t count)
{
    return offsetof(struct sealed, letter.posts) + (size_t)count * sizeof(struct post);
}

void channel_send(struct channel *channel, int rank, struct letter *letter)
{
    struct sealed        *sealed  = memory_allocate(sizeof(*sealed));
    const struct station *station = &channel->stations[rank];
    letter->from                  = channel->rank;
    memcpy(sealed->secret, channel->secret, SECRET_BYTES);
    memcpy(&sealed->letter, letter, bytes_of(letter->count) - SECRET_BYTES);
    for (int32_t i = 0; i < station->count; i++) {
        struct sockaddr_in inet = {
            .sin_family = AF_INET, .sin_port = station->port, .sin_addr.s_addr = station->address[i]};
        sendto(channel->socket, sealed, bytes_of(letter->count), MSG_DONTWAIT, (struct sockaddr *)&inet, sizeof(inet));
    }
    free(sealed);
}

static bool is_ours(const struct channel *channel, const struct sealed *sealed, ssize_t bytes)
{
    static const uint8_t none[SECRET_BYTES];
    int32_t              count = sealed->letter.count;
    return bytes >= (ssize_t)bytes_of(0) && memcmp(sealed->secret, channel->secret, SECRET_BYTES) == 0 &&
           memcmp(channel->secret, none, SECRET_BYTES) != 0 && count >= 0 && count <= LETTER_POSTS &&
           bytes == (ssize_t)bytes_of(count);
}

bool channel_receive(struct channel *channel, struct letter *letter)
{
    struct sealed *sealed = memory_allocate(sizeof(*sealed));
    ssize_t        bytes  = 0;
    bool           is_letter;
    do {
        bytes     = recv(channel->socket, sealed, sizeof(*sealed), MSG_DONTWAIT);
        is_letter = bytes >= 0 && is_ours(channel, sealed, bytes);
    } while (bytes >= 0 && !is_letter);
    if (is_letter) {
        *letter = sealed->letter;
    }
    free(sealed);
    return is_letter;
}
