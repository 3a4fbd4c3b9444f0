// SPDX-License-Identifier: MIT
#include "gswbench/text.h"
