// SPDX-License-Identifier: MIT
// Which kernels there are, for who wants to see all of them.
#ifndef GSWBENCH_TESTS_PTX_COVERAGE_H
#define GSWBENCH_TESTS_PTX_COVERAGE_H

#include "ptx.h"

namespace ptx
{
// Of every kernel that the program has.
void visit_kernels(void (*visit)(const kernel &its));
// The folder that reached instructions are noted in; NULL: none.
const char *coverage_folder(void);
std::string coverage_file(const std::string &kernel);
}    // namespace ptx

#endif
