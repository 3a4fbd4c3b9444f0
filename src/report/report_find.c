// SPDX-License-Identifier: MIT
// Finds results by a path: a result.json, the folder of a run, or all runs below a folder.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gswbench/output.h"
#include "gswbench/report.h"
#include "gswbench/result.h"

static bool has_journal(const char *path)
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
    if (is_folder && stat(file, &state) != 0 && has_journal(path)) {
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

// An output folder has the levels config, precision, ranks and run.
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

// Skips links: "latest" would visit a run twice.
static status enter_folder(struct walk *walk, const char *path, int depth)
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
            entered = enter_folder(walk, file, depth + 1);
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
    TRY(is_folder ? enter_folder(&walk, path, 0) : visit_result(&walk, path));
    return walk.found > 0
               ? OK
               : fail_as(EXIT_USAGE, "%s: contains no result: name the folder of a run, or a folder of runs", path);
}
