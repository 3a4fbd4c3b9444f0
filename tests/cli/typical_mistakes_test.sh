#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Typical user errors: each prints one message with place and remedy, and sets the exit code. Each row has the exit
# code, the arguments and a pattern of the message.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs
mkdir empty
printf '[model]\nlayers = many\n' >word.ini
printf '[model]\nlayers = 4 # four\n' >comment.ini
printf '[modle]\nlayers = 4\n' >section.ini
printf '[model]\nlayer = 4\n' >key.ini
printf 'layers = 4\n' >none.ini
printf '[model]\nlayers 4\n' >equals.ini
printf '[model]\npreset = llama3.1-8b\nkv_heads = 3\n' >three.ini
echo '{}' >empty.json
count=0
while IFS='|' read -r code arguments pattern; do
    [ -n "$code" ] || continue
    count=$((count + 1))
    # shellcheck disable=SC2086
    got=0 && timeout 60 "$GSWBENCH" $arguments >output 2>error </dev/null || got=$?
    [ $got = "$code" ] || complain "exit code $got, not $code: $arguments" error
    grep -qE -- "$pattern" error || complain "no line like '$pattern': $arguments" error
    [ "$(wc -l <error)" -le 3 ] || complain "more than one error: $arguments" error
done <<'END'
2|chek|unknown command chek: did you mean check\?
2|tiny-lama|unknown command tiny-lama: did you mean the config tiny-llama\?
2|benchmark|unknown command benchmark
2|run|--config is missing: gswbench configs lists the installed ones
2|check|--config is missing
2|run --confg tiny-llama|unknown flag --confg: did you mean --config\?
2|run tiny-llama --model x|unknown flag --model: did you mean --config\?
2|run tiny-llama -np 4|unknown flag -np: did you mean --ranks\?
2|run tiny-llama --gpus 4|unknown flag --gpus: did you mean --ranks\?
2|run tiny-llama --nproc 4|unknown flag --nproc: did you mean --ranks\?
2|run tiny-llama --dtype fp8|unknown flag --dtype: did you mean --precision\?
2|run tiny-llama -o out|unknown flag -o: did you mean --out\?
2|run tiny-llama --output out|unknown flag --output: did you mean --out\?
2|run tiny-llama --iters 4|unknown flag --iters: did you mean --steps\?
2|run tiny-llama --max-steps 4|unknown flag --max-steps: did you mean --steps\?
2|run tiny-llama --tp 2|unknown flag --tp: did you mean --set parallel.tp=2\?
2|run tiny-llama --pp=2|unknown flag --pp: did you mean --set parallel.pp=2\?
2|run tiny-llama --fsdp 2|unknown flag --fsdp: did you mean --set parallel.fsdp=2\?
2|run tiny-llama --mbs 2|unknown flag --mbs: did you mean --set train.micro_batch=2\?
2|run tiny-llama --gbs 2|unknown flag --gbs: did you mean --set train.global_batch=2\?
2|run tiny-llama --batch-size 2|unknown flag --batch-size: did you mean --set train.global_batch=2\?
2|run tiny-llama --seq-len 2|unknown flag --seq-len: did you mean --set train.sequence=2\?
2|run tiny-llama --lr 2|unknown flag --lr: did you mean --set train.learning_rate=2\?
2|run tiny-llama --hidden 2|unknown flag --hidden: did you mean --set model.hidden=2\?
2|run tiny-llama --seed|unknown flag --seed: did you mean --set run.seed=VALUE\?
2|run tiny-llama --ranks|--ranks needs a value: N
2|run tiny-llama --ranks four|--ranks four: expected an integer from 1
2|run tiny-llama --ranks 0|--ranks 0: expected an integer from 1
2|run tiny-llama --json=yes|--json takes no value
2|run tiny-llama llama2-70b-fsdp|two configs, tiny-llama and llama2-70b-fsdp: name one
3|run --config tinyllama|tinyllama: no config with this name, neither in the current folder nor in .* \(did you mean "tiny-llama"\?\)
3|run --config missing.ini|missing.ini: no config with this name
3|run --config ./missing.ini|missing.ini: cannot be opened: No such file
3|run --config empty|empty: is a folder: name a file in it
3|run --config word.ini|E-CONFIG word.ini:2: \[model\] layers = many: expected an integer
3|run --config comment.ini|E-CONFIG comment.ini:2: .*4 # four
3|run --config section.ini|E-CONFIG section.ini:1: .*modle.*did you mean
3|run --config key.ini|E-CONFIG key.ini:2: .*layer.*did you mean
3|run --config none.ini|E-CONFIG none.ini:1:
3|run --config equals.ini|E-CONFIG equals.ini:2:
3|run --config - --set model.preset=llama|no such file in .*models.*did you mean
3|run tiny-llama --set layers=4|E-CONFIG --set layers=4
3|run tiny-llama --set model.layer=4|E-CONFIG --set model.layer=4.*did you mean
3|run tiny-llama --set model.layers|E-CONFIG --set model.layers
3|run tiny-llama --set model.layers=-1|E-CONFIG --set model.layers=-1: expected an integer
3|run tiny-llama --precision float8|E-CONFIG --precision float8: expected fp32, bf16, fp8 or fp4 \(did you mean "fp8"\?\)
3|run tiny-llama --precision int8|E-CONFIG --precision int8: expected fp32, bf16, fp8 or fp4
3|run tiny-llama --backend gpu|E-CONFIG --backend gpu: expected auto, cuda, host or null \(did you mean "cuda"\?\)
3|run tiny-llama --backend cpu|did you mean "host"\?
3|run tiny-llama --comm openmpi|E-CONFIG --comm openmpi: expected auto, local, mpi or nccl
3|predict llama2-70b-fsdp --ranks 64 --gpu h100-sx|h100-sx: no such file in .* \(did you mean "h100-sxm"\?\)
3|predict llama2-70b-fsdp --ranks 64 --gpu rtx|rtx: no such file in .*, which has a100-40gb, a100-80gb, b200-simumax, b200, b300-efa, b300, gb200, gb300, h100-sxm-96gb, h100-sxm-efa, h100-sxm, h200
3|check llama2-70b-fsdp --ranks 64 --set parallel.tp=3|tp = 3 does not divide 64 ranks \(allowed: 1, 2, 4
3|check tiny-llama --ranks 3|global_batch = 8 is not a multiple of .* \(at 3 ranks; global_batch: .*tiny-llama.ini:14; micro_batch: .*tiny-llama.ini:13\)$
3|check --config three.ini --ranks 1|kv_heads = 3 does not divide heads = 32 \(at 1 rank; kv_heads: three.ini:3; heads: .*/models/llama3.1-8b.ini:9\)$
3|check tiny-llama --ranks 4 --set parallel.tp=4 --set model.heads=12 --set model.kv_heads=6|neither divides \[model\] kv_heads = 6 nor is a multiple of it \(at 4 ranks; tp: --set parallel.tp=4; kv_heads: --set model.kv_heads=6\)$
3|check tiny-llama --set parallel.tp=11 --set model.heads=22|tp = 11 neither divides \[model\] kv_heads = 2 nor is a multiple of it \(tp: --set parallel.tp=11; kv_heads: .*/models/tiny-llama.ini:9\)$
3|init new.ini --model tiny-llama --set parallel.tp=11 --set model.heads=22|tp = 11 neither divides \[model\] kv_heads = 2 nor is a multiple of it
3|run tiny-llama --comm local --steps 2 --warmup 2|\(warmup: --warmup 2; steps: --steps 2\)$
3|check tiny-llama --layers 2 --set parallel.pp=4 --ranks 4|layers = 2: .*\(at 4 ranks; pp: --set parallel.pp=4; vp: default; layers: --layers 2\)$
3|check tiny-llama --set parallel.fsdp=auto|dp = auto: only one axis .*\(fsdp: --set parallel.fsdp=auto; dp: .*tiny-llama.ini:9\)$
3|run tiny-llama --ranks 2 --comm local --backend host --fail-below mfu=50|fail_below = mfu=50: expected mfu=SHARE.* \(fail_below: --fail-below mfu=50\)$
3|run tiny-llama --ranks 2 --comm local --backend host --fail-above 13|fail_above = 13: expected step=SECONDS
4|run tiny-llama --ranks 2 --comm nccl|start them with mpirun or srun.* \(communicator: --comm nccl\)$
2|predict tiny-llama --ranks 2 --out x|unknown flag --out: did you mean -o?
2|compare one|compare needs two or more folders or result.json files, but 1 are given
2|compare one two|one: No such file or directory: name the folder of a run
2|compare empty empty|empty: contains no result: name the folder of a run
3|report empty.json|empty.json: not a result
2|report|
2|report missing|missing: No such file or directory: name the folder of a run
2|table empty|empty: contains no result
2|configs nosuch|nosuch: no such configuration: gswbench configs lists them
2|init|init writes one file, but 0 are given
2|init one two|init writes one file, but 2 are given
2|init new.ini --config tiny-llama|unknown flag --config: did you mean --model\?
9|init three.ini --model tiny-llama|cannot write three.ini: File exists
9|init nowhere/new.ini --model tiny-llama|cannot write nowhere/new.ini: No such file or directory
3|init new.ini --model qwen3|E-CONFIG --model qwen3: no such file in .*/models \(did you mean "qwen3-30b-a3b"\?\)
3|init new.ini --model tiny-llama --ranks 3|global_batch = 8 is not a multiple of
2|help chek|unknown command chek: did you mean check\?
END
[ $count -ge 60 ] || complain "only $count mistakes"

# Of two predictions that differ by less than their errors, none is called faster: published, the second is.
for config in torchtitan-llama3-8b torchtitan-llama3-8b-selective-op; do
    run 0 "$GSWBENCH" predict --config $config --ranks 64 -o $config
done
run 0 "$GSWBENCH" compare torchtitan-llama3-8b/latest torchtitan-llama3-8b-selective-op/latest
expect '^EQUAL WITHIN ERROR  speed-up 0\.9'
finish
