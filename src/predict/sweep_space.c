// SPDX-License-Identifier: MIT
// Enumerates the layouts of a sweep: the combinations of candidate values that is_sensible and job_check accept.
#include "gswbench/sweep.h"

#include <stddef.h>

#include "gswbench/arena.h"

// Dimensions of the search in addition to the axes of the mesh.
enum { VP = AXIS_COUNT, ETP, ZERO, MICRO_BATCH, RECOMPUTE, DIMENSIONS };
enum { VALUES_MAX = 256 };    // numbers up to 2^20, the maximum of --ranks, have at most 240 divisors

// An option and its candidate values in ascending order, including the value of the configuration.
struct dimension {
    size_t  field;    // offset of the option in struct config
    int64_t values[VALUES_MAX];
    int     count, chosen;    // chosen: index of the current value
};

struct space {
    struct config     config;    // the current combination
    const struct job *job;
    struct dimension  dimensions[DIMENSIONS];
};

static int64_t *field_of(struct space *space, int dimension)
{
    return (int64_t *)(void *)((char *)&space->config + space->dimensions[dimension].field);
}

static int64_t own_value(const struct space *space, int dimension)
{
    return *(const int64_t *)(const void *)((const char *)&space->job->config + space->dimensions[dimension].field);
}

static void add_value(struct dimension *dimension, int64_t value)
{
    int place = dimension->count;
    while (place > 0 && dimension->values[place - 1] > value) {
        place--;
    }
    bool is_known = place > 0 && dimension->values[place - 1] == value;
    if (is_known || dimension->count == VALUES_MAX) {
        return;
    }
    for (int i = dimension->count++; i > place; i--) {
        dimension->values[i] = dimension->values[i - 1];
    }
    dimension->values[place] = value;
}

static void add_divisors(struct dimension *dimension, int64_t number, int64_t maximum)
{
    for (int64_t divisor = 1; divisor <= number && divisor <= maximum; divisor++) {
        if (number % divisor == 0) {
            add_value(dimension, divisor);
        }
    }
}

// Returns the number of layers that the pipeline divides among its chunks; embedding and head may count as layers.
static int64_t assigned_layers(const struct config *config)
{
    return config->model.layers + (config->parallel.layers_per_chunk_embedding ? 2 : 0);
}

// Adds the candidate sizes of an axis. The axis that absorbs the remaining ranks gets a placeholder, which spread()
// replaces.
static void add_axis(struct dimension *dimension, enum axis axis, const struct job *job)
{
    const struct config *config = &job->config;
    int64_t              world = job->request.mesh.world, experts = config->model.experts;
    dimension->field = offsetof(struct config, parallel) + axis_rows[axis].field;
    switch (axis_rows[axis].values) {
    case AXIS_OVER_RANKS:
        add_divisors(dimension, world, world);
        break;
    case AXIS_OVER_NODE:
        add_divisors(dimension, world, hardware_domain(&config->hardware, world));
        break;
    case AXIS_OVER_LAYERS:
        add_divisors(dimension, world, assigned_layers(config));
        break;
    case AXIS_OVER_EXPERTS:
        add_divisors(dimension, experts > 0 ? experts : 1, world);
        break;
    case AXIS_REST:
        add_value(dimension, 1);
        break;
    }
}

static bool takes_rest(int dimension)
{
    return dimension < AXIS_COUNT && axis_rows[dimension].values == AXIS_REST;
}

