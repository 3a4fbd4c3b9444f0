#!/bin/bash
# SPDX-License-Identifier: MIT
# Every published row of the atlas passes check at its full number of ranks. docs/atlas.md and its plot equal the output
# of the command.
set -euo pipefail
failed=0
for file in "$GSWBENCH_SOURCE_DIR"/configs/atlas/*.ini; do
    "$GSWBENCH" check --config "$file" >check.txt 2>&1 || { cat check.txt && failed=1; }
    if grep "cannot run" check.txt; then failed=1; fi
done
"$GSWBENCH" atlas --markdown >atlas.md
diff "$GSWBENCH_SOURCE_DIR/docs/atlas.md" atlas.md || failed=1
"$GSWBENCH" atlas --svg >atlas.svg
diff "$GSWBENCH_SOURCE_DIR/docs/atlas.svg" atlas.svg || failed=1
exit $failed
