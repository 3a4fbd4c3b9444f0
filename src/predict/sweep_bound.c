// SPDX-License-Identifier: MIT
// Computes lower bounds of a layout's time and memory from plans of a few microbatches. Once the pipeline is full, each
// further microbatch takes at least the minimum of the earlier ones and needs no additional memory.
#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/number.h"
#include "gswbench/plan_build.h"
#include "internal.h"

// Kinds of time of a pipeline stage. loaded_seconds adds them up to a lower bound that includes the slowdown of compute
// by communication. COMPUTED: compute. IDLE: waits for communication that starts only after the previous compute op.
// TAKEN: compute time that is lost because communication uses SMs. BUSY + stream: communication on this stream.
//
// A communication op of t seconds on a share s of the SMs adds s t to TAKEN, unless the stage waits for it.
enum { COMPUTED, IDLE, TAKEN, BUSY, KINDS = BUSY + STREAM_COUNT };

// Seconds of one microbatch, by the kinds of the enum above.
struct load {
    double seconds[KINDS];
};

struct loads {
    const struct plan *plan;
    const struct task *tasks;
    double             processors, sm_margin;    // processors: SMs; INFINITY: communication takes none
    struct load       *of;                       // [1 + microbatches]; [0]: ops of no microbatch
    double             largest[STREAM_COUNT];    // largest share of the SMs that an op of the stream takes
};

static double share_of(const struct loads *loads, const struct task *task)
{
    return fmax((double)task->processors - loads->sm_margin, 0.0) / loads->processors;
}

static void add_communication(struct loads *loads, int32_t index, double sign)
{
    const struct task *task = &loads->tasks[index];
    struct load       *load = &loads->of[loads->plan->ops[index].tag.microbatch + 1];
    load->seconds[TAKEN] += sign * share_of(loads, task) * task->seconds;
    load->seconds[BUSY + task->stream] += sign * task->seconds;
    loads->largest[task->stream] = fmax(loads->largest[task->stream], share_of(loads, task));
}

// Returns the communication op that op `index` waits for and that itself waits for op `before`, or -1. The compute
// stream is idle while this communication op runs.
static int32_t find_idle(const struct loads *loads, int32_t index, int32_t before)
{
    const struct op *op = &loads->plan->ops[index];
    for (int w = 0; w < op->wait_count; w++) {
        const struct op *waited = &loads->plan->ops[op->wait[w]];
        for (int v = 0; v < waited->wait_count && loads->tasks[op->wait[w]].links != 0; v++) {
            if (waited->wait[v] == before) {
                return op->wait[w];
            }
        }
    }
    return -1;
}

static void add_all(struct loads *loads)
{
    int32_t before = -1;
    for (int32_t i = 0; i < loads->plan->op_count; i++) {
        const struct task *task = &loads->tasks[i];
        struct load       *load = &loads->of[loads->plan->ops[i].tag.microbatch + 1];
        if (task->stream != STREAM_COMPUTE) {
            add_communication(loads, i, 1.0);
            continue;
        }
        load->seconds[task->links == 0 ? COMPUTED : IDLE] += task->seconds;
        int32_t idle = find_idle(loads, i, before);
        if (idle >= 0 && before >= 0) {
            load->seconds[IDLE] += loads->tasks[idle].seconds;
            add_communication(loads, idle, -1.0);
        }
        before = i;
    }
}

// Sums the seconds of one kind over the plan's microbatches and `more` additional microbatches. An additional
// microbatch costs the same as the cheapest one of the plan between the first and the last.
static double sum_up(const struct loads *loads, int kind, int64_t more)
{
    int64_t microbatches = loads->plan->train.accumulation;
    double  sum = loads->of[0].seconds[kind], minimum = microbatches > 2 ? INFINITY : 0.0;
    for (int64_t m = 0; m < microbatches; m++) {
        double seconds = loads->of[m + 1].seconds[kind];
        minimum        = m > 0 && m < microbatches - 1 ? fmin(minimum, seconds) : minimum;
        sum += seconds;
    }
    return sum + (double)more * minimum;
}

