// SPDX-License-Identifier: MIT
// Result of gswbench check for a row, printed as text and as JSON.
#ifndef GSWBENCH_CLI_CHECK_H
#define GSWBENCH_CLI_CHECK_H

#include "gswbench/proof.h"
#include "internal.h"

// A row, and its proof if this version can run it. FLOPs by convention; NaN: unknown.
struct checked {
    struct job       job;
    double           flops[FLOPS_COUNT];
    struct job_proof proof;
    int64_t          connection_bytes;                   // estimate for the rank with the largest plan
    char             excess[CLI_EXCESS_BYTES];           // warning about SMs that transfers may occupy; "": none
    double           published_mfu, published_tokens;    // derived from the published step time; NaN: not published
    char             layout[256], warning_text[128];
    const char      *warning;    // NULL: none
    bool             is_fit;
    const bool      *fits;    // is_fit; NULL: the device's memory is unknown
};

// check_json.c: describes a row; the document has all rows.
json_t *check_describe(const struct checked *checked);
struct check_document {
    const char *config;
    json_t     *rows;
};

#endif
