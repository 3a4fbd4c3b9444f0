// SPDX-License-Identifier: MIT
// The ops and tensors of a plan, as a table and as JSON. Both are written as they are made: a plan may have 100 000
// ops.
#include <inttypes.h>
#include <stdio.h>

#include "gswbench/number.h"
#include "gswbench/op_table.h"
#include "gswbench/connection.h"
#include "internal.h"

static const struct op_field *fields_of(const struct op *op)
{
    return op_table[op->kind].shape;
}

static const char *access_name(int access)
{
    return access == ACCESS_READ ? "read" : access == ACCESS_WRITE ? "write" : "update";
}

static void print_op(const struct plan *plan, int32_t index)
{
    const struct op *op        = &plan->ops[index];
    const char      *separator = "";
    printf("%6" PRId32 " %-20s %-16s %-9s %5d %5" PRId32 "  %-32s", index, op_name((enum op_kind)op->kind),
           op_lane_name((enum lane)op->lane), op_phase_name((enum phase)op->tag.phase), op->tag.layer,
           op->tag.microbatch, op->tag.role);
    for (const struct op_field *field = fields_of(op); field->name != NULL; field++) {
        if (field->uses & OP_FIELD_SHOWN) {
            printf("%s%s %" PRId64, separator, field->name, op_field_value(op, field));
            separator = ", ";
        }
    }
    separator = ";";
    for (int slot = 0; slot < op->operand_count; slot++) {
        if (op->operand[slot] >= 0) {
            char name[128];
            printf("%s %s %s", separator, access_name(op->access[slot]),
                   plan_tensor_name(plan, op->operand[slot], name, sizeof(name)));
            separator = ",";
        }
    }
    for (int i = 0; i < op->wait_count; i++) {
        printf("%s %" PRId32, i == 0 ? "; waits for" : ",", op->wait[i]);
    }
    printf("\n");
}

void plan_print_ops(const struct plan *plan)
{
    printf("%6s %-20s %-16s %-9s %5s %5s  %-32s%s\n", "op", "kind", "lane", "phase", "layer", "micro", "role",
           "shape; operands; waits");
    for (int32_t i = 0; i < plan->op_count; i++) {
        print_op(plan, i);
    }
}

static json_t *describe_op(const struct op *op)
{
    json_t *shape = json_object(), *operands = json_array(), *waits = json_array();
    for (const struct op_field *field = fields_of(op); field->name != NULL; field++) {
        if (field->uses & OP_FIELD_SHOWN) {
            json_object_set_new(shape, field->name, json_integer(op_field_value(op, field)));
        }
    }
    for (int slot = 0; slot < op->operand_count; slot++) {
        json_array_append_new(operands, op->operand[slot] < 0
                                            ? json_null()
                                            : json_pack("{s:i, s:s}", "tensor", (int)op->operand[slot], "access",
                                                        access_name(op->access[slot])));
    }
    for (int i = 0; i < op->wait_count; i++) {
        json_array_append_new(waits, json_integer(op->wait[i]));
    }
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:s, s:b, s:f, s:o, s:o, s:o}", "kind",
                     op_name((enum op_kind)op->kind), "lane", op_lane_name((enum lane)op->lane), "phase",
                     op_phase_name((enum phase)op->tag.phase), "layer", (int)op->tag.layer, "microbatch",
                     (int)op->tag.microbatch, "chunk", (int)op->tag.chunk, "role", op->tag.role, "accumulates",
                     (int)op->accumulates, "flops", op_flops(op), "shape", shape, "operands", operands, "waits", waits);
}

static json_t *describe_tensor(const struct tensor *tensor)
{
    json_t *dims = json_array();
    for (int32_t i = 0; i < tensor->dims; i++) {
        json_array_append_new(dims, json_integer(tensor->dim[i]));
    }
    return json_pack("{s:s, s:i, s:i, s:s, s:s, s:o, s:I, s:I, s:i, s:i}", "name", tensor->name, "layer",
                     (int)tensor->layer, "microbatch", (int)tensor->microbatch, "dtype", format_name(tensor->format),
                     "storage", plan_storage_name(tensor->storage), "dims", dims, "offset", (json_int_t)tensor->offset,
                     "bytes", (json_int_t)tensor->bytes, "first_op", (int)tensor->first_op, "last_op",
                     (int)tensor->last_op);
}

static json_t *describe_group(const struct plan_group *group)
{
    json_t *ranks = json_array();
    for (int64_t i = 0; i < group->size; i++) {
        json_array_append_new(ranks, json_integer(group->ranks[i]));
    }
    return json_pack("{s:i, s:I, s:o}", "axes", (int)group->axes, "index", (json_int_t)group->index, "ranks", ranks);
}

static json_t *describe_connections(const struct plan *plan, int64_t ranks_per_node)
{
    struct plan_connections connections;
    json_t                 *list = json_array();
    plan_connections(&connections, plan, ranks_per_node);
    for (int32_t i = 0; i < connections.count; i++) {
        const struct plan_connection *one = &connections.list[i];
        json_array_append_new(list, json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:i, s:I}", "lane",
                                              op_lane_name((enum lane)one->lane), "group", (int)one->group, "peer",
                                              (json_int_t)one->peer, "ranks", (json_int_t)one->members, "nodes",
                                              (json_int_t)one->nodes, "largest_bytes", (json_int_t)one->largest_bytes,
                                              "ctas", one->processors, "memory_bytes", (json_int_t)one->bytes));
    }
    free(connections.list);
    return list;
}

// Writes one member of the open array and frees it.
static void print_member(int32_t index, json_t *value)
{
    fputs(index == 0 ? "\n" : ",\n", stdout);
    json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(value);
}

// Writes "key": value of the open object and frees the value.
static void print_value(const char *key, json_t *value)
{
    printf("\"%s\": ", key);
    json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(value);
    printf(",\n");
}

static json_t *describe_storages(const struct plan *plan)
{
    json_t *bytes = json_object();
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        json_object_set_new(bytes, plan_storage_name((enum storage)storage),
                            json_integer(plan->storage_bytes[storage]));
    }
    return bytes;
}

void plan_print_json(const struct job *job, const struct plan *plan)
{
    printf("{\"schema\": \"gswbench.plan/1\",\n");
    print_value("config", json_string(job->config.name));
    print_value("rank", json_integer(plan->rank));
    print_value("ranks", json_integer(plan->mesh.world));
    print_value("storage_bytes", describe_storages(plan));
    print_value("activation_live_bytes", json_integer(plan->activation_live_bytes));
    print_value("connections", describe_connections(plan, job->config.hardware.gpus_per_node));
    printf("\"groups\": [");
    for (int32_t i = 0; i < plan->group_count; i++) {
        print_member(i, describe_group(&plan->groups[i]));
    }
    printf("],\n\"tensors\": [");
    for (int32_t i = 0; i < plan->tensor_count; i++) {
        print_member(i, describe_tensor(&plan->tensors[i]));
    }
    printf("],\n\"ops\": [");
    for (int32_t i = 0; i < plan->op_count; i++) {
        print_member(i, describe_op(&plan->ops[i]));
    }
    printf("]}\n");
}
