// SPDX-License-Identifier: MIT
// Generates synthetic tokens, initial weights, the RoPE table and other initial state. A random token depends only on
// its sample and position, so any rank can generate any sample. A weight depends on its index in the full tensor, so
// shards fit together in every layout.
#include "gswbench/step.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/fatal.h"
#include "gswbench/fp4.h"
#include "gswbench/number.h"

// Numbers of the random streams of data. Weights have streams with lower numbers (src/build/weights.c).
static const uint64_t token_stream      = UINT64_MAX;
static const uint64_t transition_stream = UINT64_MAX - 1;
static const uint64_t rounding_stream   = UINT64_MAX - 3;

enum { MARKOV_ALPHABET = 256, MARKOV_SUCCESSORS = 4, MARKOV_EIGHTHS = 8 };

// Markov data has only the tokens 0 .. alphabet - 1. A token has four different successors, one from each quarter of
// the alphabet, with probabilities 1/2, 1/4, 1/8 and 1/8. So the entropy is exactly 1.75 bits per token.
static int32_t markov_successor(uint64_t key, int64_t alphabet, int32_t token, int successor)
{
    int64_t begin = successor * alphabet / MARKOV_SUCCESSORS;
    int64_t end   = (successor + 1) * alphabet / MARKOV_SUCCESSORS;
    return (int32_t)(begin + random_below(key, (uint64_t)token, (uint64_t)successor, (uint32_t)(end - begin)));
}

void data_sample(const struct data_source *source, int64_t sample, int32_t *tokens)
{
    static const uint8_t chosen[MARKOV_EIGHTHS] = {0, 0, 0, 0, 1, 1, 2, 3};    // probabilities 1/2, 1/4, 1/8, 1/8

    bool     is_uniform = source->kind == DATA_UNIFORM;
    uint64_t key        = random_key(source->seed, token_stream);
    uint64_t transition = random_key(source->seed, transition_stream);
    int64_t  alphabet   = is_uniform || source->vocab < MARKOV_ALPHABET ? source->vocab : MARKOV_ALPHABET;
    for (int64_t i = 0; i <= source->sequence; i++) {
        if (is_uniform || i == 0) {
            tokens[i] = (int32_t)random_below(key, (uint64_t)sample, (uint64_t)i, (uint32_t)alphabet);
        } else {
            uint32_t eighth = random_below(key, (uint64_t)sample, (uint64_t)i, MARKOV_EIGHTHS);
            tokens[i]       = markov_successor(transition, alphabet, tokens[i - 1], chosen[eighth]);
        }
    }
}

static void fill_hyper(struct step *step, const struct plan *plan, uint64_t seed, int64_t step_index)
{
    const struct train_config *train = &plan->train;
    float                      hyper[HYPER_COUNT];
    hyper[HYPER_LEARNING_RATE] = (float)train->learning_rate;
    hyper[HYPER_BETA1]         = (float)train->beta1;
    hyper[HYPER_BETA2]         = (float)train->beta2;
    hyper[HYPER_EPSILON]       = (float)train->epsilon;
    hyper[HYPER_DECAY]         = (float)train->weight_decay;
    hyper[HYPER_CORRECTION1]   = (float)(1 - pow(train->beta1, (double)(step_index + 1)));
    hyper[HYPER_CORRECTION2]   = (float)(1 - pow(train->beta2, (double)(step_index + 1)));
    // The key of stochastic rounding is the same on all tp ranks, because these may quantize equal gradients and must
    // round them equally.
    int64_t  place = mesh_group_index(&plan->mesh, plan->rank, MESH_ALL_AXES & ~(1u << AXIS_TP));
    uint64_t key   = random_key(random_key(seed, rounding_stream), (uint64_t)(step_index * plan->mesh.world + place));
    hyper[HYPER_KEY_LOW]  = (float)(key & ((1u << FP4_KEY_BITS) - 1));
    hyper[HYPER_KEY_HIGH] = (float)(key >> FP4_KEY_BITS & ((1u << FP4_KEY_BITS) - 1));
    step_write(step, plan->hyper, hyper);
}

