// SPDX-License-Identifier: MIT
// Autotunes each GEMM and attention op once per job: the first rank that has a problem (an op with its shapes) times
// the algorithms, and the other ranks use its choice. The name of a problem contains the device model, so each model is
// tuned separately.
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/step.h"
#include "internal.h"

struct problem {
    uint64_t hash;    // hash of the name; 0: no problem
    char     name[GEMM_PROBLEM_BYTES];
};

struct choices {
    struct rank_environment *environment;
    struct backend          *backend;
    struct comm             *comm;
    struct problem          *own;    // [count]: this rank's problems, without duplicates
    int64_t                  count;
    uint64_t                *all;    // [ranks][width]: hashes of every rank's problems
    int64_t                  width;
};

static struct gemm_cache *cache_of(const struct choices *choices)
{
    return choices->backend->ops->choices->cache(choices->backend);
}

static const struct problem *find_problem(const struct choices *choices, uint64_t hash)
{
    for (int64_t i = 0; i < choices->count; i++) {
        if (choices->own[i].hash == hash) {
            return &choices->own[i];
        }
    }
    return NULL;
}

static status collect_problem(void *context, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    struct choices *choices = context;
    struct problem  problem;
    choices->backend->ops->choices->name(choices->backend, op, buffers, problem.name);
    problem.hash = XXH3_64bits(problem.name, strlen(problem.name));
    if (problem.name[0] != '\0' && find_problem(choices, problem.hash) == NULL) {
        LIST_APPEND(choices->own, choices->count, problem);
    }
    return OK;
}

static void gather_problems(struct choices *choices)
{
    struct comm *comm   = choices->comm;
    int          ranks  = comm->topology.ranks;
    int64_t     *counts = comm_gather(comm, &choices->count, sizeof(*counts));
    for (int rank = 0; rank < ranks; rank++) {
        choices->width = counts[rank] > choices->width ? counts[rank] : choices->width;
    }
    free(counts);
    uint64_t *own = memory_allocate((size_t)(choices->width + 1) * sizeof(*own));
    for (int64_t i = 0; i < choices->count; i++) {
        own[i] = choices->own[i].hash;
    }
    choices->all = comm_gather(comm, own, (size_t)choices->width * sizeof(*own));
    free(own);
}

// Returns the first rank that has the problem; it times the algorithms for all ranks.
static int find_owner(const struct choices *choices, uint64_t hash)
{
    int64_t index = 0;
    while (choices->all[index] != hash) {
        index++;
    }
    return (int)(index / choices->width);
}

static status prepare_owned(void *context, const struct op *op, const struct buffer buffers[OP_OPERANDS])
{
    const struct choices  *choices = context;
    const struct prepared *prepared;
    char                   name[GEMM_PROBLEM_BYTES];
    choices->backend->ops->choices->name(choices->backend, op, buffers, name);
    bool is_owned =
        name[0] != '\0' && find_owner(choices, XXH3_64bits(name, strlen(name))) == choices->comm->topology.rank;
    return is_owned ? backend_prepare(choices->backend, op, buffers, &prepared) : OK;
}

// A rank's choice of an algorithm for a problem. All zero if it made no choice or does not have the problem.
struct answer {
    bool               is_chosen;
    struct gemm_choice choice;
};

static struct answer *gather_answers(const struct choices *choices, uint64_t hash)
{
    struct answer             own;
    const struct problem     *problem = find_problem(choices, hash);
    const struct gemm_choice *chosen  = problem == NULL ? NULL : gemm_cache_find(cache_of(choices), problem->name);
    memset(&own, 0, sizeof(own));
    if (chosen != NULL) {
        own.is_chosen = true;
        own.choice    = *chosen;
    }
    return comm_gather(choices->comm, &own, sizeof(own));
}

// visit_all calls this for each problem of the job. owner: the rank that timed it.
typedef void visit_problem(struct choices *choices, uint64_t hash, int owner);

