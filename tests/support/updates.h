// SPDX-License-Identifier: MIT
// Compares the weight updates of two trainings from the same initial weights, tensor by tensor.
#ifndef GSWBENCH_TESTS_UPDATES_H
#define GSWBENCH_TESTS_UPDATES_H

// Relative error of a tensor's update: norm of the difference over norm of the expected update.
struct update_error {
    char   tensor[128];
    double error;
};

// Returns the tensor with the largest error. The arguments are folders of checkpoint_write: before training, and after
// each training. Ends the program if one cannot be read.
struct update_error updates_compare(const char *initial, const char *found, const char *expected);

#endif
