// SPDX-License-Identifier: MIT
// O_DIRECT reader: a thread reads ahead into two slots.
#define _GNU_SOURCE    // O_DIRECT, madvise
#include "direct.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gswbench/arena.h"

// Huge pages need fewer disk requests per piece; small pages took twice as long.
enum { SLOTS = 2, BLOCK = 4096, HUGE_PAGE = 2 << 20, NOWHERE = -1 };

// Buffer of one piece: file offset, and bytes read or a negative errno.
struct slot {
    enum { FREE, READING, READ } state;
    int64_t offset, count;
    char   *data;
};

struct direct {
    int             file;
    pthread_t       thread;
    pthread_mutex_t mutex;
    pthread_cond_t  changed;
    bool            has_thread, is_closing;
    char           *memory;    // of all slots
    struct slot     slots[SLOTS];
    int64_t         next;             // offset of the next piece to read
    int64_t         end, expected;    // end of read-ahead; end of the range announced by the caller
};

// Clears O_DIRECT: some file systems accept it in open and reject it in read.
static bool drops_flag(int file)
{
    int flags = fcntl(file, F_GETFL);
    return (flags & O_DIRECT) != 0 && fcntl(file, F_SETFL, flags & ~O_DIRECT) == 0;
}

// A short read that is not a multiple of a block is the end of the file.
static int64_t read_piece(int file, char *data, int64_t offset)
{
    int64_t done = 0;
    while (done < DIRECT_PIECE && done % BLOCK == 0) {
        ssize_t count = pread(file, data + done, (size_t)(DIRECT_PIECE - done), offset + done);
        if (count < 0 && errno != EINTR && !(errno == EINVAL && drops_flag(file))) {
            return -errno;
        }
        if (count == 0) {
            break;
        }
        done += count > 0 ? count : 0;
    }
    return done;
}

static struct slot *find_free(struct direct *direct)
{
    for (int i = 0; i < SLOTS && direct->next < direct->end; i++) {
        if (direct->slots[i].state == FREE) {
            return &direct->slots[i];
        }
    }
    return NULL;
}

static void *read_ahead(void *argument)
{
    struct direct *direct = argument;
    pthread_mutex_lock(&direct->mutex);
    while (!direct->is_closing) {
        struct slot *slot = find_free(direct);
        if (slot == NULL) {
            pthread_cond_wait(&direct->changed, &direct->mutex);
            continue;
        }
        int64_t offset = direct->next;
        slot->state    = READING;
        slot->offset   = offset;
        direct->next += DIRECT_PIECE;
        pthread_mutex_unlock(&direct->mutex);
        int64_t count = read_piece(direct->file, slot->data, offset);
        pthread_mutex_lock(&direct->mutex);
        slot->count = count;
        slot->state = READ;
        pthread_cond_broadcast(&direct->changed);
    }
    pthread_mutex_unlock(&direct->mutex);
    return NULL;
}

struct direct *direct_open(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT | O_NONBLOCK | O_NOCTTY);    // as input_open
    if (file < 0) {
        return NULL;
    }
    char *memory = aligned_alloc(HUGE_PAGE, (size_t)SLOTS * DIRECT_PIECE);
    if (memory == NULL) {
        close(file);
        return NULL;
    }
    struct direct *direct = memory_allocate(sizeof(*direct));
    madvise(memory, (size_t)SLOTS * DIRECT_PIECE, MADV_HUGEPAGE);
    *direct = (struct direct){.file = file, .memory = memory, .expected = NOWHERE};
    for (int i = 0; i < SLOTS; i++) {
        direct->slots[i].data = memory + (size_t)i * DIRECT_PIECE;
    }
    pthread_mutex_init(&direct->mutex, NULL);
    pthread_cond_init(&direct->changed, NULL);
    direct->has_thread = pthread_create(&direct->thread, NULL, read_ahead, direct) == 0;
    if (!direct->has_thread) {
        direct_close(direct);
        return NULL;
    }
    return direct;
}

void direct_close(struct direct *direct)
{
    if (direct == NULL) {
        return;
    }
    if (direct->has_thread) {
        pthread_mutex_lock(&direct->mutex);
        direct->is_closing = true;
        pthread_cond_broadcast(&direct->changed);
        pthread_mutex_unlock(&direct->mutex);
        pthread_join(direct->thread, NULL);
    }
    pthread_cond_destroy(&direct->changed);
    pthread_mutex_destroy(&direct->mutex);
    close(direct->file);
    free(direct->memory);
    free(direct);
}

void direct_expect(struct direct *direct, int64_t begin, int64_t end)
{
    pthread_mutex_lock(&direct->mutex);
    direct->end      = begin == direct->expected ? end + (int64_t)SLOTS * DIRECT_PIECE : end;
    direct->expected = end;
    pthread_cond_broadcast(&direct->changed);
    pthread_mutex_unlock(&direct->mutex);
}

// Returns the slot of the piece. If none has it, restarts read-ahead there and discards other pieces.
static struct slot *find_piece(struct direct *direct, int64_t offset)
{
    struct slot *found = NULL;
    for (int i = 0; i < SLOTS; i++) {
        found = direct->slots[i].state != FREE && direct->slots[i].offset == offset ? &direct->slots[i] : found;
    }
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot    = &direct->slots[i];
        bool         is_next = found != NULL && slot->offset == offset + DIRECT_PIECE;
        if (slot != found && !is_next) {
            slot->offset = NOWHERE;
            slot->state  = slot->state == READ ? FREE : slot->state;
        }
    }
    direct->next = found != NULL ? direct->next : offset;
    pthread_cond_broadcast(&direct->changed);
    return found;
}

int64_t direct_take(struct direct *direct, int64_t offset, const char **data)
{
    int64_t piece = offset / DIRECT_PIECE * DIRECT_PIECE;
    pthread_mutex_lock(&direct->mutex);
    struct slot *slot = find_piece(direct, piece);
    while (slot == NULL || slot->state != READ) {
        pthread_cond_wait(&direct->changed, &direct->mutex);
        slot = find_piece(direct, piece);
    }
    pthread_mutex_unlock(&direct->mutex);
    *data = slot->data + (offset - piece);
    if (slot->count < 0) {
        errno = (int)-slot->count;
        return -1;
    }
    return slot->count > offset - piece ? slot->count - (offset - piece) : 0;
}
