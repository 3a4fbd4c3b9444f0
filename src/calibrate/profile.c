// SPDX-License-Identifier: MIT
// A hardware profile as INI: what is known of the machine, and the time of each op.
#include <string.h>

#include "gswbench/calibrate.h"

static void write_comment(FILE *file, const char *text)
{
    fputs("# SPDX-License-Identifier: MIT\n", file);
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        fprintf(file, "# %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

void calibrate_write(FILE *file, const char *origin, const struct hardware_config *hardware,
                     const struct distinct_ops *list)
{
    char value[256], key[OP_KEY_BYTES];
    write_comment(file, origin);
    fputs("\n[hardware]\n", file);
    for (const struct option *option = hardware_options; option->key != NULL; option++) {
        if (strcmp(option->key, "profile") != 0) {
            option_print(option, hardware, value, sizeof(value));
            fprintf(file, "%s = %s\n", option->key, value);
        }
    }
    fputs("\n[measured]\n", file);
    for (int32_t i = 0; i < list->count; i++) {
        quantity_print(&list->ops[i].seconds, value, sizeof(value));
        fprintf(file, "%s = %s\n", op_key_print(&list->ops[i].key, key), value);
    }
}
