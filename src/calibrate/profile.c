// SPDX-License-Identifier: MIT
// Writes a hardware profile as INI: the values of [hardware] and the time of each op.
#include <inttypes.h>
#include <string.h>

#include "gswbench/calibrate.h"

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void write_origin(FILE *file, const struct calibration_origin *origin)
{
    fputs("# SPDX-License-Identifier: MIT\n", file);
    fprintf(file, "# Measured by gswbench %s on %s, for %s in %s: %s.\n", origin->version, origin->time, origin->config,
            origin->precision, origin->layout);
    fprintf(file, "# %s: %s.\n", origin->host, origin->device);
    fprintf(file,
            "# %" PRId64 " rank%s on %" PRId64 " node%s, %" PRId64 " core%s for %" PRId64
            " of them, %s communicator%s%s.\n",
            origin->ranks, plural(origin->ranks), origin->nodes, plural(origin->nodes), origin->cores,
            plural(origin->cores), origin->core_ranks, origin->communicator, origin->library[0] != '\0' ? ", " : "",
            origin->library);
}

void calibrate_write(FILE *file, const struct calibration_origin *origin, const struct hardware_config *hardware,
                     const struct distinct_ops *list)
{
    char value[256], key[OP_KEY_BYTES];
    write_origin(file, origin);
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
