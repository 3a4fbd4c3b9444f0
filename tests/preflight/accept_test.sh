#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests gswbench accept on one machine. A rank with wrong numbers is refused before the run, and named with its host.
# Without a published or expected time the verdict is "cannot tell". With one, the run, its report and accept.json must
# have the same verdict.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs
accept=("$GSWBENCH" accept --config tiny-llama --layers 1 --backend host --set train.micro_batch=1 --set train.global_batch=16
    --ranks 16 --steps 20)

run 6 "${accept[@]}" --set fault.kind=flip --set fault.at=attention_forward --set fault.rank=5 --set fault.bit=14 -o wrong
expect '^outlier: device 5 of host .*rank 5, isolated tests'
expect '^REFUSE  outliers that the preflight found: 1$'
expect "^drain: $(hostname)$"
unexpected '^RESULT'
expect '"verdict": "refuse",' wrong/accept.json
expect "\"drain\": \"$(hostname)\"," wrong/accept.json
expect '"blame": "numbers",' wrong/accept.json

run 15 "${accept[@]}" --set hardware.device=other --out results
expect '^RESULT '
expect '^CANNOT TELL  '
expect '"verdict": "cannot tell",' accept/accept.json
expect '"basis": "nothing",' accept/accept.json
expect "\"run_id\": \"$(basename "$(result '')")\"," accept/accept.json
expect '<h2>Acceptance ' "$(result report.html)"
run 0 "$GSWBENCH" report --format json "$(result '')"
expect '"acceptance": \{'

# The report of a signed file names its signer. A changed file or an unknown signer is refused.
if command -v ssh-keygen >/dev/null; then
    ssh-keygen -q -t ed25519 -N '' -f key
    echo "somebody $(cat key.pub)" >signers
    ssh-keygen -q -Y sign -n gswbench -f key accept/accept.json
    run 0 "$GSWBENCH" report accept/accept.json --signers signers
    expect '^CANNOT TELL  '
    expect '^source: signed by somebody'
    sed 's/cannot tell/accept/' accept/accept.json >changed.json
    cp accept/accept.json.sig changed.json.sig
    run 13 "$GSWBENCH" report changed.json --signers signers
    unexpected '^ACCEPT'
    run 13 "$GSWBENCH" report wrong/accept.json --signers signers
    expect 'wrong/accept.json is not signed'
fi
run 0 "$GSWBENCH" report wrong/accept.json
expect '^REFUSE  outliers that the preflight found: 1$'
expect '^source: not signed$'

# --json prints exactly the contents of accept.json to stdout.
"${accept[@]}" --set hardware.device=other --json -o json >decision 2>said || [ $? -eq 15 ] || complain "exit code $?, not 15" said
cmp decision json/accept.json || complain "accept.json is not what was printed" decision
expect '^  "verdict": "cannot tell",$' decision
expect '"subject": "link",' decision

# With a published time there is a verdict. Other work on this machine may slow down ranks or make a run too noisy; then
# accept says so, and the test passes.
row() {    # row NAME SECONDS: writes a configuration with this published step time
    printf '%s\n' '[model]' 'preset = tiny-llama' 'layers = 1' '[parallel]' 'dp = auto' '[train]' 'sequence = 128' \
        'micro_batch = 1' 'global_batch = 32' '[when ranks=4]' "published.step_seconds = $2" >"$1.ini"
}
decide() {    # decide EXIT_CODE NAME PATTERN: runs accept on NAME.ini, and expects this exit code and line
    local code=15
    disturbed='^CANNOT TELL  the run is degraded|^outlier: .* gemm .* takes .* longer$'
    for ((i = 0; i < 4 && code == 15; i++)); do
        code=0
        "$GSWBENCH" accept --config "./$2.ini" --backend host --ranks 4 --steps 20 -o "$2" >output 2>&1 || code=$?
        ! grep -Eq "$disturbed" output || code=15
    done
    if grep -E "$disturbed" output; then
        return
    fi
    expect '"basis": "published",' "$2/accept.json"
    expect '^drain: none$'
    [ $code -eq "$1" ] || complain "exit code $code, not $1"
    expect "$3"
}
row generous 10
decide 0 generous '^ACCEPT  median step [0-9.]+ s \(95 % CI [0-9.]+ to [0-9.]+\); published: 10 s \(9\.65 to 10\.35\)$'
row strict 0.0001
decide 6 strict '^REFUSE  median step [0-9.]+ s .*; published: 0\.0001 s \(9\.65e-05 to 0\.0001035\)$'
finish
