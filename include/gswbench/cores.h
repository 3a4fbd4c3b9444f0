// SPDX-License-Identifier: MIT
// CPU cores of this machine.
#ifndef GSWBENCH_CORES_H
#define GSWBENCH_CORES_H

// Number of cores in this process's affinity mask; at least 1.
int cores_usable(void);

#endif