// Returns a lower bound of the stage's time from the seconds of each kind (COMPUTED, IDLE, ...); 0: no bound. more:
// number of microbatches of the step that the plan lacks.
static double loaded_seconds(const struct plan *plan, const struct task *tasks, const struct machine *machine,
                             int64_t more)
{
    const struct hardware_config *hardware = machine->hardware;
    bool                          is_cpu   = hardware->cores > 0;
    struct loads                  loads    = {.plan       = plan,
                                              .tasks      = tasks,
                                              .processors = is_cpu ? INFINITY : (double)hardware->multiprocessors,
                                              .sm_margin  = (double)machine->sm_margin};
    double contention = is_cpu ? 0.0 : hardware->contention.value, maximum = contention, running = 0.0;
    loads.of = memory_allocate((size_t)(plan->train.accumulation + 1) * sizeof(*loads.of));
    add_all(&loads);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        maximum += loads.largest[stream];
        running = fmax(running, sum_up(&loads, BUSY + stream, more));
    }
    double seconds = sum_up(&loads, COMPUTED, more) + sum_up(&loads, TAKEN, more) + contention * running +
                     (1.0 - maximum) * sum_up(&loads, IDLE, more);
    free(loads.of);
    return maximum < 0.9 ? seconds : 0.0;    // else compute_rate may apply its minimum of 10 %: no bound
}

// A walk over a stage's compute stream in order, from the arrival of its first microbatch. Each op that waits for
// another stage begins a segment. To keep the time a lower bound, an op waits only for ops of its own segment. If the
// step has more microbatches than the plan, each microbatch and chunk also begins a segment.
struct walk {
    const struct plan *plan;
    const struct task *tasks;
    bool               has_all;    // the plan has all microbatches of the step
    double             stream_ends[STREAM_COUNT];
    double            *ends;    // [op]: end time of each op
    // [op]: the op receives data from another stage, or is on a communication stream and waits for such an op
    bool                *is_input;
    int32_t              first;    // first op of the segment
    const struct op_tag *tag;      // of the segment's first op
};

static void begin_segment(struct walk *walk, int32_t index, const struct op *op)
{
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        walk->stream_ends[stream] = stream == STREAM_COMPUTE ? walk->stream_ends[stream] : -INFINITY;
    }
    walk->first = index;
    walk->tag   = &op->tag;
}

static bool waits_for_stage(const struct walk *walk, const struct op *op)
{
    for (int w = 0; w < op->wait_count; w++) {
        if (walk->is_input[op->wait[w]]) {
            return true;
        }
    }
    return false;
}

static bool is_received(const struct walk *walk, int32_t index)
{
    const struct op *op = &walk->plan->ops[index];
    bool             is_receive =
        op->kind == OP_RECEIVE && (walk->plan->groups[op->shape.communication.group].axes & 1u << AXIS_PP) != 0;
    return walk->tasks[index].stream != STREAM_COMPUTE && (is_receive || waits_for_stage(walk, op));
}

// Whether the op begins a segment. Ops of no microbatch, such as the optimizer, continue the current one.
static bool begins_segment(const struct walk *walk, int32_t index)
{
    const struct op *op = &walk->plan->ops[index];
    bool             is_other =
        walk->tag == NULL ||
        (op->tag.microbatch >= 0 && (op->tag.microbatch != walk->tag->microbatch || op->tag.chunk != walk->tag->chunk));
    return op->stream == STREAM_COMPUTE &&
           (walk->tag == NULL || (is_other && !walk->has_all) || waits_for_stage(walk, op));
}

static double latest_wait(const struct walk *walk, const struct op *op)
{
    double latest = -INFINITY;
    for (int w = 0; w < op->wait_count; w++) {
        latest = op->wait[w] >= walk->first ? fmax(latest, walk->ends[op->wait[w]]) : latest;
    }
    return latest;
}

// Advances the walk by an op. Returns the seconds by which the op extends its stream, waits included.
static double pass_seconds(struct walk *walk, int32_t index)
{
    const struct op *op = &walk->plan->ops[index];
    if (begins_segment(walk, index)) {
        begin_segment(walk, index, op);
    }
    double *stream_end = &walk->stream_ends[walk->tasks[index].stream], before = *stream_end;
    double  begin         = fmax(before, latest_wait(walk, op));
    walk->is_input[index] = is_received(walk, index);
    *stream_end = walk->ends[index] = begin + walk->tasks[index].seconds;
    return *stream_end - before;
}

