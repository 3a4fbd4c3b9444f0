// SPDX-License-Identifier: MIT
// Manages the cache file of GEMM algorithms (and attention engines), with one line per problem. Each line has a
// checksum, because cuBLASLt computes wrong results with a corrupted algorithm.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/gemm.h"
#include "gswbench/input.h"
#include "gswbench/output.h"
#include "gswbench/text.h"

static const char title[] = "gswbench gemm algorithms 1\n";

// A line has a checksum of its other fields, the words of the algorithm, and the name of the problem.
enum { DIGITS = 16, LINE_BYTES = (GEMM_ALGORITHM_WORDS + 1) * (DIGITS + 1) + GEMM_PROBLEM_BYTES + 2 };

void gemm_problem_name(const struct gemm_key *key, const char *library, const char *device,
                       char problem[GEMM_PROBLEM_BYTES])
{
    static const char *const scalings[] = {
        [SCALING_WHOLE] = "",     [SCALING_1X128] = " 1x128", [SCALING_128X128] = " 128x128", [SCALING_MX] = " mx",
        [SCALING_ROWS] = " rows", [SCALING_NV] = " nv",       [SCALING_NV_SQUARE] = " nv"};
    const struct gemm_shape *shape    = &key->shape;
    char                     bias[24] = "";
    if (key->bias_alignment > 0) {
        snprintf(bias, sizeof(bias), " bias %d", key->bias_alignment);
    }
    snprintf(problem, GEMM_PROBLEM_BYTES,
             "%" PRId64 " x %" PRId64 " x %" PRId64 " %c%c %s %s %s %s%s%s%s%s, align %d %d %d, processors %d, %s, %s",
             shape->m, shape->n, shape->k, shape->transpose_a ? 't' : 'n', shape->transpose_b ? 't' : 'n',
             format_name(key->a), format_name(key->b), format_name(key->c), key->accumulates ? "add" : "set", bias,
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

// Parses a line. The line is valid if printing the result gives the same text, with the checksum.
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

// Writes a message to cache->note, unless it already has one.
static void note(struct gemm_cache *cache, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct gemm_cache *cache, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (cache->note[0] == '\0') {
        vsnprintf(cache->note, sizeof(cache->note), format, arguments);
    }
    va_end(arguments);
}

static void keep_nothing(struct gemm_cache *cache)
{
    free(cache->path);
    cache->path = NULL;
}

// Reads all valid lines. A file that another version or program wrote is never overwritten. Overlong lines are skipped.
static void read_file(struct gemm_cache *cache, FILE *file)
{
    char line[LINE_BYTES];
    if (fgets(line, sizeof(line), file) != NULL && strcmp(line, title) != 0) {
        note(cache, "%.110s:1: not written by this gswbench: delete the file, which is recreated", cache->path);
        keep_nothing(cache);
        return;
    }
    for (int number = 2; fgets(line, sizeof(line), file) != NULL; number++) {
        struct gemm_choice choice = {.origin = GEMM_REMEMBERED};
        if (parse_line(line, &choice)) {
            LIST_APPEND(cache->choices, cache->count, choice);
        } else {
            note(cache, "%.110s:%d: left out: not a line that gswbench wrote", cache->path, number);
        }
    }
    if (ferror(file)) {
        note(cache, "%.110s not read to its end: %s", cache->path, strerror(errno));
    }
}

// Returns the path of the cache file, or NULL if the user has no cache folder.
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

// Reads the cache file. Refuses a file that another user could have written, because its content selects the code that
// runs here.
static void load(struct gemm_cache *cache)
{
    struct stat about;
    FILE       *file = NULL;
    if (cache->path == NULL || (lstat(cache->path, &about) != 0 && errno == ENOENT)) {
        return;
    }
    status opened = input_open_stream(cache->path, &file, &about);
    opened        = failed(&opened) ? opened : input_check_owner(&about);
    if (failed(&opened)) {
        note(cache, "%.110s not read: it %.60s", cache->path, opened.text);
        keep_nothing(cache);
    } else {
        read_file(cache, file);
    }
    if (file != NULL) {
        fclose(file);
    }
}

void gemm_cache_open(struct gemm_cache *cache, const char *directory, bool writes)
{
    *cache = (struct gemm_cache){.path = find_path(directory), .writes = writes};
    load(cache);
}

void gemm_cache_close(struct gemm_cache *cache)
{
    gemm_cache_keep(cache);
    free(cache->times);
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

// Appends a line to cache->times: "PROBLEM: candidate 3 of 16; milliseconds: 1.2340 1.3010 - ...".
static void note_times(struct gemm_cache *cache, const char *problem, const struct gemm_times *times)
{
    struct text_buffer lines = {.text = NULL};
    text_append(&lines, "%s%s: candidate %d of %d; milliseconds:", cache->times == NULL ? "" : cache->times, problem,
                times->chosen + 1, times->count);
    for (int i = 0; i < times->count; i++) {
        if (isnan(times->seconds[i])) {
            text_append(&lines, " -");
        } else {
            text_append(&lines, " %.4f", 1e3 * times->seconds[i]);
        }
    }
    text_append(&lines, "\n");
    free(cache->times);
    cache->times = lines.text;
}

static status append_times(const struct gemm_cache *cache)
{
    struct text_buffer path = {.text = NULL};
    if (cache->times == NULL) {
        return OK;
    }
    text_append(&path, "%.*s_times.txt", (int)(strlen(cache->path) - strlen(".txt")), cache->path);
    status result = output_extend(path.text, cache->times, strlen(cache->times));
    text_free(&path);
    return result;
}

static status create_folder(const struct gemm_cache *cache)
{
    char *directory = memory_allocate(strlen(cache->path) + 1);
    strcpy(directory, cache->path);
    *strrchr(directory, '/') = '\0';
    status created           = output_create_folders(directory);
    free(directory);
    return created;
}

// Inserts a choice, or replaces the choice for the same problem. Returns true if the algorithm changed.
static bool put(struct gemm_cache *cache, const struct gemm_choice *choice)
{
    for (int i = 0; i < cache->count; i++) {
        struct gemm_choice *known = &cache->choices[i];
        if (strcmp(known->problem, choice->problem) == 0) {
            bool is_other = memcmp(known->algorithm, choice->algorithm, sizeof(known->algorithm)) != 0;
            *known        = *choice;
            return is_other;
        }
    }
    LIST_APPEND(cache->choices, cache->count, *choice);
    return true;
}

void gemm_cache_add(struct gemm_cache *cache, const struct gemm_choice *choice, const struct gemm_times *times)
{
    struct gemm_choice timed = *choice;
    timed.origin             = GEMM_TIMED;
    cache->is_changed |= put(cache, &timed);
    if (cache->path != NULL && cache->writes) {
        note_times(cache, choice->problem, times);
    }
}

void gemm_cache_take(struct gemm_cache *cache, const struct gemm_choice *choice)
{
    const struct gemm_choice *known = gemm_cache_find(cache, choice->problem);
    struct gemm_choice        taken = *choice;
    taken.origin                    = GEMM_TAKEN;
    if (known == NULL || memcmp(known->algorithm, choice->algorithm, sizeof(known->algorithm)) != 0) {
        cache->is_changed |= put(cache, &taken);
    }
}

// Reads the file again, because other processes may have changed it, adds the new choices, and replaces the file if it
// changes.
static status merge(const struct gemm_cache *cache, struct gemm_cache *disk)
{
    bool is_changed = false;
    disk->path      = memory_allocate(strlen(cache->path) + 1);
    strcpy(disk->path, cache->path);
    load(disk);
    if (disk->path == NULL) {
        return fail("%.200s", disk->note);
    }
    for (int i = 0; i < cache->count; i++) {
        is_changed |= cache->choices[i].origin != GEMM_REMEMBERED && put(disk, &cache->choices[i]);
    }
    if (is_changed) {
        TRY(create_folder(cache));
        TRY(write_file(disk));
    }
    return append_times(cache);
}

void gemm_cache_keep(struct gemm_cache *cache)
{
    struct gemm_cache disk = {.path = NULL};
    if (cache->path == NULL || !cache->writes || !cache->is_changed) {
        return;
    }
    status result     = merge(cache, &disk);
    cache->is_changed = false;
    free(cache->times);
    cache->times = NULL;
    free(disk.path);
    free(disk.choices);
    if (failed(&result)) {
        note(cache, "algorithms are not kept: %.150s (run.cache)", result.text);
        keep_nothing(cache);
    }
}
