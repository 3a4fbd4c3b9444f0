// SPDX-License-Identifier: MIT
// The cores of this machine.
#ifndef GSWBENCH_CORES_H
#define GSWBENCH_CORES_H

// How many this process may use: of an allocation its own. At least 1.
int cores_usable(void);

#endif
