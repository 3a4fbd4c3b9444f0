// SPDX-License-Identifier: MIT
// What the tests with the label ptx have reached of the kernels: GSWBENCH_PTX_COVERAGE names the folder in which they
// noted it. It must not fall.
#include "device.h"

int emulator_coverage(double entries, double instructions);    // in percent

int main(void)
{
    device_require();
    return emulator_coverage(98, 85) ? EXIT_SUCCESS : EXIT_FAILURE;
}
