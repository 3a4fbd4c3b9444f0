// SPDX-License-Identifier: MIT
// Whole runs of a small model in the test's own process, with their results in a folder of the test's.
#ifndef GSWBENCH_TESTS_WHOLE_RUN_H
#define GSWBENCH_TESTS_WHOLE_RUN_H

#include <jansson.h>

#include "command.h"

#define TINY "run --config tiny-llama --layers 1 --steps 4 --warmup 1 --backend host"

// Before and after each test: makes the folder, and removes it with what is in it.
extern char folder[1024];
void        make_folder(void);
void        remove_folder(void);

// "gswbench LINE" with results in the test's folder.
status run_here(const char *line);
enum { ANY_EXIT_CODE = -1 };
// Expects that exit code and one JSON document, which the caller releases.
json_t *run_json(const char *line, int exit_code);

double      step_real(json_t *document, size_t step, const char *key);
const char *text_of(json_t *document, const char *key);
// The folder that the run named in its last line.
const char *run_folder(void);

#endif
