// SPDX-License-Identifier: MIT
// This header is missing in the module table.
