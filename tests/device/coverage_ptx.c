// SPDX-License-Identifier: MIT
// Tests with the label ptx record which PTX instructions of the kernels they reach, in the folder
// GSWBENCH_PTX_COVERAGE. This program fails if the share is below a limit.
#include "device.h"

// Limits in percent: entries of kernels, instructions of their instructions. Returns 0 if the coverage is below a
// limit.
int emulator_coverage(double entries, double instructions);

int main(void)
{
    device_require();
    return emulator_coverage(98, 85) ? EXIT_SUCCESS : EXIT_FAILURE;
}
