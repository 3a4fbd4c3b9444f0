// SPDX-License-Identifier: MIT
// Shared memory of a host's ranks, and the damage recorded there. Its name is unlinked before the run starts, so it is
// freed with the processes.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "internal.h"

static size_t bytes_of(const struct comm_topology *topology)
{
    return sizeof(struct segment) + (size_t)topology->local_ranks * sizeof(struct shown);
}

// Shared memory is a file, so the limit on the size of files (ulimit -f) applies to it.
static status name_failure(const struct comm_topology *topology, const char *name, int error)
{
    static const char remedy[] = "run.hang_seconds = 0 disables the watchdog, which needs it";
    struct rlimit     limit;
    if (error == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0) {
        return fail_as(
            EXIT_LAUNCH,
            "the limit on the size of files (ulimit -f) is %llu bytes, but the shared memory of this host's ranks "
            "needs %zu: raise the limit; %s",
            (unsigned long long)limit.rlim_cur, bytes_of(topology), remedy);
    }
    return fail_as(EXIT_LAUNCH, "cannot create the shared memory /dev/shm%s: %s; %s", name, strerror(error), remedy);
}

static status open_memory(struct segment **segment, const struct comm_topology *topology, const char *name, int flags)
{
    int file = shm_open(name, O_RDWR | O_CLOEXEC | flags, 0600);
    if (file < 0 || (flags != 0 && ftruncate(file, (off_t)bytes_of(topology)) != 0)) {
        int error = errno;
        if (file >= 0) {
            close(file);
            shm_unlink(name);    // the other ranks are not to map memory that has no bytes
        }
        return name_failure(topology, name, error);
    }
    void *memory = mmap(NULL, bytes_of(topology), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) {
        return fail_as(EXIT_LAUNCH, "cannot map %zu bytes of shared memory: %s", bytes_of(topology), strerror(errno));
    }
    *segment = memory;
    return OK;
}

// The first rank of a host creates it, the others open it, then the first unlinks the name.
status segment_open(struct segment **segment, struct comm *comm)
{
    const struct comm_topology *topology = &comm->topology;
    char                        name[64];
    uint64_t                    number = 0;
    status                      opened = OK;
    if (topology->rank == 0 && getrandom(&number, sizeof(number), 0) != sizeof(number)) {
        opened = fail_as(EXIT_LAUNCH, "no random number for the name of shared memory: %s", strerror(errno));
    }
    comm->ops->share(comm, &number, sizeof(number), 0);
    snprintf(name, sizeof(name), "/gswbench-%016" PRIx64 "-%d", number, topology->node);
    *segment = NULL;
    if (topology->local_rank == 0 && !failed(&opened)) {
        opened = open_memory(segment, topology, name, O_CREAT | O_EXCL);
    }
    comm->ops->barrier(comm);
    if (topology->local_rank != 0) {
        opened = open_memory(segment, topology, name, 0);
    }
    comm->ops->barrier(comm);
    if (topology->local_rank == 0) {
        shm_unlink(name);
    }
    return opened;
}

void segment_close(struct segment *segment, const struct comm_topology *topology)
{
    if (segment != NULL) {
        munmap(segment, bytes_of(topology));
    }
}

// Damaged numbers with which a step cannot continue, such as impossible token counts. The rank that finds one waits;
// the watchdog of rank 0 writes an INVALID result and ends the job. Ranks of other hosts send rank 0 a datagram.
void damage_note(struct segment *segment, int rank, int64_t step, const char *text)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&segment->damage, &none, 1)) {
        return;
    }
    char copy[SHOWN_BYTES];
    text_copy(copy, sizeof(copy), text);
    segment->damaged_rank = rank;
    segment->damaged_step = step;
    shown_text_write(segment->damage_text, copy);
    segment->damage = 2;
}

void damage_found(void *context, int rank, const char *text)
{
    struct watch *watch = context;
    int64_t       step  = watch->shown->step;
    for (int i = 0; i < watch->setup.comm->topology.local_ranks; i++) {    // ranks can be threads of one process
        if (watch->segment->ranks[i].rank == rank) {
            step = watch->segment->ranks[i].step;
        }
    }
    damage_note(watch->segment, rank, step, text);
}

// A datagram can be lost, so every poll sends it again.
static void tell_first(struct watch *watch)
{
    struct datagram *datagram = memory_allocate(sizeof(*datagram));
    datagram->kind            = DATAGRAM_DAMAGE;
    datagram->count           = 1;
    datagram->slots[0].rank   = watch->segment->damaged_rank;
    datagram->slots[0].step   = watch->segment->damaged_step;
    shown_text_read(datagram->slots[0].where, watch->segment->damage_text);
    channel_send(watch->channel, 0, datagram);
    free(datagram);
}

void damage_look(struct watch *watch)
{
    const struct watch_setup *setup   = &watch->setup;
    const struct segment     *segment = watch->segment;
    if (segment->damage != 2) {
        return;
    }
    if (setup->invalidate != NULL && watch_claim_end(watch)) {
        char text[SHOWN_BYTES];
        shown_text_read(text, segment->damage_text);
        setup->invalidate(setup->context, segment->damaged_rank, segment->damaged_step, text);
    }
    if (watch->channel != NULL && setup->comm->topology.node != 0 && watch->shown->rank == segment->damaged_rank) {
        tell_first(watch);
    }
}
