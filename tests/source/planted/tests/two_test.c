// SPDX-License-Identifier: MIT
// Private headers of two folders, and a vendor's.
#include <cuda_runtime_api.h>

#include "../src/backend/internal.h"
#include "../src/predict/price_table.h"
