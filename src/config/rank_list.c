// SPDX-License-Identifier: MIT
// Rank lists in options: "0,8", or "all".
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

// Parses a rank and comma; returns the remaining text, or NULL if malformed.
static const char *take_rank(const char *text, int64_t *rank)
{
    char *end;
    *rank = strtoll(text, &end, 10);
    if (end == text || (*end != ',' && *end != '\0')) {
        return NULL;
    }
    return *end == ',' ? end + 1 : end;
}

static bool is_all(const char *list)
{
    return strcmp(list, "all") == 0;
}

status rank_list_check(const char *option, const char *list, int64_t world)
{
    const char *next = is_all(list) ? "" : list;
    while (*next != '\0') {
        int64_t rank;
        next = take_rank(next, &rank);
        if (next == NULL || rank < 0 || rank >= world) {
            return fail("%s = %s: expected all, or ranks from 0 to %" PRId64 " separated by commas", option, list,
                        world - 1);
        }
    }
    return OK;
}

bool rank_list_has(const char *list, int64_t rank)
{
    const char *next = is_all(list) ? "" : list;
    bool        has  = is_all(list);
    while (*next != '\0' && !has) {
        int64_t named;
        next = take_rank(next, &named);
        has  = named == rank;
    }
    return has;
}
