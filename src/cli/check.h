// SPDX-License-Identifier: MIT
// What gswbench check finds out about a row, for people and as JSON.
#ifndef GSWBENCH_CLI_CHECK_H
#define GSWBENCH_CLI_CHECK_H

#include "gswbench/proof.h"
#include "internal.h"

// One row with its proof, where this version can run it. FLOPs by convention; NaN: not known.
struct checked {
    struct job       job;
    double           flops[FLOPS_COUNT];
    struct job_proof proof;
    int64_t          connection_bytes;                   // of the rank that needs the most memory, estimated
    char             excess[CLI_EXCESS_BYTES];           // of multiprocessors that transfers may hold; "": none
    double           published_mfu, published_tokens;    // that follow from the published step; NaN: not published
    char             layout[256], warning_text[128];
    const char      *warning;    // NULL: none
    bool             is_fit;
    const bool      *fits;    // is_fit; NULL: the device's memory is not known
};

// check_json.c: a row, and the document of rows.
json_t *check_describe(const struct checked *checked);
struct check_document {
    const char *config;
    json_t     *rows;
};

#endif
