// SPDX-License-Identifier: MIT
// UDP messages between the watchdogs of different hosts. A datagram cannot hang as a connection can, and needs neither
// MPI nor NCCL. All ranks of a job share a random key. Each message has a sequence number and a SipHash-2-4 digest
// under this key, so forged, modified and replayed messages are dropped. Messages are not encrypted.
#define _GNU_SOURCE
#include "internal.h"

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
#include "gswbench/siphash.h"
#include "gswbench/text.h"

enum { FOREIGN_MAX = 64 };    // maximum of other datagrams that one channel_receive drops; its caller holds a mutex

// The socket of a rank. Its addresses are in channel->addresses; messages go to all of them, because it is not known
// which one is on the network between two hosts.
struct peer {
    int32_t  node, local_rank;
    int32_t  count;    // number of addresses
    uint16_t port;
    char     host[64];
};

struct channel {
    int              socket;
    bool             is_plain;    // the socket is IPv4, because the system has no IPv6
    bool             has_key;
    int              rank, ranks;
    uint8_t          key[SIPHASH_KEY_BYTES];
    struct peer     *peers;        // [ranks]
    struct in6_addr *addresses;    // [ranks][room]: addresses of each rank; IPv4 is mapped into IPv6
    int32_t          room;         // maximum number of addresses of a rank
    uint64_t         number;       // sequence number of the last message sent
    uint64_t        *numbers;      // [ranks]: sequence number of the last message received from each
};

// A message as it is sent.
struct sealed {
    uint64_t        digest;    // SipHash of the bytes that follow
    uint64_t        number;
    int32_t         to;
    int32_t         unused;
    struct datagram datagram;
};

// Converts an address to IPv6. Returns false if other hosts cannot use it: a link-local address is valid only with the
// name of an interface.
static bool convert_address(const struct sockaddr *from, struct in6_addr *to)
{
    if (from->sa_family == AF_INET) {
        struct sockaddr_in inet;
        memcpy(&inet, from, sizeof(inet));
        *to = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
        memcpy(&to->s6_addr[12], &inet.sin_addr, 4);
        return true;
    }
    struct sockaddr_in6 inet;
    if (from->sa_family == AF_INET6) {
        memcpy(&inet, from, sizeof(inet));
        *to = inet.sin6_addr;
    }
    return from->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(to);
}

// Returns the address of every interface that is up, either only loopback or only others. The caller frees them.
static struct in6_addr *find_addresses(int32_t *count, bool is_loopback)
{
    struct ifaddrs  *list  = NULL;
    struct in6_addr *found = NULL, address;
    *count                 = 0;
    if (getifaddrs(&list) != 0) {
        return NULL;
    }
    for (const struct ifaddrs *at = list; at != NULL; at = at->ifa_next) {
        bool is_fit = at->ifa_addr != NULL && (at->ifa_flags & IFF_UP) &&
                      ((at->ifa_flags & IFF_LOOPBACK) != 0) == is_loopback && convert_address(at->ifa_addr, &address);
        if (is_fit) {
            LIST_APPEND(found, *count, address);
        }
    }
    freeifaddrs(list);
    return found;
}

