// SPDX-License-Identifier: MIT
// This header is private to its folder.
