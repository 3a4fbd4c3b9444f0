// SPDX-License-Identifier: MIT
// Runs a small model completely in the process of the test. Results go to the folder of the test.
#pragma once

#include <jansson.h>

#include "command.h"
#include "folder.h"

#define TINY "run --config tiny-llama --layers 1 --steps 4 --warmup 1 --backend host"

// Runs "gswbench LINE" with results in the folder of the test.
status run_here(const char *line);
enum { ANY_EXIT_CODE = -1 };
// Expects this exit code and one JSON document as output. The caller releases the document.
json_t *run_json(const char *line, int exit_code);

double      step_real(json_t *document, size_t step, const char *key);
const char *text_of(json_t *document, const char *key);
// Returns the reason with this id, or NULL.
json_t *reason_of(json_t *document, const char *id);
// Returns the number at a path of keys such as "validation.repeated_steps".
json_int_t number_at(json_t *document, const char *path);
double     real_at(json_t *document, const char *path);
// Returns the folder that the last line of the run's output names.
const char *run_folder(void);
