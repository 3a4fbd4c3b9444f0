// SPDX-License-Identifier: MIT
// Writes and reads the journal of a run, run.jsonl, from which a result can be recovered if the run is killed. A line
// is a JSON object with "run", "step" or "result", and with "xxh3", the checksum of that value as compact text. The
// journal's digest is a chain: the digest of a line is seeded with the digest of the lines before it.

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "gswbench/arena.h"
#include "gswbench/clock.h"
#include "gswbench/fatal.h"
#include "gswbench/input.h"
#include "internal.h"

enum { FILE_BYTES_MAX = 512 << 20, LINE_BYTES_MAX = 8 << 20, STEPS_MAX = 1000000 };

static char *print_value(const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (text == NULL) {
        FATAL(EXIT_MEMORY, "out of host memory");
    }
    return text;
}

// Minimum time between two syncs to disk, in seconds. A power failure loses at most the lines of this time. Syncing
// after every step is too slow, because a disk may take longer than a step.
static const double SYNC_SECONDS = 1;

static bool sync_now_and_then(struct journal *journal)
{
    double now = clock_seconds();
    if (now - journal->synced < SYNC_SECONDS) {
        return true;
    }
    journal->synced = now;
    return fdatasync(journal->file) == 0 || errno == EINVAL;    // EINVAL: the file cannot be synced
}

static status append(struct journal *journal, const char *key, json_t *value)
{
    char              *text = print_value(value);
    struct text_stream line;
    text_stream_open(&line);
    fprintf(line.file, "{\"xxh3\":\"%016" PRIx64 "\",\"%s\":%s}\n", XXH3_64bits(text, strlen(text)), key, text);
    text_stream_close(&line);
    bool is_written = output_put(journal->file, line.data, line.bytes) && sync_now_and_then(journal);
    int  error      = errno;
    journal->digest = XXH3_64bits_withSeed(line.data, line.bytes, journal->digest);
    journal->lines++;
    free(line.data);
    free(text);
    json_decref(value);
    errno = error;
    return is_written ? OK : output_cannot("write", journal->path);
}

status journal_open(struct journal *journal, const struct output_folder *folder, const struct result *result)
{
    snprintf(journal->path, sizeof(journal->path), "%s/" JOURNAL_FILE, folder->path);
    TRY(output_open_log(folder, JOURNAL_FILE, &journal->file));
    journal->is_open = true;
    flock(journal->file, LOCK_EX | LOCK_NB);    // an error is ignored, because some file systems have no locks
    return append(journal, "run", result_to_json(result));
}

bool journal_is_locked(const char *path)
{
    struct stat about;
    int         file   = -1;
    status      opened = input_open(path, &file, &about);
    if (failed(&opened)) {
        return false;
    }
    bool is_locked = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(file);
    return is_locked;
}

status journal_add_step(struct journal *journal, const struct result *result)
{
    status added = append(journal, "step", json_from_struct(step_fields, &result->steps[result->step_count - 1]));
    return failed(&added) ? fail_as(added.exit_code,
                                    "%.500s: gswbench report --recover %.*s writes a partial result from the steps "
                                    "before",
                                    added.text, (int)(strlen(journal->path) - strlen("/" JOURNAL_FILE)), journal->path)
                          : OK;
}

static void print_digest(char text[24], uint64_t digest)
{
    snprintf(text, 24, "%016" PRIx64, digest);
}

void journal_note(const struct journal *journal, struct result *result)
{
    result->journal_lines = journal->lines;
    print_digest(result->journal_digest, journal->digest);
}

static status digest_file(const char *path, char text[24])
{
    char  *content;
    size_t bytes;
    TRY(input_load(path, SIZE_MAX, &content, &bytes));
    print_digest(text, XXH3_64bits(content, bytes));
    free(content);
    return OK;
}

status journal_seal(struct journal *journal, const struct output_folder *folder)
{
    char path[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES], digest[24];
    snprintf(path, sizeof(path), "%s/result.json", folder->path);
    status read = digest_file(path, digest);
    return failed(&read) ? fail_as(EXIT_OUTPUT, "%s: %.500s", path, read.text)
                         : append(journal, "result", json_pack("{s:s}", "xxh3", digest));
}

void journal_close(struct journal *journal)
{
    if (journal->is_open) {
        close(journal->file);
    }
    journal->is_open = false;
}

// Returns the value that a line stores under `key`. Returns NULL if the line is incomplete, has a wrong checksum, or
// has another key.
static json_t *read_line(const char *line, ssize_t bytes, const char *key)
{
    json_error_t error;
    json_t      *document  = bytes > 0 && bytes <= LINE_BYTES_MAX ? json_parse(line, (size_t)bytes, &error) : NULL;
    json_t      *value     = json_object_get(document, key);
    const char  *written   = json_string_value(json_object_get(document, "xxh3"));
    char         found[24] = "";
    if (value != NULL) {
        char *text = print_value(value);
        snprintf(found, sizeof(found), "%016" PRIx64, XXH3_64bits(text, strlen(text)));
        free(text);
    }
    value = written != NULL && strcmp(written, found) == 0 ? json_incref(value) : NULL;
    json_decref(document);
    return value;
}