void data_fill(struct step *step, const struct plan *plan, enum data_kind kind, uint64_t seed, int64_t step_index)
{
    uint32_t                 axes        = axis_sharing(AXIS_SHARES_SEQUENCES);
    int64_t                  replicas    = mesh_group_size(&plan->mesh, axes);
    int64_t                  replica     = mesh_group_index(&plan->mesh, plan->rank, axes);
    int64_t                  sequence    = plan->train.sequence;
    int64_t                  micro_batch = plan->train.micro_batch;
    int64_t                  local       = sequence / plan->mesh.size[AXIS_CP];
    size_t                   bytes       = (size_t)(micro_batch * local) * sizeof(int32_t);
    int64_t                  further     = plan->model.predicted_tokens;
    const struct data_source source      = {kind, seed, plan->model.vocab, sequence + further};
    int32_t                 *sample      = memory_allocate((size_t)(sequence + further + 1) * sizeof(*sample));
    int32_t                 *ids         = memory_allocate((size_t)(further + 2) * bytes);

    for (int64_t m = 0; m < plan->train.accumulation; m++) {
        int64_t place = (m * replicas + replica) * micro_batch;
        for (int64_t row = 0; row < micro_batch; row++) {
            int64_t number = step_index * plan->train.global_batch + place + row;
            data_sample(&source, number, sample);
            for (int64_t i = 0; i < (further + 2) * local; i++) {
                int64_t ahead                                        = i / local;
                ids[(ahead * micro_batch + row) * local + i % local] = sample[plan_position(plan, i % local) + ahead];
            }
        }
        for (int64_t ahead = 0; ahead <= further + 1; ahead++) {
            int32_t to = ahead == 0 ? plan->tokens[m] : plan->targets[(ahead - 1) * plan->train.accumulation + m];
            if (to >= 0) {
                step_write(step, to, ids + ahead * micro_batch * local);
            }
        }
    }
    free(sample);
    free(ids);
    fill_hyper(step, plan, seed, step_index);
}

struct draw {
    const struct weight_part *part;
    uint64_t                  key, first;
    int64_t                   count;
    float                    *values;
};

static void *draw_values(void *argument)
{
    const struct draw *draw      = argument;
    float              deviation = draw->part->deviation, constant = draw->part->constant;
    for (int64_t i = 0; i < draw->count; i++) {
        draw->values[i] = constant + deviation * random_normal(draw->key, draw->first + (uint64_t)i);
    }
    return NULL;
}

// Drawing a normal number takes about 10 ns, so large models use all cores. Small parts are not worth a thread.
static void draw_threaded(const struct draw *draw)
{
    enum { THREADS_MAX = 64, COUNT_MIN = 1 << 16 };

    pthread_t   threads[THREADS_MAX];
    struct draw slices[THREADS_MAX];
    int64_t     cores    = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t     wanted   = cores < draw->count / COUNT_MIN ? cores : draw->count / COUNT_MIN;
    int64_t     count    = wanted < 1 ? 1 : wanted > THREADS_MAX ? THREADS_MAX : wanted;
    int64_t     per_each = draw->count / count;
    for (int64_t i = 0; i < count; i++) {
        int64_t begin    = i * per_each;
        slices[i]        = *draw;
        slices[i].first  = draw->first + (uint64_t)begin;
        slices[i].count  = i == count - 1 ? draw->count - begin : per_each;
        slices[i].values = draw->values + begin;
    }
    int64_t started = 1;
    while (started < count && pthread_create(&threads[started], NULL, draw_values, &slices[started]) == 0) {
        started++;
    }
    draw_values(&slices[0]);
    for (int64_t i = 1; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int64_t i = started; i < count; i++) {    // slices whose thread could not be created
        draw_values(&slices[i]);
    }
}

void data_weight_values(const struct weight_part *part, uint64_t seed, int64_t first, int64_t count, float *values)
{
    int64_t left = part->rows * part->columns - first;    // elements from `first` to the padding
    int64_t real = left < 0 ? 0 : left < count ? left : count;
    if (part->deviation != 0) {
        uint64_t key = random_key(seed, (uint64_t)part->stream);
        draw_threaded(&(struct draw){part, key, (uint64_t)first, real, values});
    } else {
        for (int64_t i = 0; i < real; i++) {
            values[i] = part->constant;
        }
    }
    memset(values + real, 0, (size_t)(count - real) * sizeof(*values));
}

