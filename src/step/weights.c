// SPDX-License-Identifier: MIT
// Initial weights and the rope table, drawn or computed by global element index.
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gswbench/arena.h"
#include "gswbench/data.h"
#include "gswbench/random.h"

struct draw {
    const struct weight_part *part;
    uint64_t                  key, first;
    int64_t                   count;
    float                    *values;
};

static void *draw_values(void *argument)
{
    const struct draw *draw      = argument;
    float              deviation = draw->part->deviation;
    for (int64_t i = 0; i < draw->count; i++) {
        draw->values[i] = deviation * random_normal(draw->key, draw->first + (uint64_t)i);
    }
    return NULL;
}

// A value costs about 10 ns, so that large models need all cores; small parts are not worth a thread.
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
    for (int64_t i = started; i < count; i++) {    // what no thread could be had for
        draw_values(&slices[i]);
    }
}

void data_weight_values(const struct weight_part *part, uint64_t seed, int64_t first, int64_t count, float *values)
{
    int64_t left = part->rows * part->columns - first;    // the rest is padding
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

// Rounds in place: element i's bf16 never lies beyond element i's float.
static void narrow(float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        bf16 rounded = bf16_from_float(values[i]);
        memcpy((char *)values + i * (int64_t)sizeof(rounded), &rounded, sizeof(rounded));
    }
}

// Elements begin .. end - 1 of a part as it lies on this rank: whole rows follow one another in the whole tensor too, a
// share of the columns does not.
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

// Values first .. first + count - 1 of a weight, row-major with its padding: those of the parts that lie there.
static void weight_values(const struct weight *weight, uint64_t seed, int64_t first, int64_t count, float *values)
{
    for (int i = 0; i < weight->part_count; i++) {
        const struct weight_part *part  = &weight->part[i];
        int64_t                   begin = part->offset > first ? part->offset : first;
        int64_t                   end   = part->offset + part->local_rows * part->local_columns;
        end                             = end < first + count ? end : first + count;
        if (begin < end) {
            part_values(part, seed, begin - part->offset, end - part->offset, values + begin - first);
        }
    }
}

// The values of a slice of a unit; zero between weights. The caller frees them.
static float *slice_values(const struct plan *plan, const struct plan_unit *unit, struct plan_slice slice,
                           uint64_t seed)
{
    float *values = memory_allocate((size_t)slice.elements * sizeof(*values));
    for (int32_t w = unit->first_weight; w < unit->first_weight + unit->weight_count; w++) {
        const struct weight *weight = &plan->weights[w];
        int64_t              begin  = weight->first > slice.first ? weight->first : slice.first;
        int64_t              end    = weight->first + weight->rows * weight->columns;
        end                         = end < slice.first + slice.elements ? end : slice.first + slice.elements;
        if (begin < end) {
            weight_values(weight, seed, begin - weight->first, end - begin, values + begin - slice.first);
        }
    }
    return values;
}

static void initialise_unit(struct step *step, const struct plan *plan, const struct plan_unit *unit, uint64_t seed)
{
    float *values = slice_values(plan, unit, unit->kept, seed);
    if (unit->is_narrow) {
        memset(values, 0, (size_t)unit->kept.elements);    // made of the masters
    } else if (plan->tensors[unit->weight].format == FORMAT_BF16) {
        narrow(values, unit->kept.elements);
    }
    step_write(step, unit->weight, values);
    free(values);

    if (unit->master >= 0) {
        values = slice_values(plan, unit, unit->updated, seed);
        step_write(step, unit->master, values);
        free(values);
    }
    values = memory_allocate((size_t)unit->updated.elements * sizeof(*values));
    step_write(step, unit->first_moment, values);
    step_write(step, unit->second_moment, values);
    free(values);
}

// Radians a position for pair i of rotary / 2. Scaling is Llama 3.1's: long wavelengths are stretched by the factor,
// short ones kept, those between blended.
static double rope_frequency(const struct model_config *model, int64_t i, int64_t pairs)
{
    const double original_context = 8192, low = 1, high = 4, pi = 3.14159265358979323846;

    double frequency = pow(model->rope_theta, -(double)i / (double)pairs);
    double turns     = original_context * frequency / (2 * pi);    // within the original context
    if (model->rope_scaling == 1 || turns > high) {
        return frequency;
    }
    if (turns < low) {
        return frequency / model->rope_scaling;
    }
    double blend = (turns - low) / (high - low);
    return frequency * (blend + (1 - blend) / model->rope_scaling);
}

static void fill(struct step *step, const struct plan *plan, int32_t tensor, float value)
{
    int64_t elements = plan->tensors[tensor].elements;
    float  *values   = memory_allocate((size_t)elements * sizeof(*values));
    for (int64_t i = 0; i < elements; i++) {
        values[i] = value;
    }
    step_write(step, tensor, values);
    free(values);
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
    fill(step, plan, plan->clip_scale, NAN);    // AdamW finds the magnitudes of weights, and leaves them as they are
    if (scaling->history >= 0) {
        fill(step, plan, scaling->history, 0);
    }
}

static void initialise_biases(struct step *step, const struct plan *plan)
{
    if (plan->router_bias >= 0) {
        fill(step, plan, plan->router_bias, 0);
    }
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

// Rows of the residual stream, which the ranks of tp may share out.
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
    initialise_biases(step, plan);
    initialise_rope(step, plan);
    initialise_positions(step, plan);
}

void data_initialise(struct step *step, const struct plan *plan, uint64_t seed)
{
    for (int i = 0; i < plan->unit_count; i++) {
        initialise_unit(step, plan, &plan->units[i], seed);
    }
    data_initialise_state(step, plan);
    step_make_weights(step);
}
