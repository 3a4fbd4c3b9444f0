// SPDX-License-Identifier: MIT
// The file of chosen algorithms: a line for each, with a checksum, since a wrong one makes the library compute
// anything.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/gemm.h"
#include "gswbench/input.h"
#include "gswbench/output.h"
#include "gswbench/text.h"

static const char title[] = "gswbench gemm algorithms 1\n";

// A line: the checksum of what follows, the words, the problem.
enum { DIGITS = 16, LINE_BYTES = (GEMM_ALGORITHM_WORDS + 1) * (DIGITS + 1) + GEMM_PROBLEM_BYTES + 2 };

void gemm_problem_name(const struct gemm_key *key, const char *library, const char *device,
                       char problem[GEMM_PROBLEM_BYTES])
{
    static const char *const scalings[] = {
        [SCALING_WHOLE] = "", [SCALING_RUNS] = " runs", [SCALING_SQUARES] = " squares"};
    const struct gemm_shape *shape = &key->shape;
    snprintf(problem, GEMM_PROBLEM_BYTES,
             "%" PRId64 " x %" PRId64 " x %" PRId64 " %c%c %s %s %s %s%s%s%s, align %d %d %d, processors %d, %s, %s",
             shape->m, shape->n, shape->k, shape->transpose_a ? 't' : 'n', shape->transpose_b ? 't' : 'n',
             format_name(key->a), format_name(key->b), format_name(key->c), key->accumulates ? "add" : "set",
             key->sums_fast ? " fast" : "", scalings[shape->scaling_a], scalings[shape->scaling_b], key->alignment[0],
             key->alignment[1], key->alignment[2], key->processors, library, device);
}

static void print_line(const struct gemm_choice *choice, char line[LINE_BYTES])
{
    char *body = line + DIGITS + 1, *next = body;
    for (int i = 0; i < GEMM_ALGORITHM_WORDS; i++) {
        next += sprintf(next, "%016" PRIx64 " ", choice->algorithm[i]);
    }
    sprintf(next, "%s\n", choice->problem);
    char checksum[DIGITS + 1];
    snprintf(checksum, sizeof(checksum), "%016" PRIx64, (uint64_t)XXH3_64bits(body, strlen(body)));
    memcpy(line, checksum, DIGITS);
    line[DIGITS] = ' ';
}

// True when the line, printed again, is the same.
static bool parse_line(const char *line, struct gemm_choice *choice)
{
    if (strlen(line) < LINE_BYTES - GEMM_PROBLEM_BYTES) {
        return false;
    }
    const char *next = line + DIGITS + 1;
    for (int i = 0; i < GEMM_ALGORITHM_WORDS; i++) {
        choice->algorithm[i] = strtoull(next, NULL, 16);
        next += DIGITS + 1;
    }
    text_copy(choice->problem, sizeof(choice->problem), next);
    choice->problem[strcspn(choice->problem, "\n")] = '\0';
    char again[LINE_BYTES];
    print_line(choice, again);
    return strcmp(line, again) == 0;
}

static void keep(struct gemm_cache *cache, const struct gemm_choice *choice)
{
    cache->choices                 = memory_resize(cache->choices, (size_t)(cache->count + 1) * sizeof(*choice));
    cache->choices[cache->count++] = *choice;
}

static status cannot(const char *what, const char *path)
{
    return fail_as(EXIT_OUTPUT, "cannot %s %s: %s (run.cache names another directory)", what, path, strerror(errno));
}

static status read_file(struct gemm_cache *cache, FILE *file)
{
    char line[LINE_BYTES];
    for (int number = 1; fgets(line, sizeof(line), file) != NULL; number++) {
        struct gemm_choice choice;
        bool               is_sound = number == 1 ? strcmp(line, title) == 0 : parse_line(line, &choice);
        if (!is_sound) {
            return fail_as(EXIT_OUTPUT, "%s:%d: not a line that gswbench wrote: delete the file, it is made again",
                           cache->path, number);
        }
        if (number > 1) {
            keep(cache, &choice);
        }
    }
    return ferror(file) ? cannot("read", cache->path) : OK;
}

