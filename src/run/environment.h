// SPDX-License-Identifier: MIT
// Records environment variables on an allow-list, including those in NCCL's configuration files.
#ifndef GSWBENCH_RUN_ENVIRONMENT_H
#define GSWBENCH_RUN_ENVIRONMENT_H

#include "likeness.h"

// Adds listed variables ("NAME=VALUE", NULL-terminated), each once.
void environment_add_variables(struct likeness_list *list, char *const *variables);

// Adds an NCCL configuration file, if it exists: its hash, and variables not yet set.
void environment_add_file(struct likeness_list *list, const char *path);

// Adds both for this process: NCCL reads NCCL_CONF_FILE, else ~/.nccl.conf, and then /etc/nccl.conf.
void environment_collect(struct likeness_list *list);

#endif
