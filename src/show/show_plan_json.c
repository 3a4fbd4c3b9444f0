// SPDX-License-Identifier: MIT
// Prints a plan as JSON. Tensors and ops are written one at a time, since a plan may have 100 000 ops.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/connection.h"
#include "gswbench/op_table.h"
#include "gswbench/show.h"

enum { SHAPE_FIELDS = 32 };

// The following structs hold the JSON document and the elements of its lists. The field tables below name their JSON
// keys.
struct operand {
    const int32_t *tensor;    // index of the tensor; NULL: the op does not use this operand slot
    const char    *access;
};
struct described_op {
    struct op         op;
    const char       *kind, *stream, *phase;
    double            flops;
    struct json_count shape_fields[SHAPE_FIELDS], *shape;
    struct operand    operand_slots[OP_OPERANDS], *operands;
    int32_t          *waits;
    int64_t           shape_count, operand_count, wait_count;
};
struct described_tensor {
    struct tensor  tensor;
    const char    *format, *storage;
    const int64_t *dims;
    int64_t        dim_count;
};
struct described_connection {
    struct plan_connection connection;
    const char            *stream;
};
struct document {
    struct job                   job;
    struct plan                  plan;
    struct plan_group           *groups;
    struct described_connection *connections;
    int64_t                      group_count, connection_count;
    json_t                      *tensors, *ops;    // always NULL: print_list writes these lists
};

// clang-format off
#define NAME(owner, key, field)         JSON_REFERENCE(owner, JSON_FIELD_TEXT, key, field, NULL)

static const struct json_field wait[] = { JSON_PLACE(JSON_FIELD_INTEGER, "", 0, sizeof(int32_t)), JSON_END };
static const struct json_field size[] = { JSON_PLACE(JSON_FIELD_INTEGER, "", 0, sizeof(int64_t)), JSON_END };
static const struct json_field operand[] = {
    { "tensor", JSON_FIELD_INTEGER, offsetof(struct operand, tensor), sizeof(int32_t), NULL, NULL, 0, 0, true },
    NAME(operand, "access", access),
    JSON_END
};
static const struct json_field op_fields[] = {
    NAME(described_op, "kind", kind),
    NAME(described_op, "lane", stream),
    NAME(described_op, "phase", phase),
    ROW_INTEGER(described_op, "layer", op.tag.layer),
    ROW_INTEGER(described_op, "microbatch", op.tag.microbatch),
    ROW_INTEGER(described_op, "chunk", op.tag.chunk),
    NAME(described_op, "role", op.tag.role),
    ROW_BOOLEAN(described_op, "accumulates", op.accumulates),
    ROW_REAL(described_op, "flops", flops),
    JSON_COUNTS(described_op, "shape", shape, shape_count),
    JSON_LIST(described_op, "operands", operands, operand_count, sizeof(struct operand), operand),
    JSON_LIST(described_op, "waits", waits, wait_count, sizeof(int32_t), wait),
    JSON_END
};
static const struct json_field tensor_fields[] = {
    NAME(described_tensor, "name", tensor.name),
    ROW_INTEGER(described_tensor, "layer", tensor.layer),
    ROW_INTEGER(described_tensor, "microbatch", tensor.microbatch),
    NAME(described_tensor, "dtype", format),
    NAME(described_tensor, "storage", storage),
    JSON_LIST(described_tensor, "dims", dims, dim_count, sizeof(int64_t), size),
    ROW_INTEGER(described_tensor, "offset", tensor.offset),
    ROW_INTEGER(described_tensor, "bytes", tensor.bytes),
    ROW_INTEGER(described_tensor, "first_op", tensor.first_op),
    ROW_INTEGER(described_tensor, "last_op", tensor.last_op),
    JSON_END
};
static const struct json_field group_fields[] = {
    ROW_INTEGER(plan_group, "axes", axes),
    ROW_INTEGER(plan_group, "index", index),
    JSON_LIST(plan_group, "ranks", ranks, size, sizeof(int64_t), size),
    JSON_END
};
static const struct json_field connection_fields[] = {
    NAME(described_connection, "lane", stream),
    ROW_INTEGER(described_connection, "group", connection.group),
    ROW_INTEGER(described_connection, "peer", connection.peer),
    ROW_INTEGER(described_connection, "ranks", connection.members),
    ROW_INTEGER(described_connection, "nodes", connection.nodes),
    ROW_INTEGER(described_connection, "largest_bytes", connection.largest_bytes),
    ROW_INTEGER(described_connection, "ctas", connection.processors),
    ROW_INTEGER(described_connection, "memory_bytes", connection.bytes),
    JSON_END
};
const struct json_field show_plan_fields[] = {
    JSON_SCHEMA("gswbench.plan/2"),
    ROW_TEXT(document, "config", job.config.name),
    ROW_INTEGER(document, "rank", plan.rank),
    ROW_INTEGER(document, "ranks", plan.mesh.world),
    JSON_MEMBER(document, "storage_bytes", plan.storage_bytes, plan_storage_fields),
    ROW_INTEGER(document, "activation_live_bytes", plan.activation_live_bytes),
    JSON_LIST(document, "connections", connections, connection_count, sizeof(struct described_connection), connection_fields),
    JSON_LIST(document, "groups", groups, group_count, sizeof(struct plan_group), group_fields),
    JSON_ARRAY(document, "tensors", tensors, tensor_fields),
    JSON_ARRAY(document, "ops", ops, op_fields),
    JSON_END
};
// clang-format on