// Reads the next line, adds it to the chained digest, and returns its value. Returns NULL at the end of the file, or if
// read_line returns NULL.
static json_t *next_value(FILE *file, const char *key, uint64_t *digest)
{
    char   *line  = NULL;
    size_t  room  = 0;
    ssize_t bytes = getline(&line, &room, file);
    json_t *value = bytes > 0 ? read_line(line, bytes, key) : NULL;
    if (bytes > 0) {
        *digest = XXH3_64bits_withSeed(line, (size_t)bytes, *digest);
    }
    free(line);
    return value;
}

static status next_step(struct result_step *step, FILE *file, uint64_t *digest)
{
    json_t *value = next_value(file, "step", digest);
    status  read  = value != NULL ? json_to_struct(step_fields, step, value) : fail("torn");
    json_decref(value);
    return read;
}

static status read_head(struct result *result, FILE *file)
{
    uint64_t digest = 0;
    json_t  *head   = next_value(file, "run", &digest);
    if (head == NULL) {
        return fail("its first line is incomplete: the run died before its first step");
    }
    status read = result_from_json(result, head);
    json_decref(head);
    TRY(read);
    if (result->planned_steps < 1 || result->planned_steps > STEPS_MAX || result->step_count != 0) {
        return fail("its first line does not describe a run");
    }
    free(result->steps);
    result->steps = memory_allocate((size_t)result->planned_steps * sizeof(*result->steps));
    return OK;
}

// Reads the steps of a journal. Stops at the first line that is damaged, or that does not have the next step.
static void read_steps(struct result *result, FILE *file)
{
    uint64_t digest = 0;
    while (result->step_count < result->planned_steps) {
        struct result_step step;
        status             read = next_step(&step, file, &digest);
        if (failed(&read) || step.index != result->step_count) {
            return;
        }
        result->wall_seconds += step.seconds;
        result->steps[result->step_count++] = step;
    }
}

static status read_file(struct result *result, FILE *file, const char *why, const struct result_reason *further)
{
    TRY(read_head(result, file));
    read_steps(result, file);
    result_note(
        result,
        (struct result_reason){.verdict = VERDICT_PARTIAL, .id = "died", .rank = -1, .step = result->step_count - 1},
        "%s; %" PRId64 " of %" PRId64 " steps are in its journal", why, result->step_count, result->planned_steps);
    if (further != NULL) {
        result_add_reason(result, further);
    }
    result_check(result);
    return OK;
}

static status open_journal(const char *path, FILE **file)
{
    struct stat about;
    TRY(input_open_stream(path, file, &about));
    if (about.st_size > FILE_BYTES_MAX) {
        fclose(*file);
        return fail("has %lld bytes: a journal has at most %d MiB", (long long)about.st_size, FILE_BYTES_MAX >> 20);
    }
    return OK;
}

status journal_read(struct result *result, const char *path, const char *reason, const struct result_reason *further)
{
    FILE  *file;
    status read = open_journal(path, &file);
    if (!failed(&read)) {
        read = read_file(result, file, reason, further);
        fclose(file);
    }
    return failed(&read) ? fail_as(read.exit_code, "%s: %.899s", path, read.text) : OK;
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static status compare_lines(const struct result *result, FILE *file)
{
    uint64_t digest = 0;
    char     text[24];
    json_t  *head    = next_value(file, "run", &digest);
    bool     is_head = head != NULL;
    json_decref(head);
    for (int64_t i = 0; is_head && i < result->journal_lines - 1; i++) {
        struct result_step step = {0};
        status             read = next_step(&step, file, &digest);
        if (failed(&read) || i >= result->step_count || !is_same(step.seconds, result->steps[i].seconds) ||
            !is_same(step.loss, result->steps[i].loss)) {
            return fail("step %" PRId64 " differs from the journal", i);
        }
    }
    print_digest(text, digest);
    return is_head && strcmp(text, result->journal_digest) == 0 ? OK : fail("the journal's digest is %s", text);
}

static status compare_end(FILE *file, const char *path, bool *is_sealed)
{
    uint64_t    unused = 0;
    char        digest[24];
    json_t     *seal    = next_value(file, "result", &unused);
    const char *written = json_string_value(json_object_get(seal, "xxh3"));
    *is_sealed          = written != NULL;
    status compared     = *is_sealed ? digest_file(path, digest) : OK;
    if (*is_sealed && !failed(&compared) && strcmp(written, digest) != 0) {
        compared = fail("the file was changed after its run ended");
    }
    json_decref(seal);
    return compared;
}

status journal_check(const struct result *result, const char *path, char *source, size_t bytes)
{
    const char *slash = strrchr(path, '/');
    char        beside[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    FILE       *file;
    bool        is_sealed = false;
    snprintf(source, bytes, "%s",
             result->journal_lines > 0 ? "not checked: there is no " JOURNAL_FILE " beside it"
                                       : "not checked: it names no journal");
    snprintf(beside, sizeof(beside), "%.*s" JOURNAL_FILE, slash != NULL ? (int)(slash - path) + 1 : 0, path);
    status opened = result->journal_lines > 0 ? open_journal(beside, &file) : fail("none");
    if (failed(&opened)) {
        return OK;
    }
    status compared = compare_lines(result, file);
    compared        = failed(&compared) ? compared : compare_end(file, path, &is_sealed);
    fclose(file);
    snprintf(source, bytes,
             is_sealed ? "its journal agrees" : "its steps agree with its journal, which was not sealed");
    return failed(&compared) ? fail_as(EXIT_COMPARE, "%.900s is not what its run wrote: %.400s", path, compared.text)
                             : OK;
}
