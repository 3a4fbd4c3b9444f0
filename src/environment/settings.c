// SPDX-License-Identifier: MIT
// Checks that settings agree on all ranks, and names the ranks that differ. Ranks exchange hashes of every setting, but
// texts only of settings that differ.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "internal.h"

// Copies a value without control characters, shortened to fit. If this changes the text, a hash is appended, so that
// different values still look different.
static void copy_printable(char *text, size_t bytes, const char *value, uint64_t hash)
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
    struct setting *row = LIST_ADD(list->rows, list->count);
    *row                = (struct setting){.hash = XXH3_64bits(value, strlen(value)), .kind = *kind};
    snprintf(row->name, sizeof(row->name), "%.60s%s", name, kind->is_setting ? " =" : "");
    copy_printable(row->value, sizeof(row->value), value, row->hash);
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

// Returns the lowest rank with the most common value. If two values are equally common, the one of the lowest rank
// counts.
static int find_majority(const struct rank_value *values, int ranks, int *majority_count)
{
    int majority    = 0;
    *majority_count = 0;
    for (int rank = 0; rank < ranks && *majority_count <= ranks / 2; rank++) {
        int count = 0;
        for (int other = 0; other < ranks; other++) {
            count += strcmp(values[other].value, values[rank].value) == 0;
        }
        if (count > *majority_count) {
            majority        = rank;
            *majority_count = count;
        }
    }
    return majority;
}

void mismatch_describe(char *text, size_t bytes, const char *name, const struct rank_value *values, int ranks)
{
    int count, majority = find_majority(values, ranks, &count), first = 0;
    while (first < ranks - 1 && strcmp(values[first].value, values[majority].value) == 0) {
        first++;
    }
    int used = snprintf(text, bytes, "rank %d on %s has %s %s", first, values[first].host, name, values[first].value);
    if (count < ranks - 1 && used >= 0 && (size_t)used < bytes) {
        used += snprintf(text + used, bytes - (size_t)used, " (%d ranks deviate)", ranks - count);
    }
    if (used >= 0 && (size_t)used < bytes) {
        snprintf(text + used, bytes - (size_t)used, ", %d of %d ranks, such as %d on %s, %s", count, ranks, majority,
                 values[majority].host, values[majority].value);
    }
}

// Hashes of a setting's name and value. Name 0: no setting.
struct key {
    uint64_t name, value;
};

struct keys {
    struct key *list;    // [ranks][width]; NULL: all ranks have the same settings
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
    struct key  digest   = {XXH3_64bits(own, (size_t)list->count * sizeof(*own)), (uint64_t)list->count};
    bool        is_equal = true;
    struct key *digests  = comm_gather(comm, &digest, sizeof(digest));
    for (int rank = 0; rank < keys.ranks; rank++) {
        is_equal &= digests[rank].name == digests[0].name;
        keys.width = (int64_t)digests[rank].value > keys.width ? (int64_t)digests[rank].value : keys.width;
    }
    free(digests);
    if (!is_equal) {
        own = memory_resize(own, (size_t)keys.width * sizeof(*own));
        memset(own + list->count, 0, (size_t)(keys.width - list->count) * sizeof(*own));
        keys.list = comm_gather(comm, own, (size_t)keys.width * sizeof(*own));
    }
    free(own);
    return keys;
}

// Finds a rank's setting with this name. Tries index `row` first, because most ranks have the same settings in the same
// order.
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

// Returns whether the setting in this row of `rank` differs between ranks. Returns false if a lower rank has a setting
// with this name, so that each setting is reported once.
static bool differs_first(const struct keys *keys, int rank, int64_t row)
{
    const struct key *own     = &keys->list[rank * keys->width + row];
    bool              differs = false;
    for (int other = 0; other < keys->ranks && own->name != 0; other++) {
        const struct key *key = find_key(keys, other, row, own->name);
        if (other < rank && key != NULL) {
            return false;
        }
        differs |= key == NULL || key->value != own->value;
    }
    return differs;
}

static struct rank_value *gather_values(const struct setting_list *list, uint64_t name, struct comm *comm)
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
    return comm_gather(comm, &own, sizeof(own));
}

// Maximum number of values that are recorded per setting, because a setting may differ on every rank.
enum { VALUES_MAX = 8 };

// Sets deviation->ranks to the ranks that have the value of the deviation, as ranges such as "1,4-7".
static void list_ranks(struct result_deviation *deviation, const struct rank_value *values, int ranks)
{
    struct text_buffer text = {.text = NULL};
    for (int rank = 0; rank < ranks; rank++) {
        int first = rank;
        while (rank < ranks && strcmp(values[rank].value, deviation->value) == 0) {
            rank++;
        }
        if (rank > first) {
            deviation->count += rank - first;
            text_append(&text, "%s%d", text.length > 0 ? "," : "", first);
        }
        if (rank > first + 1) {
            text_append(&text, "-%d", rank - 1);
        }
    }
    if (!text_copy(deviation->ranks, sizeof(deviation->ranks), text.text)) {
        strcpy(deviation->ranks + sizeof(deviation->ranks) - sizeof("..."), "...");
    }
    text_free(&text);
}

// Records the values that differ from rank 0's: one row per value, with its ranks.
static void add_deviations(struct rank_environment *environment, const char *name, const struct rank_value *values,
                           int ranks)
{
    int added = 0;
    for (int rank = 1; rank < ranks && added < VALUES_MAX; rank++) {
        int before = 0;
        while (strcmp(values[before].value, values[rank].value) != 0) {
            before++;
        }
        if (before < rank) {
            continue;
        }
        struct result_deviation *deviation = LIST_ADD(environment->deviations, environment->deviation_count);
        *deviation                         = (struct result_deviation){.count = 0};
        settings_print_name(deviation->name, sizeof(deviation->name), name);
        text_copy(deviation->host, sizeof(deviation->host), values[rank].host);
        text_copy(deviation->value, sizeof(deviation->value), values[rank].value);
        list_ranks(deviation, values, ranks);
        added++;
    }
}

static status judge(struct rank_value *values, int first, int ranks, struct rank_environment *environment)
{
    const struct rank_value *row = &values[first];
    char                     text[SETTING_TEXT_BYTES];
    mismatch_describe(text, sizeof(text), row->name, values, ranks);
    if (row->rule == SETTING_REQUIRED) {
        return fail_as(EXIT_LAUNCH, "%s: %s", text, row->remedy);
    }
    if (row->rule == SETTING_NOTED) {
        environment_note(&environment->notes, "ranks-unlike", "%s", text);
    }
    add_deviations(environment, row->name, values, ranks);
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
                struct rank_value *values = gather_values(list, name, comm);
                result                    = judge(values, rank, keys.ranks, environment);
                free(values);
            }
        }
    }
    free(keys.list);
    return result;
}
