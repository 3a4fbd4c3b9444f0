// SPDX-License-Identifier: MIT
// run.jsonl: what a run knows as it goes, a line for its begin and one for each step, each with a checksum, so that a
// run that dies loses no step whose line was printed. A result can be made of it.
#ifndef GSWBENCH_JOURNAL_H
#define GSWBENCH_JOURNAL_H

#include "gswbench/output.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

#define JOURNAL_FILE "run.jsonl"

// A zeroed one is closed. Errors are EXIT_OUTPUT.
struct journal {
    bool   is_open;
    int    file;
    double synced;    // when it last was, by the host's clock
};
status journal_open(struct journal *journal, const struct output_folder *folder, const struct result *result);
// The last of the result's steps, in one piece, so that a line is whole or missing; a step that ends a second or more
// after the last sync is synced, with those before it.
status journal_add_step(struct journal *journal, const struct result *result);
void   journal_close(struct journal *journal);

// A partial result of the whole lines of a journal, judged, with this reason for its end; %s.
status journal_read(struct result *result, const char *path, const char *reason);

#endif