// Times of a pipeline stage, from a walk over a plan with few microbatches. look_at_stage adds the times of the others.
struct stage {
    double              *seconds;         // [1 + microbatches]; [0]: ops of no microbatch, such as the optimizer
    struct sweep_action *actions;         // [forward or backward][microbatch][chunk]
    double               last_actions;    // seconds from the first input to the last send
    double               all, rest;       // seconds from the first input to the end; seconds after the last pass
    // lower bound of the step time that includes the slowdown of compute by communication
    double  loaded;
    int64_t bytes;
};

// The forward or backward pass in which the walk is. begin: its start. input: start of its first op that needs data
// from another stage. made: time at which the data that it sends is ready; INFINITY: no send yet.
struct stage_state {
    struct sweep_action *action;    // NULL: none
    double               begin, input, made;
    bool                 has_input;
};

// Returns the pass that a compute op belongs to; NULL: none. Forward ops of MTP modules (layers after model.layers - 1)
// count as part of the backward pass, because they run at its start. Forward ops of the head (layer -1) do not.
static struct sweep_action *action_of(const struct stage *stage, const struct plan *plan, const struct op *op)
{
    bool    is_forward = op->tag.phase == PHASE_FORWARD && op->tag.layer < plan->model.layers;
    int64_t pass       = is_forward ? SCHEDULE_FORWARD : SCHEDULE_BACKWARD;
    int64_t place      = (pass * plan->train.accumulation + op->tag.microbatch) * plan->mesh.vp;
    return op->tag.microbatch < 0 ? NULL : &stage->actions[place + (op->tag.chunk > 0 ? op->tag.chunk : 0)];
}

static void begin_action(struct stage_state *stage_state, struct sweep_action *action, double now)
{
    // true for a deferred head gradient, which comes after its pass has ended
    bool is_over = action != NULL && action->before + action->through > 0.0;
    *stage_state =
        (struct stage_state){.action = is_over ? NULL : action, .begin = now, .input = now, .made = INFINITY};
}

// Updates the times of the current pass with a compute op or a send.
static void follow_action(struct stage_state *stage_state, const struct stage *stage, const struct walk *walk,
                          int32_t index, double seconds)
{
    const struct op *op  = &walk->plan->ops[index];
    double           end = walk->stream_ends[STREAM_COMPUTE];
    if (walk->tasks[index].stream == STREAM_COMPUTE) {
        struct sweep_action *action = action_of(stage, walk->plan, op);
        if (action != stage_state->action) {
            begin_action(stage_state, action, end - seconds);
        }
        if (waits_for_stage(walk, op) && !stage_state->has_input) {
            stage_state->input     = end - seconds;
            stage_state->has_input = true;
        }
    } else {
        stage_state->made = fmax(latest_wait(walk, op), stage_state->input);
    }
    if (stage_state->action != NULL) {
        double made = stage_state->made == INFINITY ? end : stage_state->made;
        *stage_state->action =
            (struct sweep_action){stage_state->input - stage_state->begin, made - stage_state->input, end - made};
    }
}

// Returns the compute op for which the stage's last send waits; -1: the stage sends nothing.
static int32_t find_last_action(const struct plan *plan)
{
    for (int32_t i = plan->op_count - 1; i >= 0; i--) {
        const struct op *op = &plan->ops[i];
        for (int w = 0; w < op->wait_count && op->stream == STREAM_PIPELINE_SEND; w++) {
            if (plan->ops[op->wait[w]].stream == STREAM_COMPUTE) {
                return op->wait[w];
            }
        }
    }
    return -1;
}

