// SPDX-License-Identifier: MIT
// Writes a calibration as JSON: its origin, every value of [hardware], and the time of each op.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/calibrate.h"
#include "gswbench/op_table.h"

// A value of [hardware]: a number with its origin, or a text.
struct value {
    const char *key;
    char        text[112];
    double      number, spread_percent;    // NaN: text
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
    } else if (option->type == OPTION_INTEGER) {
        value.number = (double)*(const int64_t *)((const char *)&held + option->offset);
    } else {
        option_print(option, &held, value.text, sizeof(value.text));
    }
    return value;
}

static void add_values(struct document *document, const struct hardware_config *hardware)
{
    while (hardware_options[document->value_count].key != NULL) {
        document->value_count++;
    }
    document->values = memory_allocate((size_t)document->value_count * sizeof(*document->values));
    for (int64_t i = 0; i < document->value_count; i++) {
        document->values[i] = describe_value(&hardware_options[i], hardware);
    }
}

static void add_ops(struct document *document, const struct distinct_ops *list)
{
    document->op_count = list->count;
    document->ops      = memory_allocate((size_t)(list->count + 1) * sizeof(*document->ops));
    for (int32_t i = 0; i < list->count; i++) {
        const struct distinct_op *op    = &list->ops[i];
        struct timed             *timed = &document->ops[i];
        op_key_print(&op->key, timed->key);
        text_copy(timed->kind, sizeof(timed->kind), op_name((enum op_kind)op->key.kind));
        timed->count          = op->count;
        timed->seconds        = op->seconds.value;
        timed->spread_percent = op->seconds.spread_percent;
    }
}

bool calibrate_write_json(FILE *file, const struct calibration_origin *origin, const struct hardware_config *hardware,
                          const struct distinct_ops *list)
{
    struct document document = {.origin = *origin};
    add_values(&document, hardware);
    add_ops(&document, list);
    json_t *json    = json_from_struct(calibrate_fields, &document);
    bool    written = json_print(json, file);
    json_decref(json);
    free(document.values);
    free(document.ops);
    return written;
}
