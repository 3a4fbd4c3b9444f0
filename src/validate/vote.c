// SPDX-License-Identifier: MIT
// Compares op outputs across ranks, by equal bits or, for nondeterministic ops, by a small difference, and finds the
// ranks that disagree with the majority.
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void outcomes_free(struct outcomes *outcomes)
{
    free(outcomes->list);
    free(outcomes->sketches);
    *outcomes = (struct outcomes){.list = NULL};
}

// Gathers every rank's list, padded to the longest. Returns [*count].
static void *gather(struct comm *comm, const void *own, int64_t own_count, int64_t size, int64_t *count)
{
    int64_t maximum = (int64_t)comm_largest(comm, (double)own_count);
    char   *padded  = memory_allocate((size_t)(maximum * size)),
         *all       = memory_allocate((size_t)(comm->topology.ranks * maximum * size));
    if (own_count > 0) {
        memcpy(padded, own, (size_t)(own_count * size));
    }
    comm->ops->gather_all(comm, padded, all, maximum * size);
    free(padded);
    *count = comm->topology.ranks * maximum;
    return all;
}

static int compare(const void *one, const void *other)
{
    const struct outcome *a = one, *b = other;
    if (a->task != b->task) {
        return a->task < b->task ? -1 : 1;
    }
    return a->rank - b->rank;
}

struct outcomes outcomes_gather(struct comm *comm, const struct outcomes *own)
{
    struct outcomes all;
    all.list     = gather(comm, own->list, own->count, sizeof(*own->list), &all.count);
    all.sketches = gather(comm, own->sketches, own->sketch_count, sizeof(*own->sketches), &all.sketch_count);
    for (int64_t i = 0; i < all.count; i++) {
        struct outcome *one   = &all.list[i];
        int64_t         begin = all.sketch_count / comm->topology.ranks * one->rank;
        one->sketches         = one->task != 0 && one->number >= 0 ? &all.sketches[begin + one->number] : NULL;
    }
    qsort(all.list, (size_t)all.count, sizeof(*all.list), compare);
    return all;
}

double outcome_distance(const struct outcome *one, const struct outcome *other)
{
    double distance = 0;
    for (int i = 0; i < OUTCOME_SKETCHES && one->sketches != NULL && other->sketches != NULL; i++) {
        const struct digest *a = &one->sketches->of[i], *b = &other->sketches->of[i];
        double               norm  = fmax(digest_norm(a), digest_norm(b));
        double               share = a->hash == b->hash ? 0 : digest_distance(a, b) / norm;
        distance                   = share <= distance || isnan(distance) ? distance : share;
    }
    return distance;
}

static bool agree(const struct outcome *one, const struct outcome *other)
{
    return one->bits == other->bits ||
           (one->sketches != NULL && other->sketches != NULL && outcome_distance(one, other) <= one->bound);
}

bool vote_take(struct vote *vote, const struct outcome *outcomes, int64_t count)
{
    int64_t fewest = INT64_MAX, equal = 0;
    *vote = (struct vote){.rarest = outcomes, .common = outcomes, .count = count};
    for (int64_t i = 0; i < count; i++) {
        vote->difference = fmax(vote->difference, outcome_distance(outcomes, &outcomes[i]));
        equal += agree(outcomes, &outcomes[i]);
    }
    if (equal == count) {
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t friends = 0;
        for (int64_t j = 0; j < count; j++) {
            friends += agree(&outcomes[i], &outcomes[j]);
        }
        if (friends > vote->maximum) {
            vote->maximum = friends;
            vote->common  = &outcomes[i];
        }
        if (friends < fewest) {
            fewest       = friends;
            vote->rarest = &outcomes[i];
        }
    }
    return true;
}

bool vote_is_wrong(const struct vote *vote, const struct outcome *outcome)
{
    return 2 * vote->maximum > vote->count ? !agree(vote->common, outcome) : outcome == vote->rarest;
}
