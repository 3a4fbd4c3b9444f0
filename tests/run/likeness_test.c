// SPDX-License-Identifier: MIT
// What ranks have unlike is named: which rank, where, what, and what most have.
#include "run/likeness.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char *describe(const char *const *values, int ranks)
{
    static char           text[LIKENESS_TEXT_BYTES];
    struct likeness_voice voices[8];
    for (int rank = 0; rank < ranks; rank++) {
        snprintf(voices[rank].host, sizeof(voices[rank].host), "h%d", rank / 2);
        snprintf(voices[rank].value, sizeof(voices[rank].value), "%s", values[rank]);
    }
    likeness_describe(text, sizeof(text), "CUDA", voices, ranks);
    return text;
}

Test(likeness, names_the_rank_that_deviates_from_most)
{
    cr_expect_str_eq(describe((const char *const[]){"13.0", "13.0", "12.8", "13.0"}, 4),
                     "rank 2 on h1 has CUDA 12.8, 3 of 4 ranks, such as 0 on h0, 13.0");
    cr_expect_str_eq(describe((const char *const[]){"12.8", "13.0", "13.0"}, 3),
                     "rank 0 on h0 has CUDA 12.8, 2 of 3 ranks, such as 1 on h0, 13.0");
    cr_expect_str_eq(describe((const char *const[]){"12.8", "13.0"}, 2),
                     "rank 1 on h0 has CUDA 13.0, 1 of 2 ranks, such as 0 on h0, 12.8");
    cr_expect_str_eq(describe((const char *const[]){"1", "2", "3", "3", "3", "1"}, 6),
                     "rank 0 on h0 has CUDA 1 (3 ranks deviate), 3 of 6 ranks, such as 2 on h1, 3");
}

// Two ranks: the other one's list of rows, all of whose values are told at once.
static const struct likeness_list *others;
static int                         asked;

static void gather_two(struct comm *comm, const void *in, void *out, int64_t bytes)
{
    memcpy(out, in, (size_t)bytes);
    char *other = (char *)out + bytes;
    memcpy(other, in, (size_t)bytes);
    if (comm->state == NULL) {    // the hashes
        for (int row = 0; row < others->count; row++) {
            memcpy(other + (size_t)row * sizeof(uint64_t), &others->rows[row].hash, sizeof(uint64_t));
        }
        comm->state = &asked;
    } else {
        struct likeness_voice voice = {.host = "h1"};
        snprintf(voice.value, sizeof(voice.value), "other %d", asked++);
        memcpy(other, &voice, sizeof(voice));
    }
}

struct row {
    const char *name, *own, *other, *remedy;
};

static status compare(const struct row *rows, int count, struct text_buffer *notes)
{
    static const struct comm_ops ops  = {.name = "mpi", .gather_all = gather_two};
    struct comm                  comm = {.ops = &ops, .place = {.ranks = 2, .host = "h0"}};
    struct likeness_list         own = {.rows = NULL}, other = {.rows = NULL};
    for (int i = 0; i < count; i++) {
        likeness_add(&own, rows[i].name, rows[i].own, rows[i].remedy);
        likeness_add(&other, rows[i].name, rows[i].other, rows[i].remedy);
    }
    others        = &other;
    asked         = 0;
    status result = likeness_compare(&own, &comm, notes);
    likeness_free(&own);
    likeness_free(&other);
    return result;
}

Test(likeness, refuses_what_has_to_be_alike_and_notes_the_rest)
{
    static const struct row rows[] = {{"same", "1", "1", "never"},
                                      {"driver", "550", "560", NULL},
                                      {"OpenBLAS", "", "0.3", NULL},
                                      {"run.seed =", "1", "2", "give both the same"},
                                      {"run.steps =", "1", "2", "give both the same"}};
    struct text_buffer      notes  = {.text = NULL};

    status result = compare(rows, 5, &notes);

    cr_expect_eq(result.exit_code, EXIT_LAUNCH);
    cr_expect_str_eq(result.text,
                     "rank 1 on h1 has run.seed = other 2, 1 of 2 ranks, such as 0 on h0, 1: give both the same");
    cr_expect_str_eq(notes.text, "rank 1 on h1 has driver other 0, 1 of 2 ranks, such as 0 on h0, 550\n"
                                 "rank 1 on h1 has OpenBLAS other 1, 1 of 2 ranks, such as 0 on h0, none\n");
    text_free(&notes);
}

Test(likeness, sees_what_is_too_long_to_be_shown)
{
    char first[400], second[400];
    memset(first, 'x', sizeof(first) - 1);
    memset(second, 'x', sizeof(second) - 1);
    first[399] = second[399] = '\0';
    second[398]              = 'y';
    struct text_buffer notes = {.text = NULL};

    status result = compare(&(struct row){"path", first, second, "give both the same"}, 1, &notes);

    cr_expect_eq(result.exit_code, EXIT_LAUNCH);
    result = compare(&(struct row){"path", first, first, "give both the same"}, 1, &notes);
    cr_expect_eq(result.exit_code, EXIT_VALID);
    cr_expect_null(notes.text);
}
