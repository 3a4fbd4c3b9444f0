// SPDX-License-Identifier: MIT
// Selects CTAs per NCCL operation and the SM margin of GEMMs together, by timing both side by side. Fewer CTAs leave
// more SMs to compute, until they no longer saturate the links. A GEMM that counts on SMs held by NCCL needs a second
// wave. The timed miniature runs the plan's dominant GEMM next to each stream's dominant collective, in the plan's
// proportions.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "gswbench/assembly.h"
#include "gswbench/clock.h"
#include "gswbench/measured.h"
#include "gswbench/step.h"
#include "internal.h"
#include "settings.h"

enum { WAYS = 6, ROUNDS = 5, OPS_MOST = 16, KINDS_MOST = 64 };

// The first is the default without a gain.
static const struct sm_margin_way ways[WAYS] = {{0, 0}, {16, 16}, {8, 0}, {8, 8}, {4, 0}, {4, 4}};

// The group of equal ops on a stream with the most FLOPs or bytes.
struct lane_load {
    const struct op *op;    // the first of them; NULL: the stream has none
    struct op_key    key;
    double           each, alike, lane;
};

// An op of the miniature, the same on all members of a group, or the step would hang.
struct part {
    struct op op;
    int32_t   count;
};

// GEMMs on the compute stream; on others, collectives of groups within a pipeline stage.
static bool counts(const struct plan *plan, const struct op *op, int lane)
{
    if (op->lane != lane || lane == LANE_COMPUTE) {
        return op->lane == lane && op->kind == OP_GEMM;
    }
    return op_is_transfer((enum op_kind)op->kind) && !op_is_link((enum op_kind)op->kind) &&
           (plan->groups[op->shape.transfer.group].axes & 1u << AXIS_PP) == 0;
}

static struct lane_load find_load(const struct plan *plan, int lane)
{
    struct lane_load kinds[KINDS_MOST], most = {.op = NULL};
    double           sum   = 0.0;
    int              count = 0;
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op = &plan->ops[i];
        if (!counts(plan, op, lane)) {
            continue;
        }
        struct lane_load own  = {.op = op, .each = lane == LANE_COMPUTE ? op_flops(op) : plan_op_bytes(plan, op)};
        int              kind = 0;
        op_key_init(&own.key, plan, op);
        while (kind < count && memcmp(&kinds[kind].key, &own.key, sizeof(own.key)) != 0) {
            kind++;
        }
        if (kind == count && count < KINDS_MOST) {
            kinds[count++] = own;
        }
        if (kind < count) {
            kinds[kind].alike += own.each;
            most = kinds[kind].alike > most.alike ? kinds[kind] : most;
        }
        sum += own.each;
    }
    most.lane = sum;
    return most;
}

// Streams that overlap with compute; tp and cp communication is exposed and left out.
static const int lanes[] = {LANE_COMPUTE, LANE_WEIGHT_GATHER, LANE_GRADIENT_REDUCE, LANE_REPLICA_REDUCE, LANE_EXPERT};
enum { LANES = sizeof(lanes) / sizeof(lanes[0]) };

// Repeats each stream's op in the plan's proportions. Returns whether there is a GEMM and a collective.
static bool find_parts(const struct plan *plan, struct part parts[LANES])
{
    double times[LANES], most = 0.0;
    int    transfers = 0;
    for (int i = 0; i < LANES; i++) {
        struct lane_load load = find_load(plan, lanes[i]);
        parts[i]              = (struct part){.count = 0};
        times[i]              = load.op != NULL ? load.lane / load.each : 0.0;
        most                  = fmax(most, times[i]);
        if (load.op != NULL) {
            parts[i].op = *load.op;
            transfers += lanes[i] != LANE_COMPUTE;
        }
    }
    for (int i = 0; i < LANES; i++) {
        parts[i].count = times[i] > 0.0 ? (int32_t)fmax(round(times[i] * OPS_MOST / most), 1.0) : 0;
    }
    return parts[0].count > 0 && transfers > 0;
}

static uint64_t hash_parts(const struct plan *plan, const struct part parts[LANES])
{
    int64_t words[LANES][5] = {{0}};
    for (int i = 0; i < LANES; i++) {
        const struct op *op = &parts[i].op;
        if (parts[i].count > 0 && lanes[i] != LANE_COMPUTE) {
            const struct tensor *tensor = &plan->tensors[op->operand[TRANSFER_OUT]];
            const int64_t        word[] = {parts[i].count, op->kind, plan->groups[op->shape.transfer.group].axes,
                                           op->shape.transfer.elements, tensor->format};
            memcpy(words[i], word, sizeof(word));
        }
    }
    return XXH3_64bits(words, sizeof(words));
}

// Whether every rank has something to time, and members of a group have the same.
static bool agree(const struct plan *plan, const struct part parts[LANES], bool has_own, struct comm *comm)
{
    uint64_t  own    = has_own ? hash_parts(plan, parts) | 1u : 0;
    bool      is_all = true;
    uint64_t *all    = comm_gather(comm, &own, sizeof(own));
    for (int rank = 0; rank < comm->topology.ranks; rank++) {
        is_all = is_all && all[rank] != 0;
    }
    for (int i = 1; i < LANES && has_own; i++) {
        const struct plan_group *group = parts[i].count > 0 ? &plan->groups[parts[i].op.shape.transfer.group] : NULL;
        for (int64_t member = 0; group != NULL && member < group->size; member++) {
            is_all = is_all && all[group->ranks[member]] == own;
        }
    }
    free(all);
    return comm_smallest(comm, is_all ? 1.0 : 0.0) > 0.0;
}

