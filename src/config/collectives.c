// SPDX-License-Identifier: MIT
// Reads configs/hardware/collectives.csv: times of collectives within a node, one row per GPU, op and number of ranks.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const char *const collective_names[COLLECTIVES] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all"};

// Returns the text up to a separator, and moves past it; NULL after the last one.
static char *cut(char **rest, char separator)
{
    char *text = *rest, *end = text == NULL ? NULL : strchr(text, separator);
    if (end != NULL) {
        *end = '\0';
    }
    *rest = end == NULL ? NULL : end + 1;
    return text;
}

static int find_collective(const char *name)
{
    int found = 0;
    while (found < COLLECTIVES && strcmp(collective_names[found], name) != 0) {
        found++;
    }
    return found;
}

// Parses "h100,2.29.2,all_gather,8,5.3,,6.1,...": microseconds by size, empty if not measured. Returns false if the row
// is malformed.
static bool read_row(struct collective_times *times, char *row)
{
    const char *fields[4];
    for (int i = 0; i < 4; i++) {
        fields[i] = cut(&row, ',');
    }
    int  op    = row == NULL ? COLLECTIVES : find_collective(fields[2]);
    long ranks = row == NULL ? 0 : strtol(fields[3], NULL, 10), group = 0;
    while (group < COLLECTIVE_GROUPS && 2L << group != ranks) {
        group++;
    }
    if (op == COLLECTIVES || group == COLLECTIVE_GROUPS) {
        return false;
    }
    for (int i = 0; i < COLLECTIVE_SIZES && row != NULL; i++) {
        times->seconds[op][group][i] = 1e-6 * strtod(cut(&row, ','), NULL);
    }
    return true;
}

void collectives_read(struct hardware_config *hardware, struct document *document)
{
    size_t bytes, length = strlen(hardware->collectives);
    bool   is_found = false;
    char  *text, *rest, *row, path[1400];
    hardware->collective_times = (struct collective_times){0};
    if (strcmp(hardware->collectives, "none") == 0) {
        return;
    }
    snprintf(path, sizeof(path), "%s/hardware/collectives.csv", config_folder());
    status result = file_read(path, &text, &bytes);
    if (failed(&result)) {
        document_error(document, "[hardware] collectives = %s: %s: %s; none uses NCCL's model", hardware->collectives,
                       path, result.text);
        return;
    }
    rest = arena_format(&document->arena, "%.*s", (int)bytes, text);
    free(text);
    while ((row = cut(&rest, '\n')) != NULL) {
        if (strncmp(row, hardware->collectives, length) == 0 && row[length] == ',' && row[0] != '#') {
            is_found = true;
            if (!read_row(&hardware->collective_times, row)) {
                document_error(document, "%s: a row of %s is no GPU,NCCL,OP,RANKS,TIMES", path, hardware->collectives);
                return;
            }
        }
    }
    if (!is_found) {
        document_error(document, "[hardware] collectives = %s: %s has no such GPU", hardware->collectives, path);
    }
}
