#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A preflight of several ranks on this machine must name a slow rank and a rank with wrong numbers, and no other rank.
# The results are shown as text, as JSON and in files.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs
preflight=("$GSWBENCH" preflight --config tiny-llama --layers 1 --backend host --set train.micro_batch=1
    --set train.global_batch=16 --ranks 16)    # more ranks than cores, so ranks take turns

run 0 "${preflight[@]}" -o kept
expect '^# preflight of tiny-llama: 16 ranks, host backend, local communicator, [0-9.]+ s$'
expect '^numbers: [1-9][0-9]* ops and [1-9][0-9]* transfers of all ranks, bit for bit$'
expect '^gemm bf16,bf16,bf16 [0-9x]+: .*FLOP/s, 16 devices; limit [0-9.]+ %: ranks share cores$'
expect '^device memory copy: .* GB/s, 16 devices; no limit applied: ranks share cores$'
expect '^link within a node: .*B/s, 240 links; no limit applied: ranks share cores$'
expect '^all_reduce .* 1 group; no limit applied: ranks share cores$'
expect '^drain: none$'
unexpected '^outlier'
[ "$(wc -L <kept/preflight.txt)" -le 80 ] || complain "a line of more than 80 columns" kept/preflight.txt
cmp <(unwrap output) <(unwrap kept/preflight.txt) || complain "preflight.txt is not what was printed"
expect '"exit_code": 0,' kept/preflight.json

run 6 "${preflight[@]}" --set fault.kind=slow --set fault.amount=30 --set fault.rank=2
expect '^outlier: device 2 of host [^ ]+ \(rank 2\): gemm .* takes [0-9.]+ % longer$'
[ "$(grep -c '^outlier: device 2 of host' output)" = "$(grep -c ^outlier output)" ] || complain "another rank is named"
expect "^drain: $(hostname)$"

run 5 "${preflight[@]}" --set fault.kind=flip --set fault.at=attention_forward --set fault.rank=1 --set fault.bit=14 --json
expect '"blame": "numbers",'
expect '"rank": 1,'
expect 'rank 1, isolated tests before the steps: .*attention.*different bits than on 15 of 16 ranks'

# Load by other programs is reported, and must not make any rank an outlier.
for ((i = 0; i < $(nproc); i++)); do
    timeout 60 sh -c 'while :; do :; done' &
done
run 0 "$GSWBENCH" preflight --config tiny-llama --layers 1 --backend host --comm local --ranks 2
kill $(jobs -p)
expect '^device memory copy: .* 2 devices; no limit applied: other programs use the cores$'
expect '^link within a node: .* 2 links; no limit applied: other programs use the cores$'
expect '^drain: none$'

# Invalid requests are refused in one line, before anything is measured.
refuse() {    # refuse CODE PATTERN ARGUMENT...: expects this exit code and only this message
    run "$1" "$GSWBENCH" preflight --backend host --layers 1 "${@:3}"
    expect "^gswbench: $2$"
    [ "$(wc -l <output)" -le 2 ] || complain "more than the error"
}
refuse 2 '--config is missing: .*'
refuse 3 '1 configuration error' --config nosuch
refuse 3 '1 configuration error' --config tiny-llama --ranks 3
refuse 4 'a preflight compares ranks, but there is only 1: launch it like the run, with srun or mpirun \(mpirun -np 1 checks the numbers of one\), or give --ranks' --config tiny-llama
refuse 2 '--seconds 0: expected an integer from 1 to 3600' --config tiny-llama --ranks 2 --seconds 0
refuse 2 '-o is empty: name a folder' --config tiny-llama --ranks 2 -o ''
refuse 9 '.*/?kept/preflight\.txt.*' --config tiny-llama --ranks 2 -o kept/preflight.txt
refuse 3 '\[fault\] rank = 2: the job.s last rank is 1 \(rank: --set fault\.rank=2\)' --config tiny-llama --ranks 2 --set fault.kind=slow --set fault.rank=2
refuse 4 '\[run\] communicator = nccl: 2 ranks need one process each: .*' --config tiny-llama --ranks 2 --comm nccl

# If a launcher starts a single rank, the preflight runs with one rank.
run 0 env OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 "$GSWBENCH" preflight --config tiny-llama --layers 1 --backend host --seconds 1
expect '^numbers: '
expect '^device memory copy: .*, 1 device; not judged: one device, and no profile of it$'
expect '^drain: none$'

run 0 "${preflight[@]}" --seconds 1
expect '^gemm .*; no limit applied: [1-5] of 6 rounds within the time limit$'
unexpected '^outlier'

run 3 "${preflight[@]}" --backend null
expect '^gswbench: \[run\] backend = null computes nothing to measure: use cuda or host \(backend: --backend null\)$'
finish
