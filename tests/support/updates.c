// SPDX-License-Identifier: MIT
// Reads three checkpoints in parallel and compares them.
#include "updates.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "gswbench/arena.h"
#include "gswbench/safetensors.h"
#include "gswbench/text.h"
#include "training.h"

enum { INITIAL, FOUND, EXPECTED, FOLDERS };

static double distance(struct safetensors_reader readers[FOLDERS], const struct safetensor *tensor)
{
    float *values[FOLDERS];
    for (int i = 0; i < FOLDERS; i++) {
        values[i] = memory_allocate((size_t)tensor->bytes);
        training_require(safetensors_read(&readers[i], tensor->name, values[i], tensor->bytes));
    }
    double square = 0, difference = 0;
    for (int64_t i = 0; i < tensor->bytes / (int64_t)sizeof(float); i++) {
        double before = (double)values[INITIAL][i], found = (double)values[FOUND][i] - before;
        double expected = (double)values[EXPECTED][i] - before;
        square += expected * expected;
        difference += (found - expected) * (found - expected);
    }
    for (int i = 0; i < FOLDERS; i++) {
        free(values[i]);
    }
    return difference > 0 ? sqrt(difference / square) : 0;
}

struct update_error updates_compare(const char *initial, const char *found, const char *expected)
{
    const char               *folders[FOLDERS] = {initial, found, expected};
    struct safetensors_reader readers[FOLDERS];
    struct update_error       worst = {.error = -1};
    for (int i = 0; i < FOLDERS; i++) {
        char path[1024];
        snprintf(path, sizeof(path), "%s/model.safetensors", folders[i]);
        training_require(safetensors_open(&readers[i], path));
    }
    for (int32_t i = 0; i < readers[EXPECTED].count; i++) {
        const struct safetensor *tensor = &readers[EXPECTED].tensors[i];
        double                   error  = distance(readers, tensor);
        if (!(error <= worst.error)) {    // also if error is NaN
            worst.error = error;
            text_copy(worst.tensor, sizeof(worst.tensor), tensor->name);
        }
    }
    for (int i = 0; i < FOLDERS; i++) {
        safetensors_close(&readers[i]);
    }
    return worst;
}