// Rounds to bf16 in place. This is safe because bf16 element i is written at or before the place of float element i.
static void round_to_bf16(float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        bf16 rounded = bf16_from_float(values[i]);
        memcpy((char *)values + i * (int64_t)sizeof(rounded), &rounded, sizeof(rounded));
    }
}

// Draws elements [begin, end) of this rank's shard. A shard of whole rows is contiguous in the full tensor and drawn in
// one piece; a shard of columns is drawn row by row.
static void part_values(const struct weight_part *part, uint64_t seed, int64_t begin, int64_t end, float *values)
{
    bool    is_whole = part->local_columns == part->columns;
    int64_t run      = is_whole ? end - begin : part->local_columns;
    while (begin < end) {
        int64_t row = begin / part->local_columns, column = begin % part->local_columns;
        int64_t stop  = is_whole ? end : (row + 1) * run;
        int64_t count = (stop < end ? stop : end) - begin;
        int64_t first = (part->first_row + row) * part->columns + part->first_column + column;
        data_weight_values(part, seed, first, count, values);
        begin += count;
        values += count;
    }
}

// Computes elements [first, first + count) of a weight, row-major with padding.
static void weight_values(const struct weight *weight, uint64_t seed, int64_t first, int64_t count, float *values)
{
    for (int i = 0; i < weight->part_count; i++) {
        const struct weight_part *part  = &weight->part[i];
        int64_t                   begin = number_max(part->offset, first);
        int64_t end = number_min(part->offset + part->local_rows * part->local_columns, first + count);
        if (begin < end) {
            part_values(part, seed, begin - part->offset, end - part->offset, values + begin - first);
        }
    }
}

// Returns the values of a slice of an FSDP unit, with zeros between weights. The caller frees them.
static float *slice_values(const struct plan *plan, const struct plan_unit *unit, struct plan_slice slice,
                           uint64_t seed)
{
    float *values = memory_allocate((size_t)slice.elements * sizeof(*values));
    for (int32_t w = unit->first_weight; w < unit->first_weight + unit->weight_count; w++) {
        const struct weight *weight = &plan->weights[w];
        int64_t              begin  = number_max(weight->first, slice.first);
        int64_t end = number_min(weight->first + weight->rows * weight->columns, slice.first + slice.elements);
        if (begin < end) {
            weight_values(weight, seed, begin - weight->first, end - begin, values + begin - slice.first);
        }
    }
    return values;
}

static status read_drawn(void *context, const struct weight *weight, float *values)
{
    const uint64_t *seed = context;
    weight_values(weight, *seed, 0, weight->rows * weight->columns, values);
    return OK;
}

// Sets all elements of a tensor, if there is one. Values other than zero are for fp32 tensors.
static void fill(struct step *step, const struct plan *plan, int32_t tensor, float value)
{
    if (tensor < 0) {
        return;
    }
    int64_t elements = plan->tensors[tensor].elements;
    float  *values   = memory_allocate((size_t)elements * sizeof(*values));
    for (int64_t i = 0; i < elements; i++) {
        values[i] = value;
    }
    step_write(step, tensor, values);
    free(values);
}

static void initialise_unit(struct step *step, const struct plan *plan, const struct plan_unit *unit, uint64_t seed)
{
    if (unit->is_low_precision && unit->is_frozen) {
        struct weight_reader reader = {read_drawn, &seed};
        status               stored = data_store_unit(step, plan, unit, &reader);
        if (failed(&stored)) {
            FATAL(stored.exit_code, "%s", stored.text);
        }
        return;
    }
    float *values = slice_values(plan, unit, unit->kept, seed);
    if (unit->is_low_precision) {
        memset(values, 0, (size_t)unit->kept.elements);    // step_make_weights quantizes them from the master weights
    } else if (plan->tensors[unit->weight].format == FORMAT_BF16) {
        round_to_bf16(values, unit->kept.elements);
    }
    step_write(step, unit->weight, values);
    free(values);

    if (unit->master >= 0) {
        values = slice_values(plan, unit, unit->updated, seed);
        step_write(step, unit->master, values);
        free(values);
    }
    if (!unit->is_frozen) {
        fill(step, plan, unit->first_moment, 0);
        fill(step, plan, unit->second_moment, 0);
    }
}