// Sets the times of a stage by a walk over its plan. more: number of microbatches of the step that the plan lacks.
static void time_stage(struct stage *stage, const struct plan *plan, const struct machine *machine, int64_t more)
{
    struct predict_stage costed      = {.plan = *plan};
    struct actor         actor       = {.tasks      = memory_allocate((size_t)plan->op_count * sizeof(*actor.tasks)),
                                        .task_count = plan->op_count};
    struct walk          walk        = {.plan     = plan,
                                        .tasks    = actor.tasks,
                                        .has_all  = more == 0,
                                        .ends     = memory_allocate((size_t)plan->op_count * sizeof(*walk.ends)),
                                        .is_input = memory_allocate((size_t)plan->op_count * sizeof(*walk.is_input))};
    struct stage_state   stage_state = {.action = NULL};
    int32_t              last_action = find_last_action(plan);
    bool                 is_first    = true;
    double launched = 0.0, again = 0.0;    // host seconds for launches: of the plan, and per microbatch that it lacks
    predict_cost_stage(&actor, &costed, &(struct cost_model){predict_cost, machine});
    for (int32_t i = 0; i < plan->op_count; i++) {
        const struct op *op      = &plan->ops[i];
        double           seconds = pass_seconds(&walk, i);
        launched += actor.tasks[i].launch_seconds;
        again += op->tag.microbatch == 1 && plan->train.accumulation > 2 ? actor.tasks[i].launch_seconds : 0.0;
        if (actor.tasks[i].stream == STREAM_COMPUTE || op->stream == STREAM_PIPELINE_SEND) {
            follow_action(&stage_state, stage, &walk, i, seconds);
        }
        if (actor.tasks[i].stream != STREAM_COMPUTE) {
            continue;
        }
        // Ops before the first input from another stage do not count, because they overlap with the wait for this
        // input.
        if (waits_for_stage(&walk, op) && is_first) {
            stage->last_actions = stage->all = 0.0;
        }
        is_first &= op->tag.microbatch <= 0 && op->tag.phase == PHASE_FORWARD && !waits_for_stage(&walk, op);
        stage->seconds[op->tag.microbatch + 1] += seconds;
        stage->all += seconds;
        stage->last_actions += i <= last_action ? seconds : 0.0;
        stage->rest = op->tag.microbatch < 0 ? stage->rest + seconds : 0.0;
    }
    stage->loaded =
        fmax(launched + (double)more * again, loaded_seconds(plan, actor.tasks, machine, more)) + costed.stall_seconds;
    stage->all += costed.stall_seconds;
    stage->rest += costed.stall_seconds;
    free(actor.tasks);
    free(walk.ends);
    free(walk.is_input);
}

void sweep_time_actions(struct sweep_action *actions, const struct plan *plan, const struct machine *machine)
{
    struct stage stage = {.actions = actions};
    stage.seconds      = memory_allocate((size_t)(plan->train.accumulation + 1) * sizeof(double));
    time_stage(&stage, plan, machine, 1);
    free(stage.seconds);
}

// Lower bound of a pipeline's time from the times of its forward and backward passes. A pass starts when its stage has
// finished the previous pass and the input from another stage is ready.
struct timetable {
    const struct schedule_shape *shape;
    const struct sweep_action   *actions;
    double *made;    // [forward or backward][microbatch][chunk of the model]: when its output is ready; 0: not yet
    double *free;    // [stage]: end of its latest pass
};

void sweep_take_minimum(struct sweep_action *minimum, const struct sweep_action *action)
{
    minimum->before  = fmin(minimum->before, action->before);
    minimum->through = fmin(minimum->through, action->through);
    minimum->after   = fmin(minimum->after, action->after);
}

// Returns the index of a pass in sweep_bound.actions. The first microbatch has its own entries. It is cheaper, because
// GEMMs add to existing gradients only from the second on.
int64_t sweep_place_action(const struct schedule_shape *shape, const struct schedule_action *action, int64_t chunk)
{
    int64_t later = action->microbatch > 0;
    return (later * SCHEDULE_PASSES + action->pass) * shape->stages * shape->chunks + chunk;
}

static double *made_by(const struct timetable *timetable, const struct schedule_action *action, int64_t chunk)
{
    const struct schedule_shape *shape = timetable->shape;
    return &timetable->made[(action->pass * shape->microbatches + action->microbatch) * shape->stages * shape->chunks +
                            chunk];
}

