// SPDX-License-Identifier: MIT
// Prints the plan of one rank as text (summary, pipeline schedule, and list of ops) and as JSON. In JSON, tensors and
// ops are written one at a time, since a plan may have 100 000 ops.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/checkpoint.h"
#include "gswbench/connection.h"
#include "gswbench/job.h"
#include "gswbench/op_table.h"
#include "gswbench/plan_build.h"
#include "gswbench/report.h"
#include "gswbench/schedule.h"
#include "gswbench/show.h"
#include "gswbench/verify.h"

// Sum over the ops and weights of one layer.
struct layer_sum {
    int64_t ops, parameters;
    double  flops[PHASE_COUNT];
};

// Returns a sum per layer. Index 0 has the ops and weights outside of layers.
static struct layer_sum *sum_layers(const struct plan *plan)
{
    struct layer_sum *sums = memory_allocate(((size_t)model_all_layers(&plan->model) + 1) * sizeof(*sums));
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op  *op  = &plan->ops[i];
        struct layer_sum *sum = &sums[op->tag.layer + 1];
        sum->ops++;
        sum->flops[op->tag.phase] += op_flops(op);
    }
    for (int32_t i = 0; i < plan->weight_count; i++) {
        const struct weight *weight = &plan->weights[i];
        const struct tensor *tensor = &plan->tensors[plan->units[weight->unit].weight];
        sums[tensor->layer + 1].parameters += weight->rows * weight->columns;
    }
    return sums;
}

static void print_layer(const char *name, const struct layer_sum *sum)
{
    printf("  %-16s %7" PRId64 " %14" PRId64, name, sum->ops, sum->parameters);
    for (int phase = PHASE_FORWARD; phase <= PHASE_BACKWARD; phase++) {
        printf(" %12.5g", sum->flops[phase]);
    }
    printf("\n");
}

// Prints the layers of a plan. Consecutive layers with equal sums share a line.
static void print_layers(const struct plan *plan)
{
    struct layer_sum *sums   = sum_layers(plan);
    int64_t           layers = model_all_layers(&plan->model);
    printf("layers\n  %-16s %7s %14s %12s %12s %12s\n", "", "ops", "parameters", "forward", "recompute", "backward");
    int64_t last;
    for (int64_t first = 0; first < layers; first = last + 1) {
        char name[64];
        last = first;
        while (last + 1 < layers && memcmp(&sums[first + 1], &sums[last + 2], sizeof(*sums)) == 0) {
            last++;
        }
        if (sums[first + 1].ops == 0) {
            continue;    // the layer belongs to another pipeline stage
        }
        snprintf(name, sizeof(name), first == last ? "%" PRId64 : "%" PRId64 " to %" PRId64 ", each", first, last);
        print_layer(name, &sums[first + 1]);
    }
    print_layer("outside layers", &sums[0]);
    free(sums);
}

static void print_memory(const struct plan *plan, const struct account *account)
{
    printf("memory\n");
    for (int storage = 0; storage < STORAGE_COUNT; storage++) {
        printf("  %-16s %16" PRId64 " bytes  %s\n", plan_storage_name((enum storage)storage),
               plan->storage_bytes[storage], report_bytes((double)plan->storage_bytes[storage]));
    }
    printf("  %-16s %16" PRId64 " bytes  %s\n", "total", account->total_bytes,
           report_bytes((double)account->total_bytes));
    printf("  peak of live activations: %" PRId64 " bytes\n", plan->activation_live_bytes);
    if (account->quantized_bytes > 0) {
        show_line(19, "casts to %s       %16" PRId64 " bytes  %s, read and written; %" PRId64 " ops only cast",
                  plan->precision.compute == COMPUTE_FP4 ? "FP4" : "FP8", account->quantized_bytes,
                  report_bytes((double)account->quantized_bytes),
                  account->ops[OP_QUANTIZE] + account->ops[OP_TRANSPOSE]);
    }
}

// Prints the checkpoint's size over all ranks, and its write time if [hardware] has the storage bandwidth.
static void print_checkpoint(const struct plan *plan, const struct hardware_config *hardware)
{
    double bytes = (double)checkpoint_whole_bytes(plan), rate = hardware->storage_bandwidth.value;
    char   seconds[64] = "seconds unknown: set hardware.storage_bandwidth";
    if (rate > 0) {
        snprintf(seconds, sizeof(seconds), "%.1f s at %s/s", bytes / rate, report_bytes(rate));
    }
    show_line(19, "checkpoint         %16.0f bytes  %s, %.1f bytes per parameter, all ranks; %s", bytes,
              report_bytes(bytes), bytes / (double)layers_parameters(&plan->model), seconds);
}

// Prints the first two columns of a table. If the axes are too long for their column, the next one starts a new line.
static void print_group(const char *name, const char *axes)
{
    printf("  %-16s %-12s", name, axes);
    if (strlen(axes) > 12) {
        printf("\n%31s", "");
    }
}

static void print_communications(const struct account *account)
{
    if (account->communication_count == 0) {
        printf("transfers        none\n");
        return;
    }
    printf("transfers\n  %-16s %-12s %6s %6s %13s %7s %12s\n", "", "axes", "ranks", "type", "elements", "count",
           "bytes");
    for (int32_t i = 0; i < account->communication_count; i++) {
        const struct plan_communication *communication = &account->communications[i];
        char                             axes[64];
        double                           total =
            (double)format_bytes(communication->format, communication->elements) * (double)communication->count;
        print_group(op_name(communication->kind), axis_names(communication->axes, axes, sizeof(axes)));
        printf(" %6" PRId64 " %6s %13" PRId64 " %7" PRId64 " %12s\n", communication->group_size,
               format_name(communication->format), communication->elements, communication->count, report_bytes(total));
    }
}

