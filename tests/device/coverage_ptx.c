// SPDX-License-Identifier: MIT
// PTX coverage of the kernels by the tests with label ptx, which record it in the folder GSWBENCH_PTX_COVERAGE. It must
// not fall below a limit.
#include "device.h"

int emulator_coverage(double entries, double instructions);    // in percent

int main(void)
{
    device_require();
    return emulator_coverage(98, 85) ? EXIT_SUCCESS : EXIT_FAILURE;
}
