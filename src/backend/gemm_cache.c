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

status gemm_cache_open(struct gemm_cache *cache, const char *directory)
{
    *cache = (struct gemm_cache){.path = find_path(directory)};
    if (cache->path == NULL) {
        return OK;
    }
    FILE *file = fopen(cache->path, "re");
    if (file == NULL) {
        return errno == ENOENT ? OK : cannot("open", cache->path);
    }
    status result = read_file(cache, file);
    fclose(file);
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

// Creates the directories above the file.
static status create_directories(const char *path)
{
    char *part = memory_allocate(strlen(path) + 1);
    strcpy(part, path);
    status result = OK;
    for (char *slash = strchr(part + 1, '/'); slash != NULL && !failed(&result); slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST) {
            result = cannot("create", part);
        }
        *slash = '/';
    }
    free(part);
    return result;
}

static bool write_choices(const struct gemm_cache *cache, FILE *file)
{
    bool is_written = fputs(title, file) >= 0;
    for (int i = 0; i < cache->count; i++) {
        char line[LINE_BYTES];
        print_line(&cache->choices[i], line);
        is_written = is_written && fputs(line, file) >= 0;
    }
    return fclose(file) == 0 && is_written;
}

static status write_file(const struct gemm_cache *cache)
{
    TRY(create_directories(cache->path));
    size_t bytes     = strlen(cache->path) + 8;
    char  *temporary = memory_allocate(bytes);
    snprintf(temporary, bytes, "%s.XXXXXX", cache->path);
    int    descriptor = mkstemp(temporary);
    FILE  *file       = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    bool   is_written = file != NULL && write_choices(cache, file) && rename(temporary, cache->path) == 0;
    status result     = is_written ? OK : cannot("write", cache->path);
    if (!is_written && descriptor >= 0) {
        unlink(temporary);
    }
    free(temporary);
    return result;
}

// "PROBLEM: candidate 3 of 16; milliseconds: 1.234 1.301 - ...".
static status append_times(const struct gemm_cache *cache, const char *problem, const struct gemm_times *times)
{
    size_t bytes = strlen(cache->path) + 16;
    char  *path  = memory_allocate(bytes);
    snprintf(path, bytes, "%.*s_times.txt", (int)(strlen(cache->path) - strlen(".txt")), cache->path);
    FILE *file      = fopen(path, "a");
    bool is_written = file != NULL && fprintf(file, "%s: candidate %d of %d; milliseconds:", problem, times->chosen + 1,
                                              times->count) > 0;
    for (int i = 0; i < times->count && is_written; i++) {
        is_written =
            (isnan(times->seconds[i]) ? fputs(" -", file) : fprintf(file, " %.4f", 1e3 * times->seconds[i])) > 0;
    }
    is_written    = file != NULL && fputs("\n", file) > 0 && is_written;
    is_written    = file != NULL && fclose(file) == 0 && is_written;
    status result = is_written ? OK : cannot("write", path);
    free(path);
    return result;
}

status gemm_cache_add(struct gemm_cache *cache, const struct gemm_choice *choice, const struct gemm_times *times)
{
    keep(cache, choice);
    if (cache->path == NULL) {
        return OK;
    }
    TRY(write_file(cache));
    return append_times(cache, choice->problem, times);
}