// Prints the rows (tokens) per expert. Dropless experts count their rows in each step, so it prints the expected and
// the maximum number. For other experts it prints the fixed number.
static void print_experts(const struct job *job, const struct plan *plan)
{
    const struct op *route = NULL;
    for (int32_t i = 0; i < plan->op_count && route == NULL; i++) {
        route = plan->ops[i].kind == OP_ROUTE_FORWARD ? &plan->ops[i] : NULL;
    }
    if (route == NULL) {
        return;
    }
    const struct routing_shape *shape = &route->shape.routing;
    if (plan->row_count_total > 0) {
        show_line(19,
                  "rows of an expert  %" PRId64 " expected, %" PRId64
                  " at most; counted in each step, ops show the expected number",
                  plan->row_counts[0].expected, plan->row_counts[0].maximum);
    } else {
        bool is_bounded = job->config.model.capacity_factor > 0 || job->config.train.routing == ROUTING_BALANCED;
        show_line(19, "rows of an expert  %" PRId64 ", of each of %" PRId64 " ranks %" PRId64 "%s",
                  shape->owners * shape->capacity, shape->owners, shape->capacity,
                  is_bounded ? "" : ", padded for the worst case: with tp they are not counted");
    }
}

// Prints the NCCL communicators of this rank.
static void print_connections(const struct plan *plan, const struct config *config)
{
    struct plan_connections connections;
    char                    axes[64], excess[192];
    plan_connections(&connections, plan, hardware_domain(&config->hardware, plan->mesh.world));
    printf("connections\n  %-16s %-12s %6s %6s %12s %6s %12s\n", "", "axes", "ranks", "nodes", "largest op", "CTAs",
           "memory");
    for (int32_t i = 0; i < connections.count; i++) {
        const struct plan_connection *one = &connections.list[i];
        print_group(op_stream_name((enum stream)one->stream),
                    axis_names(plan->groups[one->group].axes, axes, sizeof(axes)));
        printf(" %6" PRId64 " %6" PRId64 " %12s %6d %12s\n", one->members, one->nodes,
               report_bytes((double)one->largest_bytes), one->processors, report_bytes((double)one->bytes));
    }
    printf("  %-56s %6d %12s\n", "together; memory is estimated", connections.processors,
           report_bytes((double)connections.bytes));
    if (plan_connections_excess(&connections, config->hardware.multiprocessors, config->run.sm_margin, excess,
                                sizeof(excess)) != NULL) {
        show_line(4, "  warning: %s", excess);
    }
    free(connections.list);
}

static void print_flops(const struct account *account, double hardware)
{
    double total = 0.0;
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        total += account->flops[phase];
    }
    printf("FLOPs of this rank\n");
    for (int phase = 0; phase < PHASE_COUNT; phase++) {
        if (account->flops[phase] > 0.0) {
            printf("  %-16s %12.6g  %5.1f %%\n", op_phase_name((enum phase)phase), account->flops[phase],
                   100.0 * account->flops[phase] / total);
        }
    }
    printf("  %-16s %12.6g  all ranks, per sequence of the global batch\n", "hardware", hardware);
}

status show_plan(const struct job *job, const struct plan *plan)
{
    struct account account;
    char           layout[256];
    double         hardware;
    TRY(plan_hardware_flops(plan, &job->request, &hardware));
    plan_account(plan, &account);
    show_line(
        2,
        "%s, rank %" PRId64 " of %" PRId64 " (%s), %s: %" PRId32 " ops on %" PRId32 " tensors, %" PRId64 " parameters",
        job->config.name, plan->rank, plan->mesh.world, job_layout(job, layout, sizeof(layout)),
        precision_compute_names[job->config.precision.compute], plan->op_count, plan->tensor_count, account.parameters);
    print_layers(plan);
    print_memory(plan, &account);
    print_checkpoint(plan, &job->config.hardware);
    print_experts(job, plan);
    print_communications(&account);
    if (account.communication_count > 0) {
        print_connections(plan, &job->config);
    }
    print_flops(&account, hardware);
    return OK;
}

status show_schedule(const struct job *job)
{
    const struct schedule_assignment assignment = plan_assignment(&job->request);
    const struct schedule_shape      shape      = plan_schedule(&job->request.mesh, &job->config.train);
    return schedule_draw(&assignment, &shape, stdout);
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
           op_stream_name((enum stream)op->stream), op_phase_name((enum phase)op->tag.phase), op->tag.layer,
           op->tag.microbatch, op->tag.role);
    for (const struct op_field *field = op_table[op->kind].shape; field->name != NULL; field++) {
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

void show_plan_ops(const struct plan *plan)
{
    printf("%6s %-20s %-16s %-9s %5s %5s  %-32s%s\n", "op", "kind", "stream", "phase", "layer", "micro", "role",
           "shape; operands; waits");
    for (int32_t i = 0; i < plan->op_count; i++) {
        print_op(plan, i);
    }
}

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
                             .access = is_empty ? NULL : access_name(op->access[slot])};
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