// Runs the passes of a stage from index `next` until the input of a pass is not ready. Returns the index of that pass.
static int64_t advance(const struct timetable *timetable, int64_t stage, const struct schedule_action *actions,
                       int64_t next)
{
    const struct schedule_shape *shape  = timetable->shape;
    int64_t                      chunks = shape->stages * shape->chunks;
    for (; next < schedule_actions(shape); next++) {
        const struct schedule_action *action = &actions[next];
        int64_t                       chunk  = action->chunk * shape->stages + stage;
        int64_t                       from   = action->pass == SCHEDULE_FORWARD ? chunk - 1 : chunk + 1;
        const struct sweep_action    *takes  = &timetable->actions[sweep_place_action(shape, action, chunk)];
        double                        begin  = timetable->free[stage] + takes->before;
        if (from >= 0 && from < chunks) {
            double input = *made_by(timetable, action, from);
            if (input == 0.0) {
                break;
            }
            begin = fmax(begin, input);
        }
        // A pass that takes 0 s must still count as done, and 0 means that its output is not ready.
        *made_by(timetable, action, chunk) = fmax(begin + takes->through, 1e-12);
        timetable->free[stage]             = begin + takes->through + takes->after;
    }
    return next;
}

static double walk_actions(const struct schedule_shape *shape, const struct sweep_action *actions, const double *rest)
{
    struct arena            arena     = {.blocks = NULL};
    int64_t                 count     = schedule_actions(shape);
    struct schedule_action *all       = arena_allocate(&arena, (size_t)(count * shape->stages) * sizeof(*all));
    int64_t                *next      = arena_allocate(&arena, (size_t)shape->stages * sizeof(*next));
    struct timetable        timetable = {.shape   = shape,
                                         .actions = actions,
                                         .made = arena_allocate(&arena, (size_t)(count * shape->stages) * sizeof(double)),
                                         .free = arena_allocate(&arena, (size_t)shape->stages * sizeof(double))};
    for (int64_t stage = 0; stage < shape->stages; stage++) {
        schedule_build(shape, stage, &all[stage * count]);
    }
    double end      = 0.0;
    bool   has_gone = true;
    while (has_gone) {
        has_gone = false;
        for (int64_t stage = 0; stage < shape->stages; stage++) {
            int64_t before = next[stage];
            next[stage]    = advance(&timetable, stage, &all[stage * count], before);
            has_gone |= next[stage] > before;
            end = fmax(end, timetable.free[stage] + rest[stage]);
        }
    }
    arena_free(&arena);
    return end;
}

static int64_t input_bytes(const struct plan *plan, int32_t tensor)
{
    return tensor < 0 ? 0 : number_round_up(plan->tensors[tensor].bytes, PLAN_ALIGNMENT);
}

// Stores the pass times of a stage in the bound: for the first microbatch, and the minimum over the later microbatches.
static void add_passes(struct sweep_bound *bound, const struct stage *stage, const struct plan *plan, int64_t number)
{
    int64_t               chunks = plan->mesh.vp, microbatches = plan->train.accumulation;
    struct schedule_shape shape = {
        .stages = plan->mesh.size[AXIS_PP], .chunks = chunks, .microbatches = microbatches, .kind = SCHEDULE_1F1B};
    for (int64_t i = 0; i < SCHEDULE_PASSES * microbatches * chunks; i++) {
        struct schedule_action action = {.pass       = (enum schedule_pass)(i / chunks / microbatches),
                                         .microbatch = i / chunks % microbatches};
        struct sweep_action   *minimum =
            &bound->actions[sweep_place_action(&shape, &action, i % chunks * shape.stages + number)];
        *minimum = action.microbatch < 2 ? stage->actions[i] : *minimum;
        sweep_take_minimum(minimum, &stage->actions[i]);
    }
    bound->rest[number] = stage->rest;
}

// Returns the pipeline stage to examine next: the first stage, the last stage, then the others. The first stage holds
// the most activations and the last stage is often the slowest, so these two usually decide.
static int64_t stage_to_look_at(int64_t looked_at, int64_t last)
{
    return looked_at == 0 ? 0 : looked_at == 1 ? last : looked_at - 1;
}

