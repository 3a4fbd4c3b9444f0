// SPDX-License-Identifier: MIT
// Includes private headers of the folder that it tests, and of another folder.
#include "../../src/predict/price_table.h"
#include "../../src/backend/internal.h"
