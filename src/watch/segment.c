// SPDX-License-Identifier: MIT
// Shared memory of the ranks of a host: the state that each rank publishes, its description, and the first damage
// (damage_note). The name of the memory is removed before the run starts, so the memory is freed when the processes
// end.
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
#include "gswbench/clock.h"
#include "gswbench/text.h"
#include "internal.h"

// Returns the state letter of a process. In /proc/PID/stat it follows the command in parentheses, which may contain any
// character.
static char process_state(int pid)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return '-';
    }
    ssize_t used = read(file, text, sizeof(text) - 1);
    close(file);
    text[used > 0 ? used : 0] = '\0';
    const char *bracket       = strrchr(text, ')');
    return bracket != NULL && bracket[1] == ' ' ? bracket[2] : '?';
}

void shown_text_write(_Atomic char to[SHOWN_BYTES], const char from[SHOWN_BYTES])
{
    for (size_t i = 0; i < SHOWN_BYTES; i++) {
        atomic_store_explicit(&to[i], from[i], memory_order_relaxed);
    }
}

void shown_text_read(char to[SHOWN_BYTES], const _Atomic char from[SHOWN_BYTES])
{
    for (size_t i = 0; i < SHOWN_BYTES; i++) {
        to[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
    }
}

void slot_read(struct slot *slot, const struct shown *shown, const char *host)
{
    double now = clock_seconds();
    *slot      = (struct slot){.rank     = shown->rank,
                               .pid      = shown->pid,
                               .phase    = shown->phase,
                               .step     = shown->step,
                               .sequence = shown->sequence,
                               .phases   = shown->phases,
                               .still    = now - shown->moved,
                               .age      = now - shown->looked,
                               .state    = process_state(shown->pid)};
    text_copy(slot->host, sizeof(slot->host), host);
    shown_text_read(slot->where, shown->where);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        slot->streams[stream] = (struct stream_slot){.op   = shown->progress.op[stream] - 1,
                                                     .axes = shown->axes[stream],
                                                     .mark = shown->marks[stream],
                                                     .peer = shown->peers[stream]};
    }
    for (int i = 0; i < NEIGHBOURS; i++) {
        slot->messages[i] =
            (struct messages){shown->messages[i].peer, shown->messages[i].sent, shown->messages[i].received};
    }
}

void slot_count_messages(struct shown *shown, const struct plan *plan)
{
    struct messages counts[NEIGHBOURS] = {{.peer = -1}, {.peer = -1}};
    for (int32_t i = 0; plan != NULL && i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if ((op->kind == OP_SEND || op->kind == OP_RECEIVE) && i < shown->progress.op[op->stream]) {
            int32_t peer = (int32_t)plan->groups[op->shape.communication.group].ranks[op->shape.communication.peer];
            struct messages *count = &counts[counts[0].peer >= 0 && counts[0].peer != peer];
            count->peer            = peer;
            count->sent += op->kind == OP_SEND;
            count->received += op->kind == OP_RECEIVE;
        }
    }
    for (int i = 0; i < NEIGHBOURS; i++) {
        shown->messages[i].peer     = counts[i].peer;
        shown->messages[i].sent     = counts[i].sent;
        shown->messages[i].received = counts[i].received;
    }
}

// Publishes the communication op of each stream. is_part: the plan runs outside the job's steps. Then any two ranks may
// form a group, which the mesh axes do not identify, so the peer's rank is published.
static void show_communications(struct shown *shown, const struct plan *plan, bool is_part)
{
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        int              index = shown->progress.op[stream] - 1;
        const struct op *op    = index >= 0 && plan != NULL ? &plan->ops[index] : NULL;
        uint32_t         axes = 0, mark = 0;
        int64_t          peer = -1;
        if (op != NULL && shown->progress.moves[stream] != 0) {
            const struct plan_group *group = &plan->groups[op->shape.communication.group];
            axes                           = group->axes;
            mark                           = (uint32_t)(op->shape.communication.elements * OP_COUNT + op->kind);
            if (op->kind == OP_SEND || op->kind == OP_RECEIVE) {
                peer = group->ranks[op->shape.communication.peer];
            } else if (is_part && group->size == 2) {
                peer = group->ranks[1 - group->index];
                // makes the marks of the two ranks differ, which has_joined (blame.c) expects of a pair
                mark = 2 * mark + (uint32_t)group->index;
            }
        }
        shown->axes[stream]  = axes;
        shown->marks[stream] = mark;
        shown->peers[stream] = (int)peer;
    }
}

static void describe_position(const struct slot *slot, const struct plan *plan, char *text, size_t bytes)
{
    int32_t found = slot_op(slot);
    if (found >= 0 && found < plan->op_count && slot->phase <= WATCH_STEP) {
        char name[240];
        snprintf(text, bytes, "step %" PRId64 ", %s", slot->step, plan_op_name(plan, found, name, sizeof(name)));
        return;
    }
    static const char *const names[] = {[WATCH_OPENING] = "before the first step",
                                        [WATCH_STEP]    = "between ops of step",
                                        [WATCH_BETWEEN] = "after step",
                                        [WATCH_CLOSING] = "after the last step",
                                        [WATCH_FILE]    = "at a file",
                                        [WATCH_FILES]   = "between files",
                                        [WATCH_SAVING]  = "in the checkpoint after step"};
    if (slot->phase < 0 || slot->phase >= (int32_t)(sizeof(names) / sizeof(names[0]))) {    // an unknown phase
        text_copy(text, bytes, slot->where);
        return;
    }
    bool has_step = slot->phase == WATCH_STEP || slot->phase == WATCH_BETWEEN || slot->phase == WATCH_SAVING;
    snprintf(text, bytes, has_step ? "%s %" PRId64 : "%s", names[slot->phase], slot->step);
}

