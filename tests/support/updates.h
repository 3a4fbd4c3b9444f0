// SPDX-License-Identifier: MIT
// What two trainings made of the same initial weights, tensor by tensor.
#ifndef GSWBENCH_TESTS_UPDATES_H
#define GSWBENCH_TESTS_UPDATES_H

// A tensor and how far its update is from the expected one: the norm of their difference over the expected one's.
struct update_error {
    char   tensor[128];
    double error;
};

// The tensor whose error is largest. Folders of checkpoint_write: before training, and after it. Ends the program where
// one cannot be read.
struct update_error updates_compare(const char *initial, const char *found, const char *expected);

#endif
