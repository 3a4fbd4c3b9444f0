// SPDX-License-Identifier: MIT
// Has the table of result formats, creates the folder of a run and its files, and finds results by a path. Files are
// rendered in memory first, because a stdio stream does not keep the reason of a failed write.
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gswbench/result.h"
#include "gswbench/terminal.h"
#include "gswbench/text.h"
#include "internal.h"

#define FORMAT(name, file) {#name, file, report_write_##name},

const struct report_format report_formats[] = {REPORT_FORMATS(FORMAT){NULL, NULL, NULL}};

const struct report_format *report_find_format(const char *name)
{
    const struct report_format *format = report_formats;
    while (format->name != NULL && strcmp(format->name, name) != 0) {
        format++;
    }
    return format->name != NULL ? format : NULL;
}

static void render(struct text_stream *stream, report_writer *write, const struct result *result)
{
    text_stream_open(stream);
    write(result, stream->file);
    text_stream_close(stream);
}

static bool put(const char *text, size_t bytes)
{
    return output_put(STDOUT_FILENO, text, bytes);
}

// Prints the text of a result; the verdict at its start gets a colour.
static bool put_result(const struct text_stream *stream, enum verdict verdict)
{
    enum colour colour = verdict == VERDICT_VALID     ? COLOUR_GOOD
                         : verdict == VERDICT_INVALID ? COLOUR_BAD
                                                      : COLOUR_DOUBTFUL;
    const char *begin = terminal_colour(stdout, colour), *end = terminal_colour(stdout, COLOUR_END);
    size_t      first = strlen(REPORT_VERDICT_PREFIX), last = first + strlen(result_verdict_names[verdict]);
    return put(stream->data, first) && put(begin, strlen(begin)) && put(stream->data + first, last - first) &&
           put(end, strlen(end)) && put(stream->data + last, stream->bytes - last);
}

status report_print(report_writer *write, const struct result *result)
{
    struct text_stream stream;
    render(&stream, write, result);
    bool is_out = fflush(stdout) == 0 && (write == report_write_result || write == report_write_end
                                              ? put_result(&stream, (enum verdict)result->verdict)
                                              : put(stream.data, stream.bytes));
    free(stream.data);
    return is_out ? OK : output_cannot("write to", "standard output");
}

report_writer *report_of_run(bool is_json, bool is_verbose)
{
    return is_json ? report_write_json : is_verbose ? report_write_result : report_write_end;
}

void report_write_json(const struct result *result, FILE *file)
{
    result_write_json(result, file);
}

// Increments the last four hexadecimal digits of the run id.
static void take_next_id(struct result *result)
{
    enum { DIGITS = 4, IDS = 1 << 16 };
    size_t length = strlen(result->run_id);
    if (length > DIGITS) {
        char    *digits = result->run_id + length - DIGITS;
        unsigned next   = ((unsigned)strtoul(digits, NULL, 16) + 1) % IDS;
        snprintf(digits, DIGITS + 1, "%04x", next);
    }
}

// Creates the folder of a run. Runs that start in the same second may have the same id. The run that creates the folder
// keeps the id; the next run increments it.
static status enter_new_folder(struct output_folder *folder, struct result *result)
{
    enum { TRIES = 4096 };
    bool is_new = false;
    for (int try = 0; try < TRIES && !is_new; try++) {
        TRY(output_make_folder(folder, result->run_id, &is_new));
        if (!is_new) {
            take_next_id(result);
        }
    }
    return is_new ? output_enter_folder(folder, result->run_id)
                  : fail_as(EXIT_OUTPUT, "cannot create %.900s/%s: %s", folder->path, result->run_id, strerror(EEXIST));
}

static status enter_folder(struct output_folder *folder, const char *name)
{
    bool is_new;
    TRY(output_make_folder(folder, name, &is_new));
    return output_enter_folder(folder, name);
}

static status enter_folders(struct output_folder *folder, struct result *result)
{
    char name[sizeof(result->config_name)], ranks[24];
    text_printable(name, sizeof(name), result->config_name);
    for (char *character = name; *character != '\0'; character++) {
        if (*character == '/' || (*character == '.' && character == name)) {
            *character = '_';    // a name is a single folder: no path, no "..", not hidden
        }
    }
    snprintf(ranks, sizeof(ranks), "%" PRId64, result->mesh.world);
    TRY(enter_folder(folder, name));
    TRY(enter_folder(folder, result->precision));
    TRY(enter_folder(folder, ranks));
    return enter_new_folder(folder, result);
}

status report_create_folder(struct output_folder *folder, struct result *result, const char *output)
{
    TRY(output_create_folders(output));
    TRY(output_open_folder(folder, output));
    status entered = enter_folders(folder, result);
    if (failed(&entered)) {
        output_close_folder(folder);
    }
    return entered;
}

typedef status file_writer(const struct output_folder *folder, const char *name, const void *data, size_t bytes);

