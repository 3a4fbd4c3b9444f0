#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# If a library refuses a call, the message must name the call and a remedy, and other work must go on. Fake libraries
# refuse calls on command.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
tests=$GSWBENCH_BINARY_DIR/tests

FAKE_CUDA=count run 4 "$GSWBENCH" run --config tiny-llama --backend cuda
expect 'GPUs with NVSwitch need a running nvidia-fabricmanager'
FAKE_CUDA=old FAKE_DRIVER=12080 run 4 "$GSWBENCH" run --config tiny-llama --backend cuda
expect 'the NVIDIA driver is for CUDA 12\.8, this build needs .*: .* the package cuda-compat-[0-9]+-[0-9]+, or build'

# The library refuses the GEMM of one test case, then crashes in it. The other cases must still run.
FAKE_CUBLASLT=refuse run 1 "$tests/ops_device" 'gemm 16 x 16 x 16 in fp8' 'gemm 1 x 1 x 1' 'by runs, added' clear
expect '^FAIL gemm 16 x 16 x 16 in fp8, added and rounded: refused: .*cuBLASLt has no algorithm for 16 x 16 x 16 nt e4m3 e4m3 bf16 add fast, align .* \(it answers: not supported\): use \[precision\] compute = bf16$'
expect '^FAIL gemm 144 x 64 x 256 in fp8 by runs, added: refused: .* e5m2 e4m3 f32 add 1x128 1x128, .* recipe = current or delayed, or compute = bf16$'
expect '^ok   gemm 1 x 1 x 1, nn: '
expect '^ok   clear: '
expect '^5 cases, 2 failed, 0 skipped$'
FAKE_CUBLASLT=abort run 1 "$tests/ops_device" 'gemm 16 x 16 x 16 in fp8' 'gemm 1 x 1 x 1' clear
expect '^FAIL gemm 16 x 16 x 16 in fp8, added and rounded: its process ended by signal 6 '
expect '^ok   clear \(one multiprocessor\): '
expect '^4 cases, 1 failed, 0 skipped$'
# A feature that the GPU is too old for is skipped, not failed.
FAKE_CAPABILITY=9 run 0 "$tests/ops_device" 'gemm 288 x 32 x 96 in fp8 by blocks, added'
expect '^skip gemm 288 x 32 x 96 in fp8 by blocks, added: refused: .*device 0 has compute capability 9\.0, but MXFP8 needs 10\.0'
expect '^1 cases, 0 failed, 1 skipped$'
FAKE_CAPABILITY=9 run 0 "$tests/step_device" mxfp8
expect '^skip compute fp8; recipe mxfp8: '
# A GPU with the shared memory of an L40S refuses only attention with wide heads.
FAKE_SHARED_KIB=99 run 0 "$tests/ops_device" --way plain 'layer norm' 'attention, head 128' 'cross entropy in fp32'
expect '^ok   layer norm 1p gradient, wide: operand 7 '
expect '^skip attention, head 128: refused: .* need 102 KiB of shared memory per block, but this device has 99'
expect '^1[0-9] cases, 0 failed, 1 skipped$'
FAKE_CUBLASLT=refuse run 4 "$GSWBENCH_BINARY_DIR/bench/bench_device_layer" records llama3-8b/fp8-current
expect 'cuBLASLt has no algorithm for 16 x 16 x 16 nt e4m3 e4m3 f32 set, align .* \(it answers: not supported\)'
run 0 "$tests/ops_device" --list 'attention, head 128'
[ "$(cat output)" = "attention, head 128
attention, head 128 (one multiprocessor)
attention, head 128 (cuDNN)" ] || complain "the list is another"

# A fake cuDNN refuses at each stage of a run. attention = auto must continue with gswbench's kernels and a note.
# attention = cudnn must end the run.
arguments=(run --verbose --config tiny-llama --backend cuda --layers 1 --steps 3 --warmup 1 --set trace.steps=0 "${small[@]}"
    --set train.micro_batch=1 --set train.global_batch=1 --set run.cache=cache)
cudnn=$tests/device/emulated/cudnn
mkdir broken
touch broken/libcudnn.so.9
declare -A reasons=([version]='cuDNN 9\.7\.0 is too old: 9\.8 or newer is needed' [create]='cuDNN 9\.19\.0: handle: ' [graph]='graph: '
    [engines]='proposes no engine' [plan]='plan: ' [execute]='attention: refused on command' [dlopen]='libcudnn\.so\.9 cannot be loaded ')
for stage in "${!reasons[@]}"; do
    library=$cudnn
    [ $stage != dlopen ] || library=$PWD/broken
    FAKE_CUDNN=$stage LD_LIBRARY_PATH=$library run 0 "$GSWBENCH" "${arguments[@]}"
    expect '^RESULT (VALID|DEGRADED)'
    expect '^# attention own$'
    expect "^note: own-attention: attention by gswbench's kernels, not cuDNN: .*${reasons[$stage]}"
    expect '^ +"refusal": "[^"]+"' "$(result result.json)"
    FAKE_CUDNN=$stage LD_LIBRARY_PATH=$library run 4 "$GSWBENCH" "${arguments[@]}" --set run.attention=cudnn
    expect "\[run\] attention = cudnn: .*${reasons[$stage]}.*; attention = own needs no cuDNN"
done

# cuDNN supports the shape, and counts more engines than the program asks for. The second run must use the cached
# choice.
rm -rf cache
for times in 1 2; do
    FAKE_CUDNN=many LD_LIBRARY_PATH=$cudnn run 0 "$GSWBENCH" "${arguments[@]}"
    expect '^RESULT (VALID|DEGRADED)'
    expect '^# attention cudnn: cuDNN 9\.[0-9.]+, engines (forward|backward) 2, (forward|backward) 2$'
    expect '^ +"provider": "cudnn"' "$(result result.json)"
    expect '^ +"refusal": ""' "$(result result.json)"
    expect '^attention_forward [0-9]+ x 16 after 0 causal, 2 heads 1 of 16, cuDNN .*: candidate 1 of 8; ' cache/gemm_times.txt
    [ "$(grep -c '^attention' cache/gemm_times.txt)" = 2 ] || complain "timed again" cache/gemm_times.txt
done
FAKE_CUDNN=first LD_LIBRARY_PATH=$cudnn run 9 "$GSWBENCH" "${arguments[@]}"
expect 'cuDNN does not propose its engine for attention_forward .*: delete the file'
rm -rf cache
FAKE_CUDNN=first LD_LIBRARY_PATH=$cudnn run 0 "$GSWBENCH" "${arguments[@]}"
expect '^# attention cudnn: .* engines (forward|backward) 1, (forward|backward) 1$'

# Compares attention by cuDNN and by gswbench's kernels, and runs the test cases of ops with cuDNN.
LD_LIBRARY_PATH=$cudnn run 0 "$tests/attention_device"
expect '^ok   attention_backward, operand 6: cuDNN and own kernels differ by '
FAKE_CUDNN=plan LD_LIBRARY_PATH=$cudnn run 77 "$tests/attention_device"
expect '^skipped: .*cudnn: cuDNN 9\.19\.0: plan: refused on command'
LD_LIBRARY_PATH=$cudnn run 0 "$tests/ops_device" '(cuDNN)'
expect '^(2[89]|[3-9][0-9]) cases, 0 failed, 10 skipped$'
expect '^skip attention gradient with slopes \(cuDNN\): refused: .*positions = alibi'

# If capture fails, graphs = auto must continue without a CUDA graph, and graphs = on must end the run.
for stage in begin record instantiate; do
    FAKE_CUDA=$stage run 0 "$GSWBENCH" "${arguments[@]}" --set run.attention=own
    expect '^RESULT (VALID|DEGRADED)'
    expect '^note: graphs-off: no CUDA graph, ops are launched one by one: cuda[A-Za-z(]+.*: an error of the emulator$'
    FAKE_CUDA=$stage run 8 "$GSWBENCH" "${arguments[@]}" --set run.attention=own --set run.graphs=on
    expect '\[run\] graphs = on: cuda.*; use graphs = auto to run without a CUDA graph'
done

# run.check = ops waits for each op and reports its errors.
run 0 "$GSWBENCH" "${arguments[@]}" --set run.check=ops
expect '^RESULT (VALID|DEGRADED)'
expect '^degraded: checked: run.check = ops waits for each op'
run 3 "$GSWBENCH" "${arguments[@]}" --set run.check=ops --set run.graphs=on
expect 'cannot capture a step with check = ops as a CUDA graph; use auto or off'

# In a step with dropless experts, the host reads token counts, so the step cannot be captured.
experts=(--set model.family=mixtral --set model.experts=4 --set model.top_k=2 --set run.attention=own)
run 0 "$GSWBENCH" "${arguments[@]}" "${experts[@]}"
expect '^RESULT (VALID|DEGRADED)'
expect '^note: graphs-off: no CUDA graph, ops are launched one by one: dropless experts need token counts on the host$'
run 3 "$GSWBENCH" "${arguments[@]}" "${experts[@]}" --set run.graphs=on
expect 'dropless experts need token counts on the host, so this step cannot be captured as a CUDA graph; use auto or off'
run 0 "$GSWBENCH" "${arguments[@]}" "${experts[@]}" --set run.graphs=on --set model.capacity_factor=2
expect '^RESULT (VALID|DEGRADED)'
finish
