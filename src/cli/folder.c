// SPDX-License-Identifier: MIT
// Goes through the installed configurations.
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static status visit_file(config_visitor *visit, void *state, const char *file, struct text_buffer *errors)
{
    char path[1400], name[256];
    snprintf(path, sizeof(path), "%s/%s", config_folder(), file);
    text_copy(name, sizeof(name), file);
    name[strlen(name) - strlen(".ini")] = '\0';
    return visit(state, name, path, errors);
}

static status count_rows(void *state, const char *name, const char *path, struct text_buffer *errors)
{
    struct job_selection one = {.name = path};
    (void)name;
    return cli_count_rows(state, &one, errors);
}

status cli_count_rows(int64_t *count, const struct job_selection *selection, struct text_buffer *errors)
{
    struct config_row rows[CONFIG_ROWS_MAX];
    int               own = 0;
    if (selection->name == NULL) {
        return cli_visit_configs(count_rows, count, errors);
    }
    TRY(job_rows(selection, rows, &own, errors));
    *count += own;
    return OK;
}

status cli_visit_configs(config_visitor *visit, void *state, struct text_buffer *errors)
{
    const char     *folder = config_folder();
    struct dirent **entries;
    status          result = OK;
    int             count  = scandir(folder, &entries, config_is_file, alphasort);
    if (count <= 0) {
        return fail_as(EXIT_LAUNCH, "%s: %s; GSWBENCH_CONFIGS names the folder of the configurations", folder,
                       count < 0 ? strerror(errno) : "no configurations");
    }
    for (int i = 0; i < count; i++) {
        if (!failed(&result)) {
            result = visit_file(visit, state, entries[i]->d_name, errors);
        }
        free(entries[i]);
    }
    free(entries);
    return result;
}
