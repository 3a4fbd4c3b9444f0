// SPDX-License-Identifier: MIT
// Includes another folder's private header, and a vendor's header.
#include <cuda_runtime_api.h>

#include "../predict/price_table.h"
