// SPDX-License-Identifier: MIT
// In no row of the table.