// Returns the radians per position of rotary pair i, with Llama 3.1 scaling: frequencies with long wavelengths are
// divided by rope_scaling, those with short ones are kept, and the frequencies between are interpolated.
static double rope_frequency(const struct model_config *model, int64_t i, int64_t pairs)
{
    const double original_context = 8192, low = 1, high = 4, pi = 3.14159265358979323846;

    double frequency = pow(model->rope_theta, -(double)i / (double)pairs);
    double turns     = original_context * frequency / (2 * pi);    // full turns in the original context
    if (model->rope_scaling == 1 || turns > high) {
        return frequency;
    }
    if (turns < low) {
        return frequency / model->rope_scaling;
    }
    double blend = (turns - low) / (high - low);
    return frequency * (blend + (1 - blend) / model->rope_scaling);
}

static void initialise_scaling(struct step *step, const struct plan *plan)
{
    const struct plan_scaling *scaling = &plan->scaling;
    if (scaling->scales < 0) {
        return;
    }
    fill(step, plan, scaling->scales, 1);
    fill(step, plan, scaling->factors, 1);
    fill(step, plan, scaling->amaxes, 0);
    fill(step, plan, plan->clip_scale, NAN);    // with a NaN, AdamW records amaxes without an update
    fill(step, plan, scaling->history, 0);
}

static void initialise_rope(struct step *step, const struct plan *plan)
{
    const struct tensor *tensor    = &plan->tensors[plan->rope_table];    // [sequence, rotary / 2, 2]
    int64_t              positions = tensor->dim[0], pairs = tensor->dim[1];
    float               *table = memory_allocate((size_t)tensor->bytes);
    for (int64_t i = 0; i < pairs; i++) {
        double frequency = rope_frequency(&plan->model, i, pairs);
        for (int64_t row = 0; row < positions; row++) {
            double angle = (double)plan_position(plan, row) * frequency;
            float *pair  = table + (row * pairs + i) * 2;
            pair[0]      = (float)cos(angle);
            pair[1]      = (float)sin(angle);
        }
    }
    step_write(step, plan->rope_table, table);
    free(table);
}

// Fills in the positions of this rank's rows of the residual stream, which sequence parallelism shards over tp.
static void initialise_positions(struct step *step, const struct plan *plan)
{
    if (plan->positions < 0) {
        return;
    }
    const struct tensor *tensor = &plan->tensors[plan->positions];
    int64_t              rows = tensor->elements, sequence = plan->train.sequence / plan->mesh.size[AXIS_CP];
    int64_t              shares    = plan->train.micro_batch * sequence / rows;
    int64_t              first     = shares > 1 ? mesh_group_index(&plan->mesh, plan->rank, 1u << AXIS_TP) * rows : 0;
    int32_t             *positions = memory_allocate((size_t)tensor->bytes);
    for (int64_t row = 0; row < rows; row++) {
        positions[row] = (int32_t)plan_position(plan, (first + row) % sequence);
    }
    step_write(step, plan->positions, positions);
    free(positions);
}

void data_initialise_state(struct step *step, const struct plan *plan)
{
    initialise_scaling(step, plan);
    fill(step, plan, plan->router_bias, 0);
    initialise_rope(step, plan);
    initialise_positions(step, plan);
}

void data_initialise_adapters(struct step *step, const struct plan *plan, uint64_t seed)
{
    for (int i = 0; i < plan->unit_count && model_is_frozen(&plan->model); i++) {
        if (!plan->units[i].is_frozen) {
            initialise_unit(step, plan, &plan->units[i], seed);
        }
    }
}

void data_initialise(struct step *step, const struct plan *plan, uint64_t seed)
{
    for (int i = 0; i < plan->unit_count; i++) {
        initialise_unit(step, plan, &plan->units[i], seed);
    }
    data_initialise_state(step, plan);
    step_make_weights(step);
}
