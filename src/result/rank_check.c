// SPDX-License-Identifier: MIT
// Reports ranks that compute longer than the other ranks of their class. docs/method.md explains the limits.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gswbench/text.h"
#include "internal.h"

// Limits of the excess over the class median. In addition, the lower confidence bound must be above least.
static const double noted = 0.03, degraded = 0.05, least = 0.01;

enum { NAMED_MAX = 8 };    // ranks named in reasons

static bool is_slow(const struct result_rank *rank)
{
    return rank->excess >= noted && rank->excess_low > least;
}

static int64_t count_class(const struct result *result, int64_t class)
{
    int64_t count = 0;
    for (int64_t i = 0; i < result->rank_count; i++) {
        count += result->ranks[i].class == class;
    }
    return count;
}

const char *result_rank_gpu(const struct result *result, int64_t rank)
{
    for (int64_t i = 0; i < result->observation_count; i++) {
        if (result->observations[i].rank == rank) {
            return result->observations[i].uuid;
        }
    }
    return "";
}

const char *result_name_rank(const struct result *result, int64_t rank, char *text, size_t bytes)
{
    const char *gpu  = result_rank_gpu(result, rank);
    const char *host = rank >= 0 && rank < result->rank_count ? result->ranks[rank].host : "?";
    snprintf(text, bytes, "rank %" PRId64 " (%.32s%s%.48s)", rank, host, gpu[0] != '\0' ? ", " : "", gpu);
    return text;
}

static void add_reason(struct result *result, const struct result_rank *rank, int64_t others)
{
    bool                 is_far = rank->excess >= degraded;
    struct result_reason reason = {
        .verdict = is_far ? VERDICT_DEGRADED : VERDICT_VALID, .id = "slow-rank", .rank = rank->rank, .step = -1};
    char name[128], more[48] = "";
    if (others > 0) {
        snprintf(more, sizeof(more), "; %" PRId64 " more are slow", others);
    }
    snprintf(reason.message, sizeof(reason.message),
             "%s computes %.1f %% longer than the median of the %" PRId64
             " ranks with the same work, at least %.1f %%%s",
             result_name_rank(result, rank->rank, name, sizeof(name)), 100 * rank->excess,
             count_class(result, rank->class), 100 * rank->excess_low, more);
    result_add_reason(result, &reason);
}

// Iterates over slow ranks from the slowest on; equal ranks come in order of their number. NULL: no further rank.
static const struct result_rank *find_next(const struct result *result, const struct result_rank *before)
{
    const struct result_rank *next = NULL;
    for (int64_t i = 0; i < result->rank_count; i++) {
        const struct result_rank *rank = &result->ranks[i];
        bool                      is_behind =
            before == NULL || rank->excess < before->excess || (rank->excess == before->excess && rank > before);
        if (is_slow(rank) && is_behind && (next == NULL || rank->excess > next->excess)) {
            next = rank;
        }
    }
    return next;
}

void ranks_check(struct result *result)
{
    const char *slowed_by = result_slowed_by(result);
    int64_t     slow      = 0;
    if (slowed_by != NULL && strcmp(slowed_by, RESULT_FAULT) != 0) {
        return;
    }
    for (int64_t i = 0; i < result->rank_count; i++) {
        slow += is_slow(&result->ranks[i]);
    }
    const struct result_rank *rank = NULL;
    for (int64_t named = 1; named <= slow && named <= NAMED_MAX; named++) {
        rank = find_next(result, rank);
        add_reason(result, rank, named == NAMED_MAX ? slow - named : 0);
    }
}