// Opens an IPv6 socket that also receives IPv4, or an IPv4 socket if the system has no IPv6. Returns its port; 0:
// failed.
static uint16_t open_socket(struct channel *channel)
{
    struct sockaddr_in6 wide  = {.sin6_family = AF_INET6};
    struct sockaddr_in  plain = {.sin_family = AF_INET};
    int                 off = 0, type = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    socklen_t           length = sizeof(wide);
    channel->socket            = socket(AF_INET6, type, 0);
    if (channel->socket >= 0 && setsockopt(channel->socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0 &&
        bind(channel->socket, (struct sockaddr *)&wide, sizeof(wide)) == 0 &&
        getsockname(channel->socket, (struct sockaddr *)&wide, &length) == 0) {
        return wide.sin6_port;
    }
    if (channel->socket >= 0) {
        close(channel->socket);
    }
    length            = sizeof(plain);
    channel->is_plain = true;
    channel->socket   = socket(AF_INET, type, 0);
    return channel->socket >= 0 && bind(channel->socket, (struct sockaddr *)&plain, sizeof(plain)) == 0 &&
                   getsockname(channel->socket, (struct sockaddr *)&plain, &length) == 0
               ? plain.sin_port
               : 0;
}

// A host with many ranks answers in several datagrams at once. If the kernel grants no larger buffer, they may be lost.
static void enlarge_buffer(const struct channel *channel)
{
    int bytes = 4 << 20;
    if (channel->socket >= 0) {
        setsockopt(channel->socket, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    }
}

// Gathers every rank's addresses. Each rank sends the same number, so shorter lists are padded.
static void share_addresses(struct channel *channel, struct comm *comm, const struct in6_addr *own, int32_t count)
{
    for (int rank = 0; rank < channel->ranks; rank++) {
        int32_t other = channel->peers[rank].count;
        channel->room = other > channel->room ? other : channel->room;
    }
    if (channel->room == 0) {
        return;
    }
    size_t           bytes = (size_t)channel->room * sizeof(*own);
    struct in6_addr *mine  = memory_allocate(bytes);
    if (count > 0) {
        memcpy(mine, own, (size_t)count * sizeof(*own));
    }
    channel->addresses = comm_gather(comm, mine, bytes);
    free(mine);
}

// Without a socket, a rank receives no message, and its host reports a hang by itself.
struct channel *channel_open(struct comm *comm)
{
    struct channel      *channel = memory_allocate(sizeof(*channel));
    struct peer          own     = {.node = comm->topology.node, .local_rank = comm->topology.local_rank};
    static const uint8_t none[SIPHASH_KEY_BYTES];
    channel->rank    = comm->topology.rank;
    channel->ranks   = comm->topology.ranks;
    channel->numbers = memory_allocate((size_t)channel->ranks * sizeof(*channel->numbers));
    if (channel->rank == 0 && getrandom(channel->key, sizeof(channel->key), 0) != sizeof(channel->key)) {
        memset(channel->key, 0, sizeof(channel->key));    // no key (has_key): no rank accepts a message
    }
    comm->ops->share(comm, channel->key, sizeof(channel->key), 0);
    channel->has_key = memcmp(channel->key, none, sizeof(none)) != 0;
    own.port         = open_socket(channel);
    enlarge_buffer(channel);
    struct in6_addr *addresses = find_addresses(&own.count, false);
    if (own.count == 0) {
        addresses = find_addresses(&own.count, true);
    }
    own.count = own.port != 0 ? own.count : 0;
    text_copy(own.host, sizeof(own.host), comm->topology.host);
    channel->peers = comm_gather(comm, &own, sizeof(own));
    share_addresses(channel, comm, addresses, own.count);
    free(addresses);
    return channel;
}

void channel_close(struct channel *channel)
{
    if (channel->socket >= 0) {
        close(channel->socket);
    }
    free(channel->peers);
    free(channel->addresses);
    free(channel->numbers);
    free(channel);
}

int channel_node(const struct channel *channel, int rank)
{
    return channel->peers[rank].node;
}

const char *channel_host(const struct channel *channel, int rank)
{
    return channel->peers[rank].host;
}

int channel_local_rank(const struct channel *channel, int rank)
{
    return channel->peers[rank].local_rank;
}

static size_t message_bytes(int32_t count)
{
    return offsetof(struct sealed, datagram.slots) + (size_t)count * sizeof(struct slot);
}

static uint64_t find_digest(const struct channel *channel, const struct sealed *sealed, size_t bytes)
{
    size_t begin = offsetof(struct sealed, number);
    return siphash(channel->key, (const char *)sealed + begin, bytes - begin);
}

static void send_to(const struct channel *channel, const struct sealed *sealed, const struct in6_addr *address,
                    uint16_t port)
{
    struct sockaddr_in6 wide  = {.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = *address};
    struct sockaddr_in  plain = {.sin_family = AF_INET, .sin_port = port};
    memcpy(&plain.sin_addr, &address->s6_addr[12], 4);
    size_t bytes = message_bytes(sealed->datagram.count);
    if (!channel->is_plain) {
        sendto(channel->socket, sealed, bytes, MSG_DONTWAIT, (struct sockaddr *)&wide, sizeof(wide));
    } else if (IN6_IS_ADDR_V4MAPPED(address)) {
        sendto(channel->socket, sealed, bytes, MSG_DONTWAIT, (struct sockaddr *)&plain, sizeof(plain));
    }
}

// Sends the message to every address of the rank. The receiver takes the first copy, and drops the others because of
// their sequence number.
void channel_send(struct channel *channel, int rank, struct datagram *datagram)
{
    struct sealed     *sealed = memory_allocate(sizeof(*sealed));
    const struct peer *peer   = &channel->peers[rank];
    datagram->from            = channel->rank;
    sealed->number            = ++channel->number;
    sealed->to                = rank;
    memcpy(&sealed->datagram, datagram, message_bytes(datagram->count) - offsetof(struct sealed, datagram));
    sealed->digest = find_digest(channel, sealed, message_bytes(datagram->count));
    for (int32_t i = 0; i < peer->count; i++) {
        send_to(channel, sealed, &channel->addresses[(int64_t)rank * channel->room + i], peer->port);
    }
    free(sealed);
}

// Returns whether a rank of this job sent the datagram to this rank, after the last one received from that rank.
static bool is_authentic(const struct channel *channel, const struct sealed *sealed, ssize_t bytes)
{
    const struct datagram *datagram = &sealed->datagram;
    return channel->has_key && bytes >= (ssize_t)message_bytes(0) && datagram->count >= 0 &&
           datagram->count <= DATAGRAM_SLOTS && bytes == (ssize_t)message_bytes(datagram->count) &&
           sealed->digest == find_digest(channel, sealed, (size_t)bytes) && sealed->to == channel->rank &&
           datagram->from >= 0 && datagram->from < channel->ranks && sealed->number > channel->numbers[datagram->from];
}

bool channel_receive(struct channel *channel, struct datagram *datagram)
{
    struct sealed *sealed      = memory_allocate(sizeof(*sealed));
    bool           is_datagram = false;
    for (int i = 0; i < FOREIGN_MAX && !is_datagram; i++) {
        ssize_t bytes = recv(channel->socket, sealed, sizeof(*sealed), MSG_DONTWAIT);
        if (bytes < 0) {
            break;
        }
        is_datagram = is_authentic(channel, sealed, bytes);
    }
    if (is_datagram) {
        channel->numbers[sealed->datagram.from] = sealed->number;
        *datagram                               = sealed->datagram;
    }
    free(sealed);
    return is_datagram;
}