static json_t *describe_op(const struct op *op)
{
    struct described_op described = {.op         = *op,
                                     .kind       = op_name((enum op_kind)op->kind),
                                     .stream     = op_stream_name((enum stream)op->stream),
                                     .phase      = op_phase_name((enum phase)op->tag.phase),
                                     .flops      = op_flops(op),
                                     .wait_count = op->wait_count};
    for (const struct op_field *field = op_table[op->kind].shape; field->name != NULL; field++) {
        if (field->uses & OP_FIELD_SHOWN && described.shape_count < SHAPE_FIELDS) {
            described.shape_fields[described.shape_count++] =
                (struct json_count){field->name, op_field_value(op, field)};
        }
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        bool is_empty = op->operand[slot] < 0;
        described.operand_slots[described.operand_count++] =
            (struct operand){.tensor = is_empty ? NULL : &described.op.operand[slot],
                             .access = is_empty ? NULL : show_access_name(op->access[slot])};
    }
    described.shape    = described.shape_fields;
    described.operands = described.operand_slots;
    described.waits    = described.op.wait;
    return json_from_struct(op_fields, &described);
}

static json_t *describe_tensor(const struct tensor *tensor)
{
    const struct described_tensor described = {.tensor    = *tensor,
                                               .format    = format_name(tensor->format),
                                               .storage   = plan_storage_name(tensor->storage),
                                               .dims      = tensor->dim,
                                               .dim_count = tensor->dims};
    return json_from_struct(tensor_fields, &described);
}

static void describe_connections(struct document *document)
{
    struct plan_connections connections;
    plan_connections(&connections, &document->plan,
                     hardware_domain(&document->job.config.hardware, document->plan.mesh.world));
    document->connection_count = connections.count;
    document->connections      = memory_allocate((size_t)connections.count * sizeof(*document->connections));
    for (int32_t i = 0; i < connections.count; i++) {
        document->connections[i] = (struct described_connection){
            .connection = connections.list[i], .stream = op_stream_name((enum stream)connections.list[i].stream)};
    }
    free(connections.list);
}

static void print_compact(json_t *value)
{
    json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(value);
}

// Writes the list of tensors or ops, with one element per line.
static void print_list(const char *key, const struct plan *plan)
{
    bool    is_ops = strcmp(key, "ops") == 0;
    int32_t count  = is_ops ? plan->op_count : plan->tensor_count;
    fputc('[', stdout);
    for (int32_t i = 0; i < count; i++) {
        fputs(i == 0 ? "\n" : ",\n", stdout);
        print_compact(is_ops ? describe_op(&plan->ops[i]) : describe_tensor(&plan->tensors[i]));
    }
    fputc(']', stdout);
}

void show_plan_json(const struct job *job, const struct plan *plan)
{
    struct document document = {.job = *job, .plan = *plan, .groups = plan->groups, .group_count = plan->group_count};
    describe_connections(&document);
    json_t     *rest  = json_from_struct(show_plan_fields, &document), *value;
    const char *begin = "{", *key;
    json_object_foreach(rest, key, value)
    {
        printf("%s\"%s\": ", begin, key);
        if (json_is_null(value)) {
            print_list(key, plan);
        } else {
            print_compact(json_incref(value));
        }
        begin = ",\n";
    }
    printf("}\n");
    json_decref(rest);
    free(document.connections);
}
