// SPDX-License-Identifier: MIT
// Tests synthetic tokens and initial weights: known values, that tokens can be learned, and that values do not depend
// on the layout.
#include "gswbench/step.h"

#include <criterion/criterion.h>
#include <math.h>

#include "gswbench/random.h"
#include "meshes.h"

// Replaces the step by one that only stores the contents of tensors. The tested code never looks inside a step.
enum { TENSORS = 12, TENSOR_BYTES = 4096 };
struct step {
    int64_t bytes[TENSORS];    // bytes of each tensor of the plan
    char (*data)[TENSOR_BYTES];
};

void step_write(const struct step *step, int32_t tensor, const void *from)
{
    memcpy(step->data[tensor], from, (size_t)step->bytes[tensor]);
}

void step_make_weights(struct step *step)
{
    (void)step;
}

void step_read(const struct step *step, int32_t tensor, void *to)
{
    memcpy(to, step->data[tensor], (size_t)step->bytes[tensor]);
}

Test(data, samples_have_the_documented_tokens)
{
    static const struct {
        struct data_source source;
        int32_t            expected[16];    // source.sequence + 1 tokens
    } cases[] = {
        {{DATA_UNIFORM, 1, 32000, 7}, {16312, 25744, 17786, 7086, 20467, 1089, 30282, 14110}},
        {{DATA_MARKOV, 1, 32000, 15}, {130, 188, 91, 56, 114, 24, 208, 42, 56, 45, 227, 15, 31, 22, 115, 79}},
        {{DATA_MARKOV, 1, 7, 15}, {3, 3, 2, 0, 1, 0, 6, 0, 0, 0, 6, 0, 0, 0, 1, 1}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int32_t tokens[16];
        data_sample(&cases[i].source, 5, tokens);
        cr_expect_arr_eq(tokens, cases[i].expected, (size_t)(cases[i].source.sequence + 1) * sizeof(*tokens));
    }
}

Test(data, samples_differ_by_number_and_seed)
{
    int32_t a[65], b[65], c[65];

    data_sample(&(struct data_source){DATA_UNIFORM, 1, 32000, 64}, 5, a);
    data_sample(&(struct data_source){DATA_UNIFORM, 1, 32000, 64}, 6, b);
    data_sample(&(struct data_source){DATA_UNIFORM, 2, 32000, 64}, 5, c);

    cr_expect_arr_neq(a, b, sizeof(a));
    cr_expect_arr_neq(a, c, sizeof(a));
    cr_expect_neq(a[0], b[0]);
}

Test(data, every_markov_state_has_entropy_of_seven_quarter_bits)
{
    enum { ALPHABET = 256, SEQUENCE = 400000 };
    static int32_t tokens[SEQUENCE + 1];
    static int     times[ALPHABET][ALPHABET];
    int            state_times[ALPHABET] = {0};
    double         bits                  = 0;

    data_sample(&(struct data_source){DATA_MARKOV, 3, 32000, SEQUENCE}, 0, tokens);

    for (int i = 0; i < SEQUENCE; i++) {
        cr_assert(tokens[i] >= 0 && tokens[i] < ALPHABET);
        times[tokens[i]][tokens[i + 1]]++;
        state_times[tokens[i]]++;
    }
    for (int i = 0; i < ALPHABET; i++) {
        int successors = 0;
        for (int j = 0; j < ALPHABET; j++) {
            if (times[i][j] > 0) {
                successors++;
                bits -= (double)times[i][j] / SEQUENCE * log2((double)times[i][j] / state_times[i]);
            }
        }
        cr_expect_leq(successors, 4, "state %d has %d successors", i, successors);
    }
    cr_expect_float_eq(bits, 1.75, 0.005, "%g bits", bits);
}

Test(data, weight_values_depend_on_the_global_index_alone)
{
    struct weight_part part = {.stream = 2, .rows = 3, .columns = 4, .deviation = 0.02f};
    float              whole[16], slice[5];

    data_weight_values(&part, 1, 0, 16, whole);
    data_weight_values(&part, 1, 7, 5, slice);

    cr_expect_eq(whole[0], 0.00737134367f, "%.9g", (double)whole[0]);
    cr_expect_eq(whole[11], -0.0346208699f, "%.9g", (double)whole[11]);
    cr_expect_arr_eq(slice, whole + 7, sizeof(slice));
    for (int i = 12; i < 16; i++) {
        cr_expect_eq(whole[i], 0.0f, "element %d lies beyond the part and is padding", i);
    }
}

Test(data, weight_values_do_not_depend_on_how_many_threads_draw_them)
{
    enum { COUNT = 1 << 18 };
    static float       whole[COUNT];
    struct weight_part part = {.stream = 9, .rows = COUNT, .columns = 1, .deviation = 1};
    uint64_t           key  = random_key(4, 9);

    data_weight_values(&part, 4, 0, COUNT, whole);

    for (int i = 0; i < COUNT; i++) {
        cr_assert_eq(whole[i], random_normal(key, (uint64_t)i), "element %d", i);
    }
}

Test(data, a_part_without_deviation_is_constant)
{
    struct weight_part part = {.rows = 1, .columns = 3, .constant = 1};
    float              values[4];

    data_weight_values(&part, 1, 0, 4, values);

    cr_expect_arr_eq(values, ((float[]){1, 1, 1, 0}), sizeof(values));
}

enum { HYPER, ROPE, TOKENS_FIRST, TARGETS_FIRST = TOKENS_FIRST + 2, WEIGHT = TARGETS_FIRST + 2, MASTER, FIRST, SECOND };

static struct tensor make_tensor(enum format format, int64_t elements)
{
    return (struct tensor){
        .format = format, .dims = 1, .dim = {elements}, .elements = elements, .bytes = format_bytes(format, elements)};
}

static struct plan plan;
static struct step step;

// Makes the plan of one of `replicas` ranks. The global batch has 8 samples of 3 tokens in two microbatches.
static void make_plan(int64_t replicas, int64_t rank)
{
    static int32_t       tokens[] = {TOKENS_FIRST, TOKENS_FIRST + 1}, targets[] = {TARGETS_FIRST, TARGETS_FIRST + 1};
    static struct tensor tensors[TENSORS];
    int64_t              micro_batch = 4 / replicas;

    plan            = (struct plan){.model      = {.vocab = 1000, .rope_theta = 10000, .rope_scaling = 1},
                                    .mesh       = MESH(.dp = replicas),
                                    .rank       = rank,
                                    .tensors    = tensors,
                                    .tokens     = tokens,
                                    .targets    = targets,
                                    .rope_table = ROPE,
                                    .hyper      = HYPER};
    plan.train      = (struct train_config){.sequence      = 3,
                                            .micro_batch   = micro_batch,
                                            .global_batch  = 8,
                                            .accumulation  = 2,
                                            .learning_rate = 0.001,
                                            .beta1         = 0.9,
                                            .beta2         = 0.95,
                                            .epsilon       = 1e-8,
                                            .weight_decay  = 0.1};
    tensors[HYPER]  = make_tensor(FORMAT_F32, HYPER_COUNT);
    tensors[ROPE]   = (struct tensor){.format = FORMAT_F32, .dims = 3, .dim = {4, 2, 2}, .elements = 16, .bytes = 64};
    tensors[WEIGHT] = make_tensor(FORMAT_BF16, 10);
    tensors[MASTER] = tensors[FIRST] = tensors[SECOND] = make_tensor(FORMAT_F32, 10);
    for (int m = 0; m < 2; m++) {
        tensors[tokens[m]] = tensors[targets[m]] = make_tensor(FORMAT_I32, 3 * micro_batch);
    }
    static char memory[TENSORS][TENSOR_BYTES];
    memset(memory, 0x55, sizeof(memory));
    step.data = memory;
    for (int i = 0; i < TENSORS; i++) {
        step.bytes[i] = tensors[i].bytes;
    }
}

Test(data, every_layout_trains_on_the_same_samples)
{
    for (int64_t replicas = 1; replicas <= 4; replicas *= 2) {
        int seen[8] = {0};
        for (int64_t rank = 0; rank < replicas; rank++) {
            make_plan(replicas, rank);

            data_fill(&step, &plan, DATA_UNIFORM, 1, 2);

            for (int m = 0; m < 2; m++) {
                for (int64_t row = 0; row < 4 / replicas; row++) {
                    int32_t expected[4], place = (int32_t)((m * replicas + rank) * (4 / replicas) + row);
                    data_sample(&(struct data_source){DATA_UNIFORM, 1, 1000, 3}, 2 * 8 + place, expected);
                    cr_expect_arr_eq(step.data[TOKENS_FIRST + m] + row * 12, expected, 12);
                    cr_expect_arr_eq(step.data[TARGETS_FIRST + m] + row * 12, expected + 1, 12);
                    seen[place]++;
                }
            }
        }
        for (int i = 0; i < 8; i++) {
            cr_expect_eq(seen[i], 1, "%d replicas see sample %d %d times", (int)replicas, i, seen[i]);
        }
    }
}

Test(data, fills_the_hyperparameters_of_the_step)
{
    float hyper[HYPER_COUNT];
    make_plan(1, 0);

    data_fill(&step, &plan, DATA_UNIFORM, 1, 2);
    step_read(&step, HYPER, hyper);

    cr_expect_eq(hyper[HYPER_LEARNING_RATE], 0.001f);
    cr_expect_eq(hyper[HYPER_BETA1], 0.9f);
    cr_expect_eq(hyper[HYPER_BETA2], 0.95f);
    cr_expect_eq(hyper[HYPER_EPSILON], 1e-8f);
    cr_expect_eq(hyper[HYPER_DECAY], 0.1f);
    cr_expect_float_eq(hyper[HYPER_CORRECTION1], 0.271, 1e-7);       // 1 - 0.9^3
    cr_expect_float_eq(hyper[HYPER_CORRECTION2], 0.142625, 1e-7);    // 1 - 0.95^3
}

Test(data, initialises_weight_master_and_moments_of_slices)
{
    struct weight weights[2] = {
        {.rows       = 4,
         .columns    = 2,
         .part_count = 2,
         .part       = {{.stream        = 2,
                         .rows          = 4,
                         .columns       = 2,
                         .first_row     = 2,
                         .local_rows    = 3,
                         .local_columns = 2,
                         .deviation     = 0.02f},
                        {.rows = 1, .columns = 2, .local_rows = 1, .local_columns = 2, .offset = 6, .constant = 1}}},
        {.first      = 12,
         .rows       = 1,
         .columns    = 8,
         .part_count = 1,
         .part       = {{.rows = 1, .columns = 8, .local_rows = 1, .local_columns = 8, .constant = 3}}}};
    // The parameter group has rows 2 and 3 of a matrix, a row of padding, a row of ones, four elements between two
    // weights, and a row of threes.
    struct plan_unit unit      = {.elements      = 20,
                                  .weight_count  = 2,
                                  .kept          = {0, 20},
                                  .updated       = {2, 12},
                                  .weight        = WEIGHT,
                                  .master        = MASTER,
                                  .first_moment  = FIRST,
                                  .second_moment = SECOND};
    float            whole[20] = {0}, zeros[12] = {0};
    bf16             rounded[20];
    make_plan(1, 0);
    plan.weights       = weights;
    plan.weight_count  = 2;
    plan.units         = &unit;
    plan.unit_count    = 1;
    step.bytes[WEIGHT] = sizeof(rounded);
    step.bytes[MASTER] = step.bytes[FIRST] = step.bytes[SECOND] = sizeof(zeros);
    plan.tensors[FIRST].elements = plan.tensors[SECOND].elements = 12;

    data_initialise(&step, &plan, 1);

    data_weight_values(&weights[0].part[0], 1, 4, 4, whole);
    whole[6] = whole[7] = 1;
    for (int i = 0; i < 20; i++) {
        whole[i]   = i >= 12 ? 3 : whole[i];
        rounded[i] = bf16_from_float(whole[i]);
    }
    cr_expect_neq(whole[0], 0.0f);
    cr_expect_arr_eq(step.data[WEIGHT], rounded, sizeof(rounded));
    cr_expect_arr_eq(step.data[MASTER], whole + 2, sizeof(zeros));
    cr_expect_arr_eq(step.data[FIRST], zeros, sizeof(zeros));
    cr_expect_arr_eq(step.data[SECOND], zeros, sizeof(zeros));
}

Test(data, rope_table_holds_cosine_and_sine_of_position_times_frequency_and_scaling_slows_low_ones)
{
    make_plan(1, 0);
    const float *table = (const float *)(const void *)step.data[ROPE];    // [4, 2, 2], for frequencies 1 and 0.01
    data_initialise(&step, &plan, 1);
    cr_expect_eq(table[0], 1.0f);
    cr_expect_eq(table[1], 0.0f);
    cr_expect_float_eq(table[12], -0.989992497, 1e-7);    // cos 3
    cr_expect_float_eq(table[13], 0.141120008, 1e-7);     // sin 3
    cr_expect_float_eq(table[14], 0.999550034, 1e-7);     // cos 0.03
    cr_expect_float_eq(table[15], 0.0299955002, 1e-8);    // sin 0.03

    plan.model.rope_theta   = 500000;
    plan.model.rope_scaling = 8;
    plan.tensors[ROPE] =
        (struct tensor){.format = FORMAT_F32, .dims = 3, .dim = {6, 64, 2}, .elements = 768, .bytes = 3072};
    step.bytes[ROPE] = 3072;

    data_initialise(&step, &plan, 1);
    const float *position5 = table + 5 * 64 * 2;
    cr_expect_float_eq(position5[1], -0.958924275, 1e-7);               // pair 0 is unchanged: sin 5
    cr_expect_float_eq(position5[2 * 32 + 1], 0.00262422779, 1e-9);     // pair 32 is blended: 0.371 of its frequency
    cr_expect_float_eq(position5[2 * 63 + 1], 1.53446299e-6, 1e-13);    // pair 63 is slowed by a factor of 8
}
