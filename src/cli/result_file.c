// SPDX-License-Identifier: MIT
// Finds a result by a path of the command line.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "gswbench/result.h"
#include "gswbench/journal.h"
#include "gswbench/result_json.h"
#include "internal.h"

static bool has_journal(const char *path)
{
    struct stat state;
    char        file[2048];
    snprintf(file, sizeof(file), "%s/%s", path, JOURNAL_FILE);
    return stat(file, &state) == 0;
}

bool cli_result_file(const char *path, char *file, size_t bytes)
{
    struct stat state;
    bool        is_folder = stat(path, &state) == 0 && S_ISDIR(state.st_mode);
    snprintf(file, bytes, "%s%s", path, is_folder ? "/result.json" : "");
    return is_folder;
}

status cli_read_result(struct result *result, const char *path)
{
    struct stat state;
    char        file[2048];
    bool        is_folder = cli_result_file(path, file, sizeof(file));
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
