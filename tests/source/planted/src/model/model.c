// SPDX-License-Identifier: MIT
// Another folder's private header, and a vendor's.
#include <cuda_runtime_api.h>

#include "../predict/price_table.h"