// Returns a lower bound of the device memory of a step with `more` microbatches more than the plan, in gswbench or in
// the modelled framework, whichever is larger. Counts live activations instead of planned memory, because fragmentation
// varies with the number of microbatches.
static int64_t device_bytes(const struct plan *plan, const struct machine *machine, int64_t more)
{
    struct footprint footprint;
    int64_t          bytes = footprint_find(&footprint, plan, machine->software, machine->hardware,
                                            hardware_domain(machine->hardware, plan->mesh.world));
    bytes += plan_total_bytes(plan) - plan->storage_bytes[STORAGE_ACTIVATION] + plan->activation_live_bytes +
             more * (input_bytes(plan, plan->tokens[0]) + input_bytes(plan, plan->targets[0]));
    return footprint_is_modelled(machine->software) && footprint.device > bytes ? footprint.device : bytes;
}

// Times the next pipeline stage by a plan with only `microbatches` microbatches, and extrapolates to the whole step.
static status look_at_stage(struct stage *stage, struct sweep_bound *bound, const struct plan_request *request,
                            const struct machine *machine, int64_t microbatches)
{
    struct plan_request shorter = plan_shorten(request, microbatches);
    int64_t             number  = stage_to_look_at(bound->stages, request->mesh.size[AXIS_PP] - 1),
            more                = request->train.accumulation - microbatches;
    struct plan      plan;
    struct gemm_memo gemms   = {0};
    struct machine   copy    = *machine;
    size_t           actions = (size_t)(SCHEDULE_PASSES * microbatches * request->mesh.vp);
    copy.gemms               = &gemms;
    shorter.is_unplaced      = true;
    *stage                   = (struct stage){.seconds = memory_allocate((size_t)(microbatches + 1) * sizeof(double)),
                                              .actions = memory_allocate(actions * sizeof(*stage->actions))};
    status result            = plan_build_stage(&plan, &shorter, number);
    if (!failed(&result)) {
        time_stage(stage, &plan, &copy, more);
        // If two microbatches interleave, or weight gradients are delayed, other work fills the waits of a pass. Then
        // times of single passes give no lower bound.
        if (!request->train.overlap_microbatches && !request->mesh.delays_weights) {
            add_passes(bound, stage, &plan, number);
        }
        stage->bytes = device_bytes(&plan, machine, more);
    }
    double minimum = microbatches > 2 ? INFINITY : 0.0;    // minimum of the microbatches between the first and the last
    for (int64_t m = 1; m < microbatches - 1; m++) {
        minimum = fmin(minimum, stage->seconds[m + 1]);
    }
    stage->all += (double)more * minimum;
    stage->last_actions += stage->last_actions > 0.0 ? (double)more * minimum : 0.0;
    free(stage->seconds);
    free(stage->actions);
    plan_free(&plan);
    return result;
}

int64_t sweep_enough_microbatches(const struct plan_request *request, bool is_last)
{
    const struct mesh *mesh   = &request->mesh;
    int64_t            stages = mesh->size[AXIS_PP], all = request->train.accumulation;
    bool               overlaps = request->train.overlap_microbatches != 0, is_interleaved = mesh->vp > 1 || overlaps;
    int64_t            group = is_interleaved ? stages : 1, enough = stages * (is_interleaved ? 2 : 1) + 2 + overlaps;
    enough += is_last && stages > 1 ? request->parallel.deferred_head_gradients : 0;
    return all <= enough ? all : enough + (all - enough) % group;
}