static status put_reports(file_writer *write_file, const struct output_folder *folder, const struct result *result)
{
    for (const struct report_format *format = report_formats; format->name != NULL; format++) {
        if (format->file != NULL) {
            struct text_stream stream;
            render(&stream, format->write, result);
            status written = write_file(folder, format->file, stream.data, stream.bytes);
            free(stream.data);
            TRY(written);
        }
    }
    return OK;
}

status report_write_files(const struct output_folder *folder, const struct result *result)
{
    return put_reports(output_write, folder, result);
}

// Points the link "latest" to the run. The link is in the output folder, LEVELS folders above the run's folder.
static void link_latest(const struct output_folder *folder)
{
    enum { LEVELS = 4 };
    char        output[OUTPUT_PATH_BYTES];
    const char *target = folder->path + strlen(folder->path);
    for (int level = 0; level < LEVELS && target > folder->path; level++) {
        do {
            target--;
        } while (target > folder->path && target[-1] != '/');
    }
    int length = (int)(target - folder->path) - 1;    // of the output folder's path, without its last slash
    snprintf(output, sizeof(output), "%.*s", length > 0 ? length : 0, folder->path);
    status linked = output_link(output[0] != '\0' ? output : ".", "latest", target);
    if (failed(&linked)) {
        fprintf(stderr, "gswbench: latest is not this run: %s\n", linked.text);
    }
}

status report_write_run(const struct output_folder *folder, const struct result *result)
{
    TRY(report_write_files(folder, result));
    link_latest(folder);
    return OK;
}

status report_recover(struct result *result, const char *path, const char *why, const struct result_reason *further)
{
    struct output_folder folder = {0};
    char                 journal[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    snprintf(journal, sizeof(journal), "%s/" JOURNAL_FILE, path);
    TRY(journal_read(result, journal, why, further));
    TRY(output_open_folder(&folder, path));
    status written = put_reports(output_replace_in, &folder, result);
    output_close_folder(&folder);
    return written;
}

bool report_has_journal(const char *path)
{
    struct stat state;
    char        file[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    snprintf(file, sizeof(file), "%s/%s", path, JOURNAL_FILE);
    return stat(file, &state) == 0;
}

bool report_result_file(const char *path, char *file, size_t bytes)
{
    struct stat state;
    bool        is_folder = stat(path, &state) == 0 && S_ISDIR(state.st_mode);
    snprintf(file, bytes, "%s%s", path, is_folder ? "/result.json" : "");
    return is_folder;
}

status report_read_result(struct result *result, const char *path)
{
    struct stat state;
    char        file[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    bool        is_folder = report_result_file(path, file, sizeof(file));
    if (is_folder && stat(file, &state) != 0 && report_has_journal(path)) {
        return fail_as(EXIT_USAGE,
                       "%.900s has no result: its run died or still runs; gswbench report --recover writes a partial "
                       "result from the completed steps",
                       path);
    }
    if (stat(file, &state) != 0) {
        return fail_as(EXIT_USAGE,
                       "%.900s: %s: name the folder of a run, as in the last line of its output, or its result.json",
                       file, strerror(errno));
    }
    TRY(result_read_json(result, file));
    return journal_check(result, file, result->source, sizeof(result->source));
}

// DEPTH_MAX limits the search for runs. An output folder has four levels: config, precision, ranks and run.
enum { DEPTH_MAX = 6 };

struct walk {
    result_visitor *visit;
    void           *state;
    int             found;
};

static status visit_result(struct walk *walk, const char *path)
{
    walk->found++;
    return walk->visit(walk->state, path);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

// Visits the result in a folder, or all results below it. Skips links, because "latest" would visit a run twice.
static status visit_folder(struct walk *walk, const char *path, int depth)
{
    char            file[OUTPUT_PATH_BYTES + OUTPUT_NAME_BYTES];
    struct stat     state;
    struct dirent **entries;
    snprintf(file, sizeof(file), "%s/result.json", path);
    if (stat(file, &state) == 0) {
        return visit_result(walk, path);
    }
    int    count   = depth < DEPTH_MAX ? scandir(path, &entries, is_visible, alphasort) : 0;
    status entered = OK;
    for (int i = 0; i < count; i++) {
        bool fits = snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name) < (int)sizeof(file);
        if (fits && !failed(&entered) && lstat(file, &state) == 0 && S_ISDIR(state.st_mode)) {
            entered = visit_folder(walk, file, depth + 1);
        }
        free(entries[i]);
    }
    if (count > 0) {
        free(entries);
    }
    return entered;
}

status report_visit_results(const char *path, result_visitor *visit, void *state)
{
    struct stat about;
    struct walk walk      = {.visit = visit, .state = state};
    bool        is_folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    TRY(is_folder ? visit_folder(&walk, path, 0) : visit_result(&walk, path));
    return walk.found > 0
               ? OK
               : fail_as(EXIT_USAGE, "%s: contains no result: name the folder of a run, or a folder of runs", path);
}
