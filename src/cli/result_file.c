// SPDX-License-Identifier: MIT
// Finds a result where the command line says.
#include <stdio.h>
#include <sys/stat.h>

#include "gswbench/result.h"
#include "gswbench/result_json.h"
#include "internal.h"

status cli_read_result(struct result *result, const char *path)
{
    struct stat state;
    char        file[2048];
    bool        is_folder = stat(path, &state) == 0 && S_ISDIR(state.st_mode);
    snprintf(file, sizeof(file), "%s%s", path, is_folder ? "/result.json" : "");
    return result_read_json(result, file);
}