// NULL: the user has no place for such files.
static char *find_path(const char *directory)
{
    struct text_buffer path = {0};
    const char        *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (directory != NULL && directory[0] != '\0') {
        text_append(&path, "%s", directory);
    } else if (base != NULL && base[0] == '/') {
        text_append(&path, "%s/gswbench", base);
    } else if (home != NULL && home[0] == '/') {
        text_append(&path, "%s/.cache/gswbench", home);
    } else {
        return NULL;
    }
    text_append(&path, "/gemm.txt");
    return path.text;
}

// Whoever could have written the file could choose what computes here.
static void refuse(struct gemm_cache *cache, const status *reason)
{
    snprintf(cache->refusal, sizeof(cache->refusal), "%.110s not read: it %.30s", cache->path, reason->text);
    free(cache->path);
    cache->path = NULL;
}

status gemm_cache_open(struct gemm_cache *cache, const char *directory)
{
    *cache = (struct gemm_cache){.path = find_path(directory)};
    if (cache->path == NULL) {
        return OK;
    }
    struct stat about;
    if (stat(cache->path, &about) != 0 && errno == ENOENT) {
        return OK;
    }
    int    descriptor;
    status opened = input_open(cache->path, &descriptor, &about);
    if (failed(&opened)) {
        return fail_as(EXIT_OUTPUT, "%.700s %.200s (run.cache names another directory)", cache->path, opened.text);
    }
    status own = input_check_owner(&about);
    if (failed(&own)) {
        refuse(cache, &own);
        close(descriptor);
        return OK;
    }
    FILE  *file   = fdopen(descriptor, "r");
    status result = file != NULL ? read_file(cache, file) : cannot("open", cache->path);
    if (file != NULL) {
        fclose(file);
    }
    return result;
}

void gemm_cache_close(struct gemm_cache *cache)
{
    free(cache->path);
    free(cache->choices);
    *cache = (struct gemm_cache){.path = NULL};
}

const struct gemm_choice *gemm_cache_find(const struct gemm_cache *cache, const char *problem)
{
    for (int i = 0; i < cache->count; i++) {
        if (strcmp(cache->choices[i].problem, problem) == 0) {
            return &cache->choices[i];
        }
    }
    return NULL;
}

static status write_file(const struct gemm_cache *cache)
{
    struct text_buffer text = {.text = NULL};
    text_append(&text, "%s", title);
    for (int i = 0; i < cache->count; i++) {
        char line[LINE_BYTES];
        print_line(&cache->choices[i], line);
        text_append(&text, "%s", line);
    }
    status result = output_replace(cache->path, text.text, text.length);
    text_free(&text);
    return result;
}

// "PROBLEM: candidate 3 of 16; milliseconds: 1.234 1.301 - ...".
static status append_times(const struct gemm_cache *cache, const char *problem, const struct gemm_times *times)
{
    struct text_buffer path = {.text = NULL}, line = {.text = NULL};
    text_append(&path, "%.*s_times.txt", (int)(strlen(cache->path) - strlen(".txt")), cache->path);
    text_append(&line, "%s: candidate %d of %d; milliseconds:", problem, times->chosen + 1, times->count);
    for (int i = 0; i < times->count; i++) {
        if (isnan(times->seconds[i])) {
            text_append(&line, " -");
        } else {
            text_append(&line, " %.4f", 1e3 * times->seconds[i]);
        }
    }
    text_append(&line, "\n");
    status result = output_extend(path.text, line.text, line.length);
    text_free(&path);
    text_free(&line);
    return result;
}

static status write_files(const struct gemm_cache *cache, const char *problem, const struct gemm_times *times)
{
    char *directory = memory_allocate(strlen(cache->path) + 1);
    strcpy(directory, cache->path);
    *strrchr(directory, '/') = '\0';
    status created           = output_create_folders(directory);
    free(directory);
    TRY(created);
    TRY(write_file(cache));
    return append_times(cache, problem, times);
}

status gemm_cache_add(struct gemm_cache *cache, const struct gemm_choice *choice, const struct gemm_times *times)
{
    keep(cache, choice);
    if (cache->path == NULL) {
        return OK;
    }
    status result = write_files(cache, choice->problem, times);
    return failed(&result) ? fail_as(result.exit_code, "%.940s (run.cache names another directory)", result.text) : OK;
}
