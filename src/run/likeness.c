// SPDX-License-Identifier: MIT
// What all ranks of a job have to have alike, or had better have: who has something else than most is named. Ranks tell
// each other hashes; only what differs travels as text.
#include "likeness.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/arena.h"

void likeness_add(struct likeness_list *list, const char *name, const char *value, const char *remedy)
{
    list->rows           = memory_resize(list->rows, (size_t)(list->count + 1) * sizeof(*list->rows));
    struct likeness *row = &list->rows[list->count++];
    *row                 = (struct likeness){.hash = XXH3_64bits(value, strlen(value)), .remedy = remedy};
    text_copy(row->name, sizeof(row->name), name);
    text_printable(row->value, sizeof(row->value), value);
}

void likeness_free(struct likeness_list *list)
{
    free(list->rows);
    *list = (struct likeness_list){.rows = NULL};
}

// The lowest of the ranks that have what most have; the lowest rank wins where no value has more.
static int find_usual(const struct likeness_voice *voices, int ranks, int *usual_count)
{
    int usual    = 0;
    *usual_count = 0;
    for (int rank = 0; rank < ranks && *usual_count <= ranks / 2; rank++) {
        int count = 0;
        for (int other = 0; other < ranks; other++) {
            count += strcmp(voices[other].value, voices[rank].value) == 0;
        }
        if (count > *usual_count) {
            usual        = rank;
            *usual_count = count;
        }
    }
    return usual;
}

void likeness_describe(char *text, size_t bytes, const char *name, const struct likeness_voice *voices, int ranks)
{
    int count, usual = find_usual(voices, ranks, &count), first = 0;
    while (strcmp(voices[first].value, voices[usual].value) == 0) {
        first++;
    }
    int used = snprintf(text, bytes, "rank %d on %s has %s %s", first, voices[first].host, name, voices[first].value);
    if (count < ranks - 1 && used >= 0 && (size_t)used < bytes) {
        used += snprintf(text + used, bytes - (size_t)used, " (%d ranks deviate)", ranks - count);
    }
    if (used >= 0 && (size_t)used < bytes) {
        snprintf(text + used, bytes - (size_t)used, ", %d of %d ranks, such as %d on %s, %s", count, ranks, usual,
                 voices[usual].host, voices[usual].value);
    }
}

static bool is_alike(const uint64_t *hashes, int row, int rows, int ranks)
{
    for (int rank = 1; rank < ranks; rank++) {
        if (hashes[(size_t)rank * (size_t)rows + (size_t)row] != hashes[row]) {
            return false;
        }
    }
    return true;
}

static void describe(char *text, size_t bytes, const struct likeness *row, struct comm *comm)
{
    struct likeness_voice own, *voices = memory_allocate((size_t)comm->place.ranks * sizeof(*voices));
    memset(&own, 0, sizeof(own));
    text_copy(own.host, sizeof(own.host), comm->place.host);
    text_copy(own.value, sizeof(own.value), row->value[0] == '\0' ? "none" : row->value);
    comm->ops->gather_all(comm, &own, voices, sizeof(own));
    likeness_describe(text, bytes, row->name, voices, comm->place.ranks);
    free(voices);
}

status likeness_compare(const struct likeness_list *list, struct comm *comm, struct text_buffer *notes)
{
    int       ranks = comm->place.ranks, rows = list->count;
    uint64_t *own    = memory_allocate((size_t)rows * sizeof(*own));
    uint64_t *all    = memory_allocate((size_t)ranks * (size_t)rows * sizeof(*all));
    status    result = OK;
    for (int row = 0; row < rows; row++) {
        own[row] = list->rows[row].hash;
    }
    comm->ops->gather_all(comm, own, all, (int64_t)((size_t)rows * sizeof(*own)));
    for (int row = 0; row < rows && !failed(&result); row++) {
        char text[LIKENESS_TEXT_BYTES];
        if (is_alike(all, row, rows, ranks)) {
            continue;
        }
        describe(text, sizeof(text), &list->rows[row], comm);
        if (list->rows[row].remedy != NULL) {
            result = fail_as(EXIT_LAUNCH, "%s: %s", text, list->rows[row].remedy);
        } else {
            text_append(notes, "%s\n", text);
        }
    }
    free(own);
    free(all);
    return result;
}
