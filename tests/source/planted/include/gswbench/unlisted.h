// SPDX-License-Identifier: MIT
// Missing in the table.
