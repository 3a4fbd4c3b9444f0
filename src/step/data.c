// SPDX-License-Identifier: MIT
// Synthetic tokens. Each draw depends on (sample, position) only, so any rank can generate any sample.
#include "gswbench/data.h"

#include <math.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/random.h"

// Random streams outside the range of tensor streams.
static const uint64_t token_stream      = UINT64_MAX;
static const uint64_t transition_stream = UINT64_MAX - 1;

enum { MARKOV_ALPHABET = 256, MARKOV_SUCCESSORS = 4, MARKOV_EIGHTHS = 8 };

// Each token has four possible successors, one from each quarter of the alphabet. They differ, so the entropy per state
// is exactly 1.75 bits.
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

static void fill_hyper(struct step *step, const struct plan *plan, int64_t step_index)
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
    fill_hyper(step, plan, step_index);
}