static void visit_all(struct choices *choices, visit_problem *visit)
{
    for (int rank = 0; rank < choices->comm->topology.ranks; rank++) {
        for (int64_t i = 0; i < choices->width; i++) {
            uint64_t hash = choices->all[rank * choices->width + i];
            if (hash != 0 && find_owner(choices, hash) == rank) {
                visit(choices, hash, rank);
            }
        }
    }
}

// Uses the choice of the owner (the rank that timed the problem) on this rank. A rank without the problem takes the
// choice, too, for the cache file.
static void take_choice(struct choices *choices, uint64_t hash, int owner)
{
    struct answer *answers = gather_answers(choices, hash);
    if (owner != choices->comm->topology.rank && answers[owner].is_chosen) {
        gemm_cache_take(cache_of(choices), &answers[owner].choice);
    }
    free(answers);
}

// Counts the origins of the ranks' algorithms. Adds a note with the first rank whose algorithm differs from the
// owner's, which means that its library rejects the owner's algorithm.
static void compare_choices(struct choices *choices, uint64_t hash, int owner)
{
    struct rank_environment *environment = choices->environment;
    struct answer           *answers     = gather_answers(choices, hash);
    int                      differing   = -1;
    for (int rank = 0; rank < choices->comm->topology.ranks; rank++) {
        const struct answer *answer = &answers[rank];
        if (answer->is_chosen) {
            environment->choice_counts[answer->choice.origin]++;
            bool differs = memcmp(answer->choice.algorithm, answers[owner].choice.algorithm,
                                  sizeof(answer->choice.algorithm)) != 0;
            differing    = differing < 0 && differs ? rank : differing;
        }
    }
    if (differing >= 0) {
        environment_note(&environment->notes, "algorithms-differ",
                         "rank %d on %.40s refuses rank %d's algorithm for %.100s", differing,
                         environment->peers[differing].topology.host, owner, answers[owner].choice.problem);
    }
    free(answers);
}

static status prepare(struct choices *choices, const struct plan *plan)
{
    TRY(step_visit_ops(plan, collect_problem, choices));
    gather_problems(choices);
    TRY(comm_agree(choices->comm, step_visit_ops(plan, prepare_owned, choices)));
    visit_all(choices, take_choice);
    return comm_agree(choices->comm, step_prepare(plan, choices->backend));
}

// Checks that all ranks use the same algorithms, and saves the algorithms in the cache file. Hosts may share this file,
// so rank 0 writes it first, and then the other ranks add missing entries.
static void conclude(struct choices *choices)
{
    static const struct setting_kind noted  = {.rule = SETTING_NOTED};
    struct comm                     *comm   = choices->comm;
    const int64_t                   *counts = choices->environment->choice_counts;
    char                             text[96];
    visit_all(choices, compare_choices);
    if (comm->topology.rank > 0) {
        comm->ops->barrier(comm);
    }
    gemm_cache_keep(cache_of(choices));
    if (comm->topology.rank == 0) {
        comm->ops->barrier(comm);
    }
    snprintf(text, sizeof(text), "%lld timed, %lld from the cache, %lld from other ranks",
             (long long)counts[GEMM_TIMED], (long long)counts[GEMM_REMEMBERED], (long long)counts[GEMM_TAKEN]);
    settings_add(choices->environment->settings, &noted, "algorithms of all ranks", text);
}

status choices_prepare(const struct plan *plan, struct rank_environment *environment, int64_t conditions)
{
    struct choices choices = {.environment = environment, .backend = &environment->backend, .comm = environment->comm};
    if (environment->backend.ops->choices == NULL) {
        return comm_agree(environment->comm, step_prepare(plan, &environment->backend));
    }
    status result = prepare(&choices, plan);
    if (!failed(&result)) {
        conclude(&choices);
        result = environment_check_notes(&environment->notes, conditions);
    }
    free(choices.own);
    free(choices.all);
    return result;
}
