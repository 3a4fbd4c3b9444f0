// SPDX-License-Identifier: MIT
// What of the environment bears on a run: variables of an allow-list, and NCCL's files of them.
#ifndef GSWBENCH_RUN_ENVIRONMENT_H
#define GSWBENCH_RUN_ENVIRONMENT_H

#include "likeness.h"

// Adds the variables ("NAME=VALUE", NULL after the last) that a row of the table is about; each name once.
void environment_add_variables(struct likeness_list *list, char *const *variables);

// Adds a file of NCCL's, if it is there: its hash, and its lines as variables where those are not set before.
void environment_add_file(struct likeness_list *list, const char *path);

// Both, of this process: NCCL reads NCCL_CONF_FILE, else ~/.nccl.conf, and then /etc/nccl.conf.
void environment_collect(struct likeness_list *list);

#endif
