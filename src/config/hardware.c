// SPDX-License-Identifier: MIT
// The [hardware] options.
#include "gswbench/hardware.h"

// clang-format off
const struct option hardware_options[] = {
    TEXT_OPTION   (hardware_config, profile, "none", "machine read first, from configs/hardware/NAME.ini; none: no machine"),
    INTEGER_OPTION(hardware_config, gpus_per_node, "8", 1, 1024, "devices of a node"),
    REAL_OPTION   (hardware_config, memory_gb, "0", 0, 1e6, "memory of a device in GB (1e9 bytes); 0: unknown"),
    REAL_OPTION   (hardware_config, peak_bf16, "0", 0, 1e18, "dense BF16 FLOP/s of a device; 0: unknown, and no MFU"),
    REAL_OPTION   (hardware_config, peak_fp8, "0", 0, 1e18, "dense FP8 FLOP/s of a device; 0: unknown, and no MFU"),
    END_OPTIONS
};
// clang-format on
