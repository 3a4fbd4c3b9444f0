// SPDX-License-Identifier: MIT
// run.jsonl: the record of a run in progress. The first line describes the run, each step adds a line, and the last
// line has the digest of result.json. Every line has a checksum. If the run dies, a partial result with all printed
// steps can be built from it.
#pragma once

#include "gswbench/output.h"
#include "gswbench/result.h"
#include "gswbench/status.h"

#define JOURNAL_FILE "run.jsonl"

// A zeroed journal is closed. Errors are EXIT_OUTPUT.
struct journal {
    bool   is_open;
    int    file;
    double synced;    // time of the last sync, by clock_seconds

    int64_t  lines;
    uint64_t digest;    // over every line so far
};
status journal_open(struct journal *journal, const struct output_folder *folder, const struct result *result);
// Appends the last step of the result in one write, so that a line is complete or missing. Syncs if the last sync was a
// second or more ago.
status journal_add_step(struct journal *journal, const struct result *result);
void   journal_close(struct journal *journal);

// Link a result to its journal. journal_note, before result.json is written, stores the journal's lines and digest in
// the result. journal_seal, after it, appends the digest of result.json, which ends the journal.
void   journal_note(const struct journal *journal, struct result *result);
status journal_seal(struct journal *journal, const struct output_folder *folder);

// Builds a judged partial result from the complete lines of a journal; reason says why the run ended. further: another
// reason, worse than PARTIAL; NULL: none.
status journal_read(struct result *result, const char *path, const char *reason, const struct result_reason *further);

// Compares result.json at path, already read, with the journal in its folder: the journal's digest, the seconds and
// losses of its steps, and the digest of result.json. Returns EXIT_COMPARE if they disagree. Otherwise source says that
// the journal agrees, or why it could not be compared.
status journal_check(const struct result *result, const char *path, char *source, size_t bytes);
