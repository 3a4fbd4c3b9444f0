// SPDX-License-Identifier: MIT
// Visits the results below a folder.
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "internal.h"

// An output folder has the levels config, precision, ranks and run.
enum { DEPTH_MOST = 6 };

struct walk {
    result_visitor *visit;
    void           *state;
    int             found;
};

static status show(struct walk *walk, const char *path)
{
    walk->found++;
    return walk->visit(walk->state, path);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

// Skips links: "latest" would visit a run twice.
static status enter(struct walk *walk, const char *path, int depth)
{
    char            file[2048];
    struct stat     state;
    struct dirent **entries;
    snprintf(file, sizeof(file), "%s/result.json", path);
    if (stat(file, &state) == 0) {
        return show(walk, path);
    }
    int    count   = depth < DEPTH_MOST ? scandir(path, &entries, is_visible, alphasort) : 0;
    status entered = OK;
    for (int i = 0; i < count; i++) {
        bool fits = snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name) < (int)sizeof(file);
        if (fits && !failed(&entered) && lstat(file, &state) == 0 && S_ISDIR(state.st_mode)) {
            entered = enter(walk, file, depth + 1);
        }
        free(entries[i]);
    }
    if (count > 0) {
        free(entries);
    }
    return entered;
}

status cli_visit_results(const char *path, result_visitor *visit, void *state)
{
    struct stat about;
    struct walk walk      = {.visit = visit, .state = state};
    bool        is_folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    TRY(is_folder ? enter(&walk, path, 0) : show(&walk, path));
    return walk.found > 0
               ? OK
               : fail_as(EXIT_USAGE, "%s: contains no result: name the folder of a run, or a folder of runs", path);
}
