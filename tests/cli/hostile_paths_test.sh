#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests hostile names of files and folders, on the command line and of configurations. The program must not print
# terminal escapes, must write its output files, and links in its pages must lead to existing files.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
small=(--layers 1 --set model.hidden=32 --set model.heads=2 --set model.kv_heads=1 --set model.head_dim=16 --set model.ffn=32
    --set model.vocab=64 --set train.sequence=16)
ranks=(--comm local --backend host --ranks 2)
evil=$'a\e[31m\x07b'
plain() {    # plain TEXT: expects that the last command printed TEXT and no control characters
    expect_text "$1"
    ! LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]' output || complain "something for a terminal"
}
mkdir "$evil"
run 0 "$GSWBENCH" data --config tiny-llama "${small[@]}" --ranks 1 --steps 1 -o "$evil/tokens"
plain 'a?[31m?b/tokens: tokens I32'
run 0 "$GSWBENCH" weights --config tiny-llama "${small[@]}" -o "$evil/weights"
plain 'a?[31m?b/weights: initial weights of tiny-llama, seed 1, as transformers reads LlamaForCausalLM'
run 0 "$GSWBENCH" calibrate --config tiny-llama "${small[@]}" "${ranks[@]}" -o "$evil/machine.ini"
plain 'a?[31m?b/machine.ini: '
expect 'hardware\.profile=a\?\[31m\?b/machine\.ini$'
[ -s "$evil/tokens" ] && [ -d "$evil/weights" ] && [ -s "$evil/machine.ini" ] || complain 'files are missing'
# Other processes on this machine may disturb the measurement, so exit code 15 (cannot tell) is correct, too.
code=0
"$GSWBENCH" accept --config tiny-llama "${small[@]}" "${ranks[@]}" --seconds 1 --steps 6 --set hardware.device=other -o "$evil/accept" \
    >output 2>&1 </dev/null || code=$?
[[ $code = 6 || $code = 15 ]] || complain "exit code $code"
plain 'details: a?[31m?b/accept/accept.json'

# Tests a folder of configurations with such a name, and a configuration with it.
mkdir "$evil/configs"
cp -r "$GSWBENCH_SOURCE_DIR/configs/"{models,hardware,software} "$evil/configs"
printf '[model]\npreset = tiny-llama\n[parallel]\ndp = auto\n[published]\nsource = nobody\n[when ranks=2]\npublished.step_seconds = 1\n' \
    >"$evil/configs/$evil.ini"
GSWBENCH_CONFIGS=$evil/configs run 0 "$GSWBENCH" configs
plain 'a?[31m?b'
GSWBENCH_CONFIGS=$evil/configs run 0 "$GSWBENCH" check --all
plain 'a?[31m?b'

# Tests paths of nearly the maximum length of the system, as values in a configuration.
deep=$PWD/results
while ((${#deep} < 3800)); do deep+=/$(printf 'd%.0s' {1..200}); done
mkdir -p "$deep"
middle=${deep:0:900} middle=${middle%/*}
{ sed 's/;.*//' "$GSWBENCH_SOURCE_DIR/configs/tiny-llama.ini"
    printf '[run]\noutput = %s/a;b\ncache = %s/cache\n[checkpoint]\nsave = %s/saved\n' "$deep" "$deep" "$deep"; } >deep.ini
run 0 "$GSWBENCH" --config deep.ini "${small[@]}" "${ranks[@]}" --steps 2 --warmup 1
saved=("$deep"/saved/step-*)
[ -s "$deep/a;b/latest/result.json" ] && [ -d "${saved[0]}" ] || complain 'long paths were cut'
run 0 "$GSWBENCH" --config deep.ini "${small[@]}" "${ranks[@]}" --steps 1 --warmup 0 --set checkpoint.save= \
    --set checkpoint.load="$deep/saved"
run 0 "$GSWBENCH" report "$deep/a;b/latest"
{ printf '; %s = x\n' "$(printf 'c%.0s' {1..300})"
    cat "$evil/machine.ini"; printf '; %s = x\n' "$(printf 'c%.0s' {1..300})"; } >"$middle/machine.ini"
run 0 "$GSWBENCH" predict --config tiny-llama "${small[@]}" --ranks 2 --gpu "$middle/machine.ini"

# Tests that links in the page of a sweep lead to existing files if file names need escapes in URLs.
cp "$GSWBENCH_SOURCE_DIR/configs/tiny-llama.ini" 'a b%41#c?.ini'
run 0 "$GSWBENCH" predict --sweep --config ./'a b%41#c?.ini' "${small[@]}" --ranks 2 --set train.global_batch=2 \
    --set hardware.profile=h100-sxm -o 'page of all'
python3 - >found 2>&1 <<'LINKS' || complain 'links lead elsewhere' found
import pathlib, re, urllib.parse
page = pathlib.Path("page of all/sweep.html")
links = [link for link in re.findall(r'href="([^"]*)"', page.read_text()) if not link.startswith("http")]
assert links
for link in links:
    parts = urllib.parse.urlsplit(link)
    assert not parts.query and not parts.fragment and " " not in link, link
    assert (page.parent / urllib.parse.unquote(parts.path)).is_file(), link
LINKS
finish
