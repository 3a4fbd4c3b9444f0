#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `gswbench init` must find the GPU of this machine, here an emulated one, and the configuration that it writes must run
# on it.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
run 0 "$GSWBENCH" init here.ini
expect '^here.ini: this machine, 1 x emulated GPU$'
run 0 "$GSWBENCH" run --config here.ini --layers 1 --steps 2 --warmup 1
expect '^# system .*cuda backend: emulated GPU'
expect '^RESULT (VALID|DEGRADED)'
finish