static int64_t find_stage(const struct plan *plan, int64_t rank)
{
    int64_t coordinates[AXIS_COUNT];
    mesh_coordinates(&plan->mesh, rank, coordinates);
    return coordinates[AXIS_PP];
}

int slot_sequence(const struct plan *plan)
{
    return plan != NULL ? 1 + (int)find_stage(plan, plan->rank) : -1;
}

void slot_name_place(const struct slot *slot, const struct plan *plan, char *text, size_t bytes)
{
    bool is_own = plan != NULL && find_stage(plan, slot->rank) == find_stage(plan, plan->rank) && slot->pid >= 0;
    if (is_own && slot->phase != WATCH_FILE) {
        describe_position(slot, plan, text, bytes);
    } else if (slot->phase != WATCH_FILE && strstr(slot->where, ", op ") == NULL &&
               slot_op(slot) >= 0) {    // the published text does not have the op yet
        snprintf(text, bytes, "%s, op %" PRId32, slot->where, slot_op(slot));
    } else {
        text_copy(text, bytes, slot->where);
    }
}

void slot_show(struct shown *shown, const struct plan *plan)
{
    struct slot slot;
    char        where[SHOWN_BYTES];
    show_communications(shown, plan, false);
    slot_read(&slot, shown, "");
    describe_position(&slot, plan, where, sizeof(where));
    shown_text_write(shown->where, where);
}

void slot_show_part(struct shown *shown, const struct plan *plan, const char *words)
{
    struct slot slot;
    char        where[SHOWN_BYTES], name[240];
    show_communications(shown, plan, true);
    slot_read(&slot, shown, "");
    int32_t op = plan != NULL ? slot_op(&slot) : -1;
    snprintf(where, sizeof(where), op >= 0 ? "%.79s, %.79s" : "%s", words,
             op >= 0 ? plan_op_name(plan, op, name, sizeof(name)) : "");
    shown_text_write(shown->where, where);
}

int32_t slot_op(const struct slot *slot)
{
    int32_t furthest = -1, started = -1;
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        const struct stream_slot *at = &slot->streams[stream];
        furthest                     = at->axes != 0 && at->op > furthest ? at->op : furthest;
        started                      = at->op > started ? at->op : started;
    }
    int32_t computed = slot->streams[STREAM_COMPUTE].op;
    return furthest >= 0 ? furthest : computed >= 0 ? computed : started;
}

static size_t segment_bytes(const struct comm_topology *topology)
{
    return sizeof(struct segment) + (size_t)topology->local_ranks * sizeof(struct shown);
}

// Describes why the shared memory cannot be created. It is a file, so the limit on file sizes (ulimit -f) applies to
// it.
static status explain_failure(const struct comm_topology *topology, const char *name, int error)
{
    static const char remedy[] = "run.hang_seconds = 0 disables the watchdog, which needs it";
    struct rlimit     limit;
    FAIL_AS_IF(error == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0, EXIT_LAUNCH,
               "the limit on the size of files (ulimit -f) is %llu bytes, but the shared memory of this host's ranks "
               "needs %zu: raise the limit; %s",
               (unsigned long long)limit.rlim_cur, segment_bytes(topology), remedy);
    return fail_as(EXIT_LAUNCH, "cannot create the shared memory /dev/shm%s: %s; %s", name, strerror(error), remedy);
}

static status open_memory(struct segment **segment, const struct comm_topology *topology, const char *name, int flags)
{
    int file  = shm_open(name, O_RDWR | O_CLOEXEC | flags, 0600);
    int error = file < 0 ? errno : 0;
    if (file >= 0 && flags != 0) {    // reserves the pages: without space, the first write to one raises SIGBUS
        do {
            error = posix_fallocate(file, 0, (off_t)segment_bytes(topology));
        } while (error == EINTR);
    }
    if (error != 0) {
        if (file >= 0) {
            close(file);
            shm_unlink(name);    // other ranks must not map a file that is too short
        }
        return explain_failure(topology, name, error);
    }
    void *memory = mmap(NULL, segment_bytes(topology), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    FAIL_AS_IF(memory == MAP_FAILED, EXIT_LAUNCH, "cannot map %zu bytes of shared memory: %s", segment_bytes(topology),
               strerror(errno));
    *segment = memory;
    return OK;
}

// The first rank of a host creates the shared memory, then the others open it, then the first removes its name.
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
    munmap(segment, segment_bytes(topology));
}

// Records damage, a value with which a step cannot continue, such as an impossible token count. The rank that found it
// waits, and the watchdog of rank 0 ends the job with an INVALID result. Other hosts send the damage to rank 0.
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
    // `context` may be another rank's watch, if ranks are threads of one process
    for (int i = 0; i < watch->setup.comm->topology.local_ranks; i++) {
        if (watch->segment->ranks[i].rank == rank) {
            step = watch->segment->ranks[i].step;
        }
    }
    damage_note(watch->segment, rank, step, text);
}

// Sends the damage to rank 0. Each poll sends it again, because a datagram can be lost.
static void tell_rank_zero(struct watch *watch)
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
        tell_rank_zero(watch);
    }
}
