// SPDX-License-Identifier: MIT
// Writes a hardware profile, which has the values of [hardware] and the time of each op, as INI and as JSON.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/arena.h"
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

// A value of [hardware] in the JSON: a number with its origin, or a text.
struct value {
    const char *key;
    char        text[112];
    double      number, spread_percent;    // NaN if the value is a text
    int64_t     origin;
};
struct timed {
    char    key[OP_KEY_BYTES], kind[32];
    int64_t count;
    double  seconds, spread_percent;
};
struct document {
    struct calibration_origin origin;
    struct value             *values;
    struct timed             *ops;
    int64_t                   value_count, op_count;
};

// clang-format off
#define OF_VALUE(kind, key, field)  JSON_FIELD(value, kind, key, field)
#define OF_OP(kind, key, field)     JSON_FIELD(timed, kind, key, field)
#define OF_ORIGIN(kind, key, field) JSON_FIELD(calibration_origin, kind, key, field)

static const struct json_field value_fields[] = {
    JSON_REFERENCE(value, JSON_FIELD_TEXT, "key", key, NULL),
    OF_VALUE(JSON_FIELD_REAL, "value", number),
    OF_VALUE(JSON_FIELD_TEXT, "text", text),
    OF_VALUE(JSON_FIELD_REAL, "spread_percent", spread_percent),
    JSON_CHOICE(value, "origin", origin, quantity_origin_names),
    JSON_END
};
static const struct json_field op_fields[] = {
    OF_OP(JSON_FIELD_TEXT, "key", key),
    OF_OP(JSON_FIELD_TEXT, "kind", kind),
    OF_OP(JSON_FIELD_INTEGER, "count", count),
    OF_OP(JSON_FIELD_REAL, "time_s", seconds),
    OF_OP(JSON_FIELD_REAL, "spread_percent", spread_percent),
    JSON_END
};
const struct json_field calibrate_fields[] = {
    JSON_SCHEMA("gswbench.calibration/1"),
    OF_ORIGIN(JSON_FIELD_TEXT, "version", version),
    OF_ORIGIN(JSON_FIELD_TEXT, "ended_utc", time),
    OF_ORIGIN(JSON_FIELD_TEXT, "config", config),
    OF_ORIGIN(JSON_FIELD_TEXT, "precision", precision),
    OF_ORIGIN(JSON_FIELD_TEXT, "layout", layout),
    OF_ORIGIN(JSON_FIELD_TEXT, "host", host),
    OF_ORIGIN(JSON_FIELD_TEXT, "device", device),
    OF_ORIGIN(JSON_FIELD_TEXT, "communicator", communicator),
    OF_ORIGIN(JSON_FIELD_TEXT, "library", library),
    OF_ORIGIN(JSON_FIELD_INTEGER, "ranks", ranks),
    OF_ORIGIN(JSON_FIELD_INTEGER, "nodes", nodes),
    OF_ORIGIN(JSON_FIELD_INTEGER, "cores", cores),
    OF_ORIGIN(JSON_FIELD_INTEGER, "core_ranks", core_ranks),
    JSON_LIST(document, "hardware", values, value_count, sizeof(struct value), value_fields),
    JSON_LIST(document, "ops", ops, op_count, sizeof(struct timed), op_fields),
    JSON_END
};
// clang-format on

static struct value describe_value(const struct option *option, const struct hardware_config *hardware)
{
    struct hardware_config held  = *hardware;
    struct value           value = {.key = option->key, .number = NAN, .spread_percent = NAN};
    if (option->type == OPTION_QUANTITY) {
        const struct quantity *quantity = option_quantity(option, &held);
        value.number                    = quantity->value;
        value.spread_percent            = quantity->spread_percent;
        value.origin                    = quantity->origin;
    } else if (option->type == OPTION_REAL) {
        value.number = *(const double *)(const void *)((const char *)&held + option->offset);
    } else if (option->type == OPTION_INTEGER) {
        value.number = (double)*(const int64_t *)((const char *)&held + option->offset);
    } else {
        option_print(option, &held, value.text, sizeof(value.text));
    }
    return value;
}

bool calibrate_write_json(FILE *file, const struct calibration_origin *origin, const struct hardware_config *hardware,
                          const struct distinct_ops *list)
{
    struct document document = {.origin = *origin, .op_count = list->count};
    while (hardware_options[document.value_count].key != NULL) {
        document.value_count++;
    }
    document.values = memory_allocate((size_t)document.value_count * sizeof(*document.values));
    document.ops    = memory_allocate((size_t)(list->count + 1) * sizeof(*document.ops));
    for (int64_t i = 0; i < document.value_count; i++) {
        document.values[i] = describe_value(&hardware_options[i], hardware);
    }
    for (int32_t i = 0; i < list->count; i++) {
        const struct distinct_op *op    = &list->ops[i];
        struct timed             *timed = &document.ops[i];
        op_key_print(&op->key, timed->key);
        text_copy(timed->kind, sizeof(timed->kind), op_name((enum op_kind)op->key.kind));
        timed->count          = op->count;
        timed->seconds        = op->seconds.value;
        timed->spread_percent = op->seconds.spread_percent;
    }
    bool written = json_write(calibrate_fields, &document, file);
    free(document.values);
    free(document.ops);
    return written;
}
