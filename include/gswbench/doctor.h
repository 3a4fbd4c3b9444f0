// SPDX-License-Identifier: MIT
// Examines this host: lists its hardware and libraries, and problems with their remedies. Runs no work on a device.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "gswbench/json.h"

enum doctor_state {
    DOCTOR_OK,
    DOCTOR_ABSENT,     // missing, but not needed here, like NCCL on a host without a GPU
    DOCTOR_WARNING,    // works, but slowly or not for every job
    DOCTOR_WRONG,      // jobs on this host fail until this is repaired
    DOCTOR_STATES,
};

// The result of one check.
struct doctor_line {
    char    name[16];
    int64_t state;
    char    found[256], remedy[256];    // found: result as text; remedy: advice to the user, or ""
};

struct doctor {
    const char         *root;      // prefix of /sys and /proc: "", or a folder in tests
    const char         *folder;    // folder in which runs write results
    struct doctor_line *lines;
    int64_t             count;
    int64_t             gpus;                     // number of GPUs that the driver shows
    int64_t             states[DOCTOR_STATES];    // number of lines with each state
};

extern const struct json_field doctor_fields[];
extern const char *const       doctor_features[];    // optional libraries that this build uses; ends with NULL

void doctor_examine(struct doctor *doctor);
void doctor_print(const struct doctor *doctor, FILE *file);
void doctor_free(struct doctor *doctor);
