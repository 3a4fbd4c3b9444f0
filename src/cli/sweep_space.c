// SPDX-License-Identifier: MIT
// The layouts of a job that a sweep goes through: every combination of the values below that config_check accepts.
#include <stddef.h>
#include <stdlib.h>

#include "sweep.h"

enum { VALUES_MAX = 64 };

// An option and the values that it takes, in rising order, with the configuration's own where it is none of them.
struct dimension {
    size_t  field;    // in struct config
    int64_t values[VALUES_MAX];
    int     count, chosen;
};

enum { TP, CP, PP, VP, FSDP, EP, ZERO, MICRO_BATCH, RECOMPUTE, DIMENSIONS };

struct space {
    struct config    config;    // of the combination that is looked at
    struct dimension dimensions[DIMENSIONS];
};

static int64_t *field_of(struct space *space, int dimension)
{
    return (int64_t *)(void *)((char *)&space->config + space->dimensions[dimension].field);
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

static void add_divisors(struct dimension *dimension, int64_t number, int64_t most)
{
    for (int64_t divisor = 1; divisor <= number && divisor <= most; divisor++) {
        if (number % divisor == 0) {
            add_value(dimension, divisor);
        }
    }
}

// What the pipeline deals out to its chunks.
static int64_t dealt_layers(const struct config *config)
{
    return config->model.layers + (config->parallel.layers_per_chunk_embedding ? 2 : 0);
}

static void init(struct space *space, const struct job *job)
{
    static const size_t fields[DIMENSIONS] = {
        [TP]          = offsetof(struct config, parallel.tp),
        [CP]          = offsetof(struct config, parallel.cp),
        [PP]          = offsetof(struct config, parallel.pp),
        [VP]          = offsetof(struct config, parallel.vp),
        [FSDP]        = offsetof(struct config, parallel.fsdp),
        [EP]          = offsetof(struct config, parallel.ep),
        [ZERO]        = offsetof(struct config, parallel.zero),
        [MICRO_BATCH] = offsetof(struct config, train.micro_batch),
        [RECOMPUTE]   = offsetof(struct config, train.recompute),
    };
    struct dimension    *dimensions = space->dimensions;
    const struct config *config     = &job->config;
    int64_t              world = job->mesh.world, node = config->hardware.gpus_per_node;
    space->config = *config;
    add_divisors(&dimensions[TP], world, node);
    add_divisors(&dimensions[CP], world, node);
    add_divisors(&dimensions[PP], world, dealt_layers(config));
    add_divisors(&dimensions[VP], dealt_layers(config), dealt_layers(config));
    add_divisors(&dimensions[FSDP], world, world);
    add_divisors(&dimensions[EP], config->model.experts > 0 ? config->model.experts : 1, world);
    add_divisors(&dimensions[ZERO], 1, 1);
    add_value(&dimensions[ZERO], 0);
    add_divisors(&dimensions[MICRO_BATCH], 8, 8);
    add_value(&dimensions[RECOMPUTE], RECOMPUTE_NONE);
    add_value(&dimensions[RECOMPUTE], RECOMPUTE_ATTENTION);
    add_value(&dimensions[RECOMPUTE], RECOMPUTE_FULL);
    for (int i = 0; i < DIMENSIONS; i++) {
        dimensions[i].field = fields[i];
        add_value(&dimensions[i], *field_of(space, i));
        *field_of(space, i) = dimensions[i].values[0];
    }
}

// The next combination, the last dimension fastest; false when there is no other.
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

static bool is_own(const struct config *config, const struct job *job)
{
    const struct parallel_config *one = &config->parallel, *other = &job->config.parallel;
    return one->tp == other->tp && one->cp == other->cp && one->pp == other->pp && one->vp == other->vp &&
           one->fsdp == other->fsdp && one->ep == other->ep && one->zero == other->zero &&
           config->train.micro_batch == job->config.train.micro_batch &&
           config->train.recompute == job->config.train.recompute;
}

// Whether the combination is worth a look: chunks are even, and zero makes a difference. Cheaper than config_check, and
// most combinations end here.
static bool is_sensible(const struct config *config, int64_t world)
{
    const struct parallel_config *axes   = &config->parallel;
    int64_t                       chunks = axes->pp * axes->vp, taken = axes->tp * axes->cp * axes->pp * axes->fsdp;
    if (world % taken != 0 || (axes->vp > 1 && (axes->pp == 1 || dealt_layers(config) % chunks != 0))) {
        return false;
    }
    return axes->zero == 0 || (axes->fsdp == 1 && axes->cp * (world / taken) > 1);
}

static bool is_legal(struct config *config)
{
    config->train.accumulation = 0;
    status check               = config_check(config);
    return !failed(&check);
}

void sweep_list(struct sweep_list *list, const struct job *job)
{
    struct space space = {.dimensions = {{.count = 0}}};
    int64_t      room  = 0;
    *list              = (struct sweep_list){.layouts = NULL};
    init(&space, job);
    do {
        struct parallel_config *axes = &space.config.parallel;
        if (!is_own(&space.config, job) && !is_sensible(&space.config, job->mesh.world)) {
            continue;
        }
        // No shards of a head whose gradients wait; where there are shards, none waits.
        axes->deferred_head_gradients = axes->fsdp > 1 ? 0 : job->config.parallel.deferred_head_gradients;
        axes->dp                      = job->mesh.world / (axes->tp * axes->cp * axes->pp * axes->fsdp);
        if (!is_legal(&space.config)) {
            continue;
        }
        if (list->count == room) {
            room          = room * 2 + 256;
            list->layouts = memory_resize(list->layouts, (size_t)room * sizeof(*list->layouts));
        }
        struct sweep_layout *layout = &list->layouts[list->count];
        *layout = (struct sweep_layout){.parallel = space.config.parallel, .train = space.config.train};
        train_resolve(&layout->train, axes->dp * axes->fsdp);
        list->count++;
    } while (advance(&space));
}
