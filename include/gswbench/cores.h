// SPDX-License-Identifier: MIT
// CPU cores of this machine.
#pragma once

// Number of cores in this process's affinity mask; at least 1.
int cores_usable(void);
