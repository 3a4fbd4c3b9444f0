// SPDX-License-Identifier: MIT
// Private to its folder.
