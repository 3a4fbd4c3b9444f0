// SPDX-License-Identifier: MIT
// Host time to launch the ops of layers with experts: [software] expert_launch and launch_graphs.
#include <string.h>

#include "internal.h"

static bool is_of_role(const struct op *op, const char *role)
{
    return strncmp(op->tag.role, role, strlen(role)) == 0;
}

// Ops whose row count the router determines: token dispatch and combine, and the experts.
static bool is_of_experts(const struct op *op)
{
    return op->kind == OP_DISPATCH || op->kind == OP_COMBINE || op->kind == OP_COMBINE_BACKWARD ||
           op->kind == OP_ALL_TO_ALL || is_of_role(op, "fc1") || is_of_role(op, "fc2") ||
           is_of_role(op, "activation") || is_of_role(op, "dispatch exchange") ||
           is_of_role(op, "output gradient exchange");
}

static bool is_in_graph(const struct software_config *software, const struct op *op)
{
    switch ((enum launch_graphs)software->launch_graphs) {
    case LAUNCH_GRAPHS_NONE:
        break;
    case LAUNCH_GRAPHS_ROUTER:
        return is_of_role(op, "route") || is_of_role(op, "mlp norm") || is_of_role(op, "shared fc");
    case LAUNCH_GRAPHS_ATTENTION:
        return !is_of_experts(op);
    }
    return false;
}

// Launches per op, in units of a module with several kernels. Weight and bias gradients belong to the launch of their
// GEMM. An all-to-all that sends a token once per node sorts its rows itself. Casts, and tp or cp collectives, are
// single calls.
static double count_steps(const struct software_config *software, const struct op *op)
{
    const double call = 0.5;
    if (op->kind == OP_ALL_TO_ALL && op->lane == LANE_EXPERT) {
        return software->expert_nodes ? 0.0 : 1.0;
    }
    if (op_is_transfer((enum op_kind)op->kind)) {
        return op->lane == LANE_TENSOR || op->lane == LANE_CONTEXT ? call : 0.0;
    }
    if (op->kind == OP_QUANTIZE) {
        return call;
    }
    bool is_part = op->kind == OP_TRANSPOSE || op->kind == OP_COLUMN_SUM ||
                   (op->kind == OP_GEMM && strstr(op->tag.role, "weight gradient") != NULL);
    return is_part ? 0.0 : 1.0;
}

// Dropless routing synchronizes: the host reads the tokens per expert before it continues.
void predict_price_launch(struct price *price, const struct machine *machine, const struct plan *plan,
                          const struct op *op)
{
    const struct software_config *software = machine->software;
    if (software == NULL || software->expert_launch.value == 0.0 || plan->model.experts == 0 || op->tag.layer < 0 ||
        op->tag.microbatch < 0) {
        return;
    }
    double step           = software->expert_launch.value * machine->hardware->launch_share.value;
    price->is_in_graph    = is_in_graph(software, op);
    price->launch_seconds = (price->is_in_graph ? 1.0 : count_steps(software, op)) * step;
    price->launch_alone   = price->launch_seconds * machine->hardware->launch_alone.value;
    price->is_read        = op->kind == OP_ROUTE_FORWARD && plan->model.capacity_factor == 0.0;
}
