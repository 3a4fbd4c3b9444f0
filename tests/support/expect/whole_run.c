// SPDX-License-Identifier: MIT
// Makes a folder for each test, and starts runs that write to it.
#include "whole_run.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

status run_here(const char *line)
{
    const char *whole = line_of("%s --out %s/results", line, folder);
    return run(whole);
}

json_t *run_json(const char *line, int exit_code)
{
    status result = run_here(line_of("%s --json", line));
    cr_assert((result.exit_code == exit_code || exit_code == ANY_EXIT_CODE) && result.text[0] == '\0', "%s: %d %s",
              line, result.exit_code, result.text);

    json_error_t error;
    json_t      *document = json_loads(output, JSON_REJECT_DUPLICATES, &error);
    cr_assert(document != NULL, "%s at %d of %s", error.text, error.position, output);
    return document;
}

json_t *reason_of(json_t *document, const char *id)
{
    size_t  i;
    json_t *reason;
    json_array_foreach(json_object_get(document, "reasons"), i, reason)
    {
        if (strcmp(text_of(reason, "id"), id) == 0) {
            return reason;
        }
    }
    return NULL;
}

static json_t *value_at(json_t *document, const char *path)
{
    char  copy[128], *rest = copy;
    char *key;
    snprintf(copy, sizeof(copy), "%s", path);
    while ((key = strtok_r(rest, ".", &rest)) != NULL) {
        document = json_object_get(document, key);
    }
    return document;
}

json_int_t number_at(json_t *document, const char *path)
{
    return json_integer_value(value_at(document, path));
}

double real_at(json_t *document, const char *path)
{
    return json_real_value(value_at(document, path));
}

double step_real(json_t *document, size_t step, const char *key)
{
    return json_real_value(json_object_get(json_array_get(json_object_get(document, "steps"), step), key));
}

const char *text_of(json_t *document, const char *key)
{
    return json_string_value(json_object_get(document, key));
}

const char *run_folder(void)
{
    static char path[1024];
    const char *line = strstr(output, "\nfiles: ");
    cr_assert_not_null(line, "%s", output);
    cr_assert(sscanf(line, "\nfiles: %1023s", path) == 1);
    return path;
}