// Returns the bytes of gradients and optimizer state of an average rank, without the weights.
int64_t sweep_state_bytes(const struct plan_request *request)
{
    const struct precision *precision = &request->precision;
    const struct mesh      *mesh      = &request->mesh;
    int64_t                 parts     = mesh_group_size(mesh, MESH_ALL_AXES & ~mesh_replica_axes(mesh, true));
    int64_t shared       = request->parallel.zero > 0 ? mesh_group_size(mesh, mesh_replica_axes(mesh, false)) : 1;
    int64_t own          = layers_trained_parameters(&request->model) / parts;
    int64_t master       = precision->has_master ? format_bytes(FORMAT_F32, own) : 0;
    int64_t moments      = request->train.optimizer == OPTIMIZER_MUON ? 1 : 2;    // with Muon, at least 1 per weight
    int64_t state        = moments * format_bytes(precision->moment, own) + master;
    bool    keeps_slices = request->parallel.gradient_reduce == GRADIENT_REDUCE_MICROBATCH;
    return format_bytes(precision->gradient, own) / (keeps_slices ? shared : 1) + state / shared;
}

struct schedule_shape sweep_shape(const struct plan_request *request)
{
    return (struct schedule_shape){.stages       = request->mesh.size[AXIS_PP],
                                   .chunks       = request->mesh.vp,
                                   .microbatches = request->train.accumulation,
                                   .kind         = SCHEDULE_1F1B};
}

void sweep_open_bound(struct sweep_bound *bound, const struct plan_request *request)
{
    size_t stages = (size_t)request->mesh.size[AXIS_PP], chunks = stages * (size_t)request->mesh.vp;
    bound->actions = memory_allocate(2 * SCHEDULE_PASSES * chunks * sizeof(*bound->actions));
    bound->rest    = memory_allocate(stages * sizeof(*bound->rest));
}

void sweep_free_bound(struct sweep_bound *bound)
{
    free(bound->actions);
    free(bound->rest);
    bound->actions = NULL;
    bound->rest    = NULL;
}

static void raise_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine,
                        double seconds)
{
    bound->seconds = fmax(bound->seconds, predict_whole_seconds(request, machine, seconds));
}

void sweep_walk_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine)
{
    struct schedule_shape shape = sweep_shape(request);
    raise_bound(bound, request, machine, walk_actions(&shape, bound->actions, bound->rest));
}

// Examines the next pipeline stage. A stage starts after the first microbatch has passed all earlier stages, and ends
// its last backward pass before they end theirs. Stages 0, 1 and pp - 1 are examined with enough microbatches to fill
// the pipeline. Stages 2 to pp - 2 have at most the layers of stage 1, and at most its microbatches in flight. So only
// their pass times are needed, and three microbatches suffice.
status sweep_refine_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine)
{
    int64_t               last = request->mesh.size[AXIS_PP] - 1, all = request->train.accumulation;
    int64_t               s          = stage_to_look_at(bound->stages, last);
    bool                  is_typical = s > 1 && s < last;
    int64_t               enough     = is_typical ? (all < 3 ? all : 3) : sweep_enough_microbatches(request, s == last);
    double                forward = 0.0, backward = 0.0;
    struct schedule_shape shape = sweep_shape(request);
    struct stage          stage;
    TRY(look_at_stage(&stage, bound, request, machine, enough));
    struct schedule_action there = {.pass = SCHEDULE_FORWARD, .microbatch = 0},
                           back  = {.pass = SCHEDULE_BACKWARD, .microbatch = all - 1};
    for (int64_t before = 0; before < s; before++) {
        forward += bound->actions[sweep_place_action(&shape, &there, before)].through;
        backward += bound->actions[sweep_place_action(&shape, &back, before)].through;
    }
    if (!is_typical) {
        raise_bound(bound, request, machine,
                    fmax(stage.loaded, forward + fmax(stage.all, stage.last_actions + backward)));
    }
    bound->stages++;
    bound->bytes = stage.bytes > bound->bytes ? stage.bytes : bound->bytes;
    sweep_walk_bound(bound, request, machine);
    return OK;
}

status sweep_find_bound(struct sweep_bound *bound, const struct plan_request *request, const struct machine *machine)
{
    int64_t stages = request->mesh.size[AXIS_PP];
    status  result = OK;
    *bound         = (struct sweep_bound){.bytes = sweep_state_bytes(request)};
    sweep_open_bound(bound, request);
    while (bound->stages < stages && hardware_holds(machine->hardware, bound->bytes) && !failed(&result)) {
        result = sweep_refine_bound(bound, request, machine);
    }
    sweep_free_bound(bound);
    return result;
}
