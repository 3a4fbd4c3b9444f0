// SPDX-License-Identifier: MIT
// Reads section [measured] of a hardware profile and looks ops up in it.
#include "gswbench/measured.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
#include "gswbench/text.h"

static int compare(const void *a, const void *b)
{
    return memcmp(&((const struct measured_op *)a)->key, &((const struct measured_op *)b)->key, sizeof(struct op_key));
}

static bool add_line(struct measured_ops *measured, char *line)
{
    struct measured_op op;
    char              *name, *value;
    if (!text_split_assignment(line, &name, &value) || !op_key_parse(name, &op.key) ||
        !quantity_parse(value, &op.seconds) || op.seconds.value <= 0.0) {
        return false;
    }
    LIST_APPEND(measured->ops, measured->count, op);
    return true;
}

// Returns the number of the first line that is wrong, or 0.
static int read_lines(struct measured_ops *measured, FILE *file)
{
    char  *line        = NULL;
    size_t room        = 0;
    bool   is_measured = false, is_good = true;
    int    number = 0;
    while (is_good && getline(&line, &room, file) >= 0) {
        char *start = line + strspn(line, " \t\r\n");
        number++;
        if (*start == '[') {
            is_measured = strncmp(start, "[measured]", strlen("[measured]")) == 0;
        } else if (is_measured && strchr(";#", *start) == NULL) {
            is_good = add_line(measured, start);
        }
    }
    free(line);
    return is_good ? 0 : number;
}

status measured_read(struct measured_ops *measured, const char *path)
{
    *measured  = (struct measured_ops){.ops = NULL};
    FILE *file = fopen(path, "re");
    FAIL_IF(file == NULL, "%s: cannot be read", path);
    int line = read_lines(measured, file);
    fclose(file);
    FAIL_IF(line > 0,
            "%s:%d: expected an op and its seconds, above 0, such as gemm bf16,bf16,bf16 512x512x512x0x1 = 2e-5 "
            "measured 3%%",
            path, line);
    if (measured->count > 0) {
        qsort(measured->ops, (size_t)measured->count, sizeof(*measured->ops), compare);
    }
    for (int32_t i = 1; i < measured->count; i++) {
        if (compare(&measured->ops[i - 1], &measured->ops[i]) == 0) {
            char key[OP_KEY_BYTES];
            return fail("%s: [measured] has %s twice", path, op_key_print(&measured->ops[i].key, key));
        }
    }
    return OK;
}

void measured_free(struct measured_ops *measured)
{
    free(measured->ops);
}

static bool is_empty(const struct measured_ops *measured)
{
    return measured == NULL || measured->count == 0;
}

const struct quantity *measured_find_key(const struct measured_ops *measured, const struct op_key *key)
{
    const struct measured_op wanted = {.key = *key};
    if (is_empty(measured)) {
        return NULL;
    }
    const struct measured_op *found =
        bsearch(&wanted, measured->ops, (size_t)measured->count, sizeof(*measured->ops), compare);
    return found == NULL ? NULL : &found->seconds;
}

const struct quantity *measured_find(const struct measured_ops *measured, const struct plan *plan, const struct op *op)
{
    struct op_key key;
    if (is_empty(measured)) {
        return NULL;
    }
    op_key_init(&key, plan, op);
    return measured_find_key(measured, &key);
}

status measured_read_profile(struct measured_ops *measured, const struct config *config)
{
    char profile[1400];
    *measured = (struct measured_ops){.ops = NULL};
    return config_find_profile(config, profile, sizeof(profile)) ? measured_read(measured, profile) : OK;
}
