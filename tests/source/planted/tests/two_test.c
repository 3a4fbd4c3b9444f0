// SPDX-License-Identifier: MIT
// Includes private headers of two folders, and a vendor's header.
#include <cuda_runtime_api.h>

#include "../src/backend/internal.h"
#include "../src/predict/price_table.h"
