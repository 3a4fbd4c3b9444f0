// SPDX-License-Identifier: MIT
// Reads jobs of other programs: config.json of Hugging Face, arguments of Megatron, TOML of torchtitan.
#pragma once

#include "gswbench/arena.h"
#include "gswbench/status.h"
#include "gswbench/text.h"

struct import {
    const char      *format;      // "Hugging Face", "Megatron", "torchtitan"
    struct text_list settings;    // "--from SECTION.KEY=VALUE"
    struct text_list passed;      // names in the file that have no meaning here
};

// Reads a file; texts belong to the arena. Fails if the file has no size of a model, or a value that this program
// cannot express.
status import_read(struct import *import, const char *path, struct arena *arena);

// Returns the SECTION.KEY that has the meaning of another program's name ("--tensor-model-parallel-size", "seq_len"),
// or NULL.
const char *import_find(const char *name);
