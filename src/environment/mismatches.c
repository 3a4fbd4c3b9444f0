// SPDX-License-Identifier: MIT
// Lists ranks that differ from rank 0: a row per value, with rank ranges ("1,4-7").
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"
#include "settings.h"

// Limits rows of values that are different on every rank.
enum { VALUES_MAX = 8 };

static bool says(const struct rank_value *voice, const char *value)
{
    return strcmp(voice->value, value) == 0;
}

static void list_ranks(struct result_deviation *deviation, const struct rank_value *voices, int ranks)
{
    struct text_buffer text = {.text = NULL};
    for (int rank = 0; rank < ranks; rank++) {
        int last = rank;
        if (!says(&voices[rank], deviation->value)) {
            continue;
        }
        while (last + 1 < ranks && says(&voices[last + 1], deviation->value)) {
            last++;
        }
        deviation->count += last - rank + 1;
        text_append(&text, "%s%d", text.length > 0 ? "," : "", rank);
        if (last > rank) {
            text_append(&text, "-%d", last);
        }
        rank = last;
    }
    if (!text_copy(deviation->ranks, sizeof(deviation->ranks), text.text)) {
        strcpy(deviation->ranks + sizeof(deviation->ranks) - sizeof("..."), "...");
    }
    text_free(&text);
}

static bool is_first_to_say(const struct rank_value *voices, int rank)
{
    for (int before = 0; before < rank; before++) {
        if (says(&voices[before], voices[rank].value)) {
            return false;
        }
    }
    return true;
}

void mismatches_add(struct rank_environment *environment, const char *name, const struct rank_value *voices, int ranks)
{
    int added = 0;
    for (int rank = 1; rank < ranks && added < VALUES_MAX; rank++) {
        if (!is_first_to_say(voices, rank)) {
            continue;
        }
        size_t bytes            = (size_t)(environment->deviation_count + 1) * sizeof(*environment->deviations);
        environment->deviations = memory_resize(environment->deviations, bytes);
        struct result_deviation *deviation = &environment->deviations[environment->deviation_count++];
        *deviation                         = (struct result_deviation){.count = 0};
        settings_print_name(deviation->name, sizeof(deviation->name), name);
        text_copy(deviation->host, sizeof(deviation->host), voices[rank].host);
        text_copy(deviation->value, sizeof(deviation->value), voices[rank].value);
        list_ranks(deviation, voices, ranks);
        added++;
    }
}
