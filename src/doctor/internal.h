// SPDX-License-Identifier: MIT
// The checks of gswbench doctor. Each check adds at least one line to its output.
#pragma once

#include "gswbench/doctor.h"

struct doctor_line *doctor_add(struct doctor *doctor, const char *name, enum doctor_state state, const char *format,
                               ...) __attribute__((format(printf, 4, 5)));
// Adds a line in state OK if is_good, else in state `worse` with the remedy.
void doctor_judge(struct doctor *doctor, const char *name, bool is_good, enum doctor_state worse, const char *remedy,
                  const char *format, ...) __attribute__((format(printf, 6, 7)));
// Sets the remedy of a line.
void doctor_advise(struct doctor_line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Cuts off the remedy in an error of library_open, for checks that have a better one.
void doctor_cut_remedy(status *opened);

// Reads the value in a line "KEY=value" or "key : value" of a file below doctor->root, without quotes; "" if there is
// none. With the key "", reads the first line that is not empty, in the same way.
void doctor_read(const struct doctor *doctor, const char *path, const char *key, char *text, size_t bytes);

// Runs a program and reads the first line of its output; "" if it cannot run or fails. Kills it if it has not ended
// after ten seconds.
void doctor_ask(char *const words[], char *text, size_t bytes);

void doctor_check_host(struct doctor *doctor);
void doctor_check_build(struct doctor *doctor);
void doctor_check_devices(struct doctor *doctor);
void doctor_check_libraries(struct doctor *doctor);
void doctor_check_mpi(struct doctor *doctor);
void doctor_check_network(struct doctor *doctor);
void doctor_check_limits(struct doctor *doctor);

#define TEXT_OF(number)       #number
#define TEXT_OF_VALUE(number) TEXT_OF(number)
