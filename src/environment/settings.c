// SPDX-License-Identifier: MIT
// Checks that settings agree on all ranks and names the outliers. Ranks exchange hashes, and text only of mismatches.
#include "settings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"

// Truncated or escaped values end with a hash, so that different values look different.
static void show(char *text, size_t bytes, const char *value, uint64_t hash)
{
    static const size_t mark_bytes = sizeof("#01234567");
    text_printable(text, bytes, value);
    if (strcmp(text, value) != 0) {
        size_t used = strlen(text), at = used + mark_bytes <= bytes ? used : bytes - mark_bytes;
        snprintf(text + at, bytes - at, "#%08x", (unsigned)(hash >> 32));
    }
}

void settings_add(struct setting_list *list, const struct setting_kind *kind, const char *name, const char *value)
{
    list->rows          = memory_resize(list->rows, (size_t)(list->count + 1) * sizeof(*list->rows));
    struct setting *row = &list->rows[list->count++];
    *row                = (struct setting){.hash = XXH3_64bits(value, strlen(value)), .kind = *kind};
    snprintf(row->name, sizeof(row->name), "%.60s%s", name, kind->is_setting ? " =" : "");
    show(row->value, sizeof(row->value), value, row->hash);
}

void settings_print_name(char *text, size_t bytes, const char *name)
{
    const char *end = strstr(name, " =");
    snprintf(text, bytes, "%.*s", (int)(end != NULL ? (size_t)(end - name) : strlen(name)), name);
}

void settings_free(struct setting_list *list)
{
    free(list->rows);
    *list = (struct setting_list){.rows = NULL};
}

// Lowest rank with the most common value; ties go to the lowest rank.
static int find_usual(const struct rank_value *voices, int ranks, int *usual_count)
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

void mismatch_describe(char *text, size_t bytes, const char *name, const struct rank_value *voices, int ranks)
{
    int count, usual = find_usual(voices, ranks, &count), first = 0;
    while (first < ranks - 1 && strcmp(voices[first].value, voices[usual].value) == 0) {
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

// Hashes of a row's name and value. Name 0: no row.
struct key {
    uint64_t name, value;
};

struct keys {
    struct key *list;    // [ranks][width]; NULL: all ranks agree
    int64_t     width;
    int         ranks;
};

static struct keys gather_keys(const struct setting_list *list, struct comm *comm)
{
    struct keys keys = {.ranks = comm->topology.ranks, .width = list->count};
    struct key *own  = memory_allocate((size_t)(list->count + 1) * sizeof(*own));
    for (int row = 0; row < list->count; row++) {
        const char *name = list->rows[row].name;
        own[row]         = (struct key){XXH3_64bits(name, strlen(name)), list->rows[row].hash};
    }
    struct key  digest  = {XXH3_64bits(own, (size_t)list->count * sizeof(*own)), (uint64_t)list->count};
    bool        is_one  = true;
    struct key *digests = comm_gather(comm, &digest, sizeof(digest));
    for (int rank = 0; rank < keys.ranks; rank++) {
        is_one &= digests[rank].name == digests[0].name;
        keys.width = (int64_t)digests[rank].value > keys.width ? (int64_t)digests[rank].value : keys.width;
    }
    free(digests);
    if (!is_one) {
        own = memory_resize(own, (size_t)keys.width * sizeof(*own));
        memset(own + list->count, 0, (size_t)(keys.width - list->count) * sizeof(*own));
        keys.list = comm_gather(comm, own, (size_t)keys.width * sizeof(*own));
    }
    free(own);
    return keys;
}

// Tries the same index first, since most ranks have the same rows.
static const struct key *find_key(const struct keys *keys, int rank, int64_t row, uint64_t name)
{
    const struct key *list = keys->list + rank * keys->width;
    for (int64_t i = -1; i < keys->width; i++) {
        const struct key *key = &list[i < 0 ? row : i];
        if (key->name == name) {
            return key;
        }
    }
    return NULL;
}

// Whether a row differs between ranks and no lower rank has it: each row is judged once.
static bool differs_first(const struct keys *keys, int rank, int64_t row)
{
    const struct key *own    = &keys->list[rank * keys->width + row];
    bool              unlike = false;
    for (int other = 0; other < keys->ranks && own->name != 0; other++) {
        const struct key *key = find_key(keys, other, row, own->name);
        if (other < rank && key != NULL) {
            return false;
        }
        unlike |= key == NULL || key->value != own->value;
    }
    return unlike;
}

static struct rank_value *gather_voices(const struct setting_list *list, uint64_t name, struct comm *comm)
{
    struct rank_value own;
    memset(&own, 0, sizeof(own));
    text_copy(own.host, sizeof(own.host), comm->topology.host);
    text_copy(own.value, sizeof(own.value), "none");
    for (int i = 0; i < list->count; i++) {
        const struct setting *row = &list->rows[i];
        if (XXH3_64bits(row->name, strlen(row->name)) == name) {
            text_copy(own.value, sizeof(own.value), row->value[0] == '\0' ? "none" : row->value);
            text_copy(own.name, sizeof(own.name), row->name);
            text_copy(own.remedy, sizeof(own.remedy), row->kind.remedy == NULL ? "" : row->kind.remedy);
            own.rule = row->kind.rule;
        }
    }
    struct rank_value *voices = comm_gather(comm, &own, sizeof(own));
    return voices;
}

static status judge(struct rank_value *voices, int first, int ranks, struct rank_environment *environment)
{
    const struct rank_value *row = &voices[first];
    char                     text[SETTING_TEXT_BYTES];
    mismatch_describe(text, sizeof(text), row->name, voices, ranks);
    if (row->rule == SETTING_REQUIRED) {
        return fail_as(EXIT_LAUNCH, "%s: %s", text, row->remedy);
    }
    if (row->rule == SETTING_NOTED) {
        environment_note(&environment->notes, "ranks-unlike", "%s", text);
    }
    mismatches_add(environment, row->name, voices, ranks);
    return OK;
}

status settings_compare(const struct setting_list *list, struct comm *comm, struct rank_environment *environment)
{
    struct keys keys   = gather_keys(list, comm);
    status      result = OK;
    for (int rank = 0; rank < keys.ranks && keys.list != NULL; rank++) {
        for (int64_t row = 0; row < keys.width && !failed(&result); row++) {
            if (differs_first(&keys, rank, row)) {
                uint64_t           name   = keys.list[rank * keys.width + row].name;
                struct rank_value *voices = gather_voices(list, name, comm);
                result                    = judge(voices, rank, keys.ranks, environment);
                free(voices);
            }
        }
    }
    free(keys.list);
    return result;
}
