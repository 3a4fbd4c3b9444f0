#!/bin/bash
# SPDX-License-Identifier: MIT
# `check` must accept every job with a published step time in configs/atlas, at its full number of ranks. docs/atlas.md
# and its plot must equal the output of scripts/atlas.
set -euo pipefail
failed=0
for file in "$GSWBENCH_SOURCE_DIR"/configs/atlas/*.ini; do
    "$GSWBENCH" check --config "$file" >check.txt 2>&1 || { cat check.txt && failed=1; }
    if grep "cannot run" check.txt; then failed=1; fi
done
"$GSWBENCH_SOURCE_DIR/scripts/atlas" .
for file in atlas.md atlas.svg; do
    diff "$GSWBENCH_SOURCE_DIR/docs/$file" $file || failed=1
done
exit $failed
