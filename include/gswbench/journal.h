// SPDX-License-Identifier: MIT
// run.jsonl: what a run knows as it goes. The first line describes the run, each step adds one, and the last one has
// the digest of result.json. Every line has a checksum. A run that dies loses no step whose line was printed: a result
// can be made of its journal.
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

    int64_t  lines;
    uint64_t digest;    // of all lines so far
};
status journal_open(struct journal *journal, const struct output_folder *folder, const struct result *result);
// The last of the result's steps, in one piece, so that a line is whole or missing; a step that ends a second or more
// after the last sync is synced, with those before it.
status journal_add_step(struct journal *journal, const struct result *result);
void   journal_close(struct journal *journal);

// Ties a result to its run. Before result.json is written: notes the journal's lines and digest in the result. After
// it: notes the digest of result.json in the journal, which then ends.
void   journal_note(const struct journal *journal, struct result *result);
status journal_seal(struct journal *journal, const struct output_folder *folder);

// A partial result of the whole lines of a journal, judged, with this reason for its end; %s.
status journal_read(struct result *result, const char *path, const char *reason);

// Compares result.json at that path, as it was read, with the journal beside it: the digest of the journal, the seconds
// and losses of its steps, and the digest of result.json. Fails (EXIT_COMPARE) where they disagree. Otherwise says in
// source that the journal agrees, or why it could not be compared.
status journal_check(const struct result *result, const char *path, char *source, size_t bytes);

#endif
