// SPDX-License-Identifier: MIT
// Private headers of the folder that it tests, and of another one.
#include "../../src/predict/price_table.h"
#include "../../src/backend/internal.h"