static void init(struct space *space, const struct job *job)
{
    struct dimension *dimensions = space->dimensions;
    int64_t           layers     = assigned_layers(&job->config);
    space->job                   = job;
    space->config                = job->config;
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        add_axis(&dimensions[axis], (enum axis)axis, job);
    }
    dimensions[VP].field          = offsetof(struct config, parallel.vp);
    dimensions[ETP].field         = offsetof(struct config, parallel.etp);
    dimensions[ZERO].field        = offsetof(struct config, parallel.zero);
    dimensions[MICRO_BATCH].field = offsetof(struct config, train.micro_batch);
    dimensions[RECOMPUTE].field   = offsetof(struct config, train.recompute);
    add_divisors(&dimensions[VP], layers, layers);
    add_value(&dimensions[ETP], 0);
    if (job->config.model.experts > 0) {
        add_value(&dimensions[ETP], 1);
    }
    add_divisors(&dimensions[ZERO], 1, 1);
    add_value(&dimensions[ZERO], 0);
    add_divisors(&dimensions[MICRO_BATCH], 8, 8);
    add_value(&dimensions[RECOMPUTE], RECOMPUTE_NONE);
    add_value(&dimensions[RECOMPUTE], RECOMPUTE_ATTENTION);
    add_value(&dimensions[RECOMPUTE], RECOMPUTE_FULL);
    for (int i = 0; i < DIMENSIONS; i++) {
        if (!takes_rest(i) && own_value(space, i) > 0) {    // own_value is 0 if micro_batch is auto
            add_value(&dimensions[i], own_value(space, i));
        }
        *field_of(space, i) = dimensions[i].values[0];
    }
}

// Advances to the next combination of values; the last dimension changes fastest. Returns false at the end.
static bool advance(struct space *space)
{
    for (int i = DIMENSIONS - 1; i >= 0; i--) {
        struct dimension *dimension = &space->dimensions[i];
        dimension->chosen           = (dimension->chosen + 1) % dimension->count;
        *field_of(space, i)         = dimension->values[dimension->chosen];
        if (dimension->chosen > 0) {
            return true;
        }
    }
    return false;
}

static bool is_own(struct space *space)
{
    bool equals = space->job->has_layout;
    for (int i = 0; i < DIMENSIONS; i++) {
        equals &= takes_rest(i) || *field_of(space, i) == own_value(space, i);
    }
    return equals;
}

// Sizes the axis that absorbs the remaining ranks. Returns false if the other axes do not divide the world size.
static bool spread(struct parallel_config *axes, int64_t world)
{
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (takes_rest(axis)) {
            int64_t taken = mesh_asked_ranks(axes, MESH_ALL_AXES & ~(1u << axis));
            mesh_ask(axes, (enum axis)axis, world / taken);
            return world % taken == 0;
        }
    }
    return false;
}

static bool has_shards(const struct parallel_config *axes)
{
    uint32_t shards = axis_sharing(AXIS_SHARES_WEIGHTS) | (axes->shard_over_cp ? 1u << AXIS_CP : 0);
    return mesh_asked_ranks(axes, shards) > 1;
}

// Rejects chunks with unequal numbers of layers, and values of zero and etp that have no effect. This check runs before
// job_check because it is cheaper and rejects most combinations.
static bool is_sensible(const struct config *config)
{
    const struct parallel_config *axes   = &config->parallel;
    int64_t                       chunks = axes->pp * axes->vp;
    if (axes->vp > 1 && (axes->pp == 1 || assigned_layers(config) % chunks != 0)) {
        return false;
    }
    if (axes->etp == 1 && axes->tp == 1) {
        return false;
    }
    uint32_t replicas = axis_sharing(AXIS_SHARES_TOKENS) & ~axis_sharing(AXIS_SHARES_WEIGHTS);
    return axes->zero == 0 || (!has_shards(axes) && mesh_asked_ranks(axes, replicas) > 1);
}

void sweep_list(struct sweep_list *list, const struct job *job)
{
    struct space space = {.dimensions = {{.count = 0}}};
    *list              = (struct sweep_list){.layouts = NULL};
    init(&space, job);
    do {
        struct parallel_config *axes = &space.config.parallel;
        if (!spread(axes, job->request.mesh.world) || (!is_own(&space) && !is_sensible(&space.config))) {
            continue;
        }
        // Deferred head gradients need an unsharded head.
        axes->deferred_head_gradients   = has_shards(axes) ? 0 : job->config.parallel.deferred_head_gradients;
        space.config.train.accumulation = 0;
        struct plan_request layout;
        status              check = job_check(&layout, &space.config);
        if (failed(&check)) {
            continue;
        }
        *LIST_ADD_DOUBLING(list->layouts, list->count) = layout;
    } while (advance(&space));
}
