// SPDX-License-Identifier: MIT
// Prints the plan of one rank as text: summary, pipeline schedule, and list of ops.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gswbench/checkpoint.h"
#include "gswbench/connection.h"
#include "gswbench/job.h"
#include "gswbench/op_table.h"
#include "gswbench/plan_build.h"
#include "gswbench/schedule.h"
#include "gswbench/report.h"
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
        printf("  %-16s %-12s %6" PRId64 " %6s %13" PRId64 " %7" PRId64 " %12s\n", op_name(communication->kind),
               axis_names(communication->axes, axes, sizeof(axes)), communication->group_size,
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
        printf("  %-16s %-12s %6" PRId64 " %6" PRId64 " %12s %6d %12s\n", op_stream_name((enum stream)one->stream),
               axis_names(plan->groups[one->group].axes, axes, sizeof(axes)), one->members, one->nodes,
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

const char *show_access_name(int access)
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
            printf("%s %s %s", separator, show_access_name(op->access[slot]),
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