static void add_part(struct assembly *assembly, const struct plan *plan, const struct part *part)
{
    struct op op  = part->op;
    op.wait_count = 0;
    if (op.kind != OP_GEMM) {
        op.shape.transfer.group = assembly_group(assembly, plan->groups[op.shape.transfer.group].axes);
    }
    for (int slot = 0; slot < op.operand_count; slot++) {
        if (op.operand[slot] >= 0) {
            const struct tensor *tensor = &plan->tensors[op.operand[slot]];
            op.operand[slot] =
                assembly_tensor(assembly, "operand", STORAGE_INPUT, tensor->format, DIMS(tensor->elements));
        }
    }
    for (int32_t i = 0; i < part->count; i++) {
        struct op again = op;
        assembly_append(assembly, &again);
    }
}

static void take_way(struct rank_environment *environment, const struct sm_margin_way *way)
{
    environment->comm->processors          = way->transfer;
    environment->backend.spared_processors = way->spared;
}

// Minimum of several rounds; the first round loads kernels and is skipped.
static status time_way(double *seconds, struct plan *little, struct rank_environment *environment)
{
    struct step *step;
    *seconds = INFINITY;
    TRY(choices_share(little, environment));
    TRY(comm_agree(environment->comm, step_open(&step, little, &environment->backend, environment->comm)));
    for (int round = 0; round <= ROUNDS; round++) {
        environment->comm->ops->barrier(environment->comm);
        step_run(step);
        double now = comm_largest(environment->comm, step_device_seconds(step));
        *seconds   = round > 0 ? fmin(*seconds, now) : *seconds;
    }
    step_close(step);
    return OK;
}

int sm_margin_best(const double seconds[], int count)
{
    const double gain = 0.01;    // below that it is noise, and the choice would vary from run to run
    int          best = 0;
    for (int i = 1; i < count; i++) {
        best = seconds[i] < seconds[best] ? i : best;
    }
    return seconds[best] < (1.0 - gain) * seconds[0] ? best : 0;
}

// "8 each, GEMMs leave 8: 16/16 -2.1 %, 8/0 +0.3 %": CTAs / SM margin, and time relative to the default.
static void record(const struct rank_environment *environment, const double seconds[], int count, int best)
{
    static const struct setting_kind alike = {.rule = SETTING_NOTED};
    char                             text[SETTING_BYTES], *end = text + sizeof(text), *at = text;
    at += best == 0
              ? snprintf(at, (size_t)(end - at), "default, no SM margin:")
              : snprintf(at, (size_t)(end - at), "%d CTAs, SM margin %d:", ways[best].transfer, ways[best].spared);
    for (int i = 1; i < count; i++) {
        at += snprintf(at, (size_t)(end - at), "%s %d/%d %+.1f %%", i > 1 ? "," : "", ways[i].transfer, ways[i].spared,
                       100.0 * (seconds[i] / seconds[0] - 1.0));
    }
    settings_add(environment->settings, &alike, "CTAs and SM margin", text);
}

// Whether another setting fits. Each opens connections, which is slow with many ranks.
static bool has_time(struct comm *comm, double elapsed, int tried)
{
    static const double seconds_most = 20;
    double              each         = tried > 0 ? elapsed / tried : 0.0;
    return comm_largest(comm, elapsed + each) < seconds_most;
}

static status time_ways(struct rank_environment *environment, const struct plan *plan, const struct part parts[LANES])
{
    double          seconds[WAYS];
    struct plan     little = {.mesh = plan->mesh, .rank = plan->rank};
    struct assembly assembly;
    status          result = OK;
    assembly_begin(&assembly, &little);
    for (int i = LANES - 1; i >= 0; i--) {    // collectives first, so they are in flight when GEMMs start
        if (parts[i].count > 0) {
            add_part(&assembly, plan, &parts[i]);
        }
    }
    assembly_finish(&assembly);
    double began = clock_seconds();
    int    count = 0;
    while (count < WAYS && !failed(&result) && has_time(environment->comm, clock_seconds() - began, count)) {
        take_way(environment, &ways[count]);
        result = time_way(&seconds[count++], &little, environment);
    }
    plan_free(&little);
    TRY(result);
    int best = sm_margin_best(seconds, count);
    take_way(environment, &ways[best]);
    record(environment, seconds, count, best);
    return OK;
}

static status choose(struct rank_environment *environment, const struct plan *plan, const struct run_config *run)
{
    struct part parts[LANES];
    if (run->spared_processors >= 0 || run->deterministic || !environment->comm->ops->is_enqueued) {
        return OK;
    }
    bool has_own = find_parts(plan, parts);
    return agree(plan, parts, has_own, environment->comm) ? time_ways(environment, plan, parts) : OK;
}

status sm_margin_choose(struct rank_environment *environment, const struct plan *plan, const struct run_config *run)
{
    TRY(choose(environment, plan, run));
    return environment_check_processors(environment, plan, run);
}
