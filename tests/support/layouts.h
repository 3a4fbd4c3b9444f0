// SPDX-License-Identifier: MIT
// Reads layouts from text for tables of tests: "dp 2; tp 4; zero 1; recompute full". Such a row sets options of
// [parallel], [train], [model] and [precision] by key, and may have empty parts. Its text is also its name.
#pragma once

#include "tiny.h"

enum { LAYOUT_NAME_BYTES = 1024 };

// Sets the options of the row and keeps all others. Returns the number of ranks.
int layout_apply(struct tiny *tiny, const char *row);

// Returns the options of tiny_init, changed by the options of the row.
struct tiny tiny_of(const char *row);

// Returns the request for the plan of rank 0 of the row's job.
struct plan_request layout_request(const char *row);

// Returns the plan of a rank of the row's job. The next call frees it.
struct plan *tiny_plan_of(const char *row, int64_t rank);

// Reads a shipped configuration for this number of ranks, with settings such as "parallel.tp=2 parallel.pp=2".
struct job;
void layout_job(struct job *job, const char *name, int64_t ranks, const char *settings);

// Splits this number of sequences over ranks and microbatches.
void layout_assignment(struct tiny *tiny, int64_t sequences);

// Sets the same model and global batch on one rank, in one microbatch or in microbatches of the original size.
void layout_alone(struct tiny *tiny);
void layout_alone_in_turn(struct tiny *tiny);

// Writes the row that changes the options of tiny_init into these.
const char *layout_name(const struct tiny *tiny, char name[LAYOUT_NAME_BYTES]);
