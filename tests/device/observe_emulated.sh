#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests that observations of a GPU (clocks, power, temperature, errors) appear in result.json, in the text and on the
# page. The GPU is emulated, and a fake NVML gets its values from FAKE_NVML in each case.
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export LD_LIBRARY_PATH=$GSWBENCH_BINARY_DIR/tests/nvml_new${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

arguments=(run --verbose --config tiny-llama --backend cuda --layers 1 --steps 4 --warmup 1 --set trace.steps=0 --deterministic
    --set run.observe_seconds=0.01 "${small[@]}" --set train.micro_batch=1 --set train.global_batch=2)
device="uuid=GPU-00000000-0000-0000-0000-000000000000 name=emulated_H100 pci=00000000:1B:00.0 driver=580.65.06 vbios=96.00
    sm=345,1755 memory=2619 power=90000,690000 limit=700000 temperature=31,66 utilization=0,100 events=0x1,0x4
    energy=1000000,1060000 ecc00=0 ecc10=0 ecc01=5 ecc11=0 rows_corrected=0 rows_uncorrected=0 rows_pending=0 rows_failed=0
    links=18 active=18 link0=0 link1=0 link2=0 link3=0"

# All values are observed.
FAKE_NVML=$device run 0 "$GSWBENCH" "${arguments[@]}"
expect '^RESULT (VALID|DEGRADED)'
expect '^note: sw-power-cap: rank 0 \(.*, emulated H100 at 00000000:1B:00\.0\): power cap in [0-9]+ of [0-9]+ samples, which is normal at full load$'
expect '^gpus: 1 of 1 observed  SM clock 1755 MHz  power 690 W  at most 66 C  power cap 1/1  energy 20 J/step, [0-9.]+ tokens/J$'
json=$(result result.json)
expect '"uuid": "GPU-00000000-0000-0000-0000-000000000000"' "$json"
expect '"vbios": "96.00"' "$json"
expect '"energy_j": 60.0' "$json"
expect '"energy_j_per_step": 20.0' "$json"
expect '<td>00000000:1B:00\.0</td>' "$(result report.html)"
expect '<th class=n>NVLinks active</th>' "$(result report.html)"

# The ranks have different GPUs: a note must name the rank that deviates, its host, and the value of the other ranks.
unlike() { FAKE_DEVICE=$OMPI_COMM_WORLD_RANK FAKE_NVML=${FAKE_NVML/000000000000 /00000000000$OMPI_COMM_WORLD_RANK } \
    bash -c '[ $OMPI_COMM_WORLD_RANK != 2 ] || export FAKE_NVML=${FAKE_NVML/vbios=96.00/vbios=96.11}; exec "$@"' rank "$@"; }
export -f unlike
FAKE_NVML=$device run 0 mpirun -np 3 bash -c 'unlike "$@"' launch "$GSWBENCH" "${arguments[@]}" --comm mpi --set train.global_batch=3
expect '^note: ranks-unlike: rank 2 on .* has VBIOS 96\.11, 2 of 3 ranks, such as 0 on .*, 96\.00$'
expect '"VBIOS": "96.00"' "$(result result.json)"
expect '"ranks": "2"' "$(result result.json)"
expect '<td>96\.11 on rank 2 \(' "$(result report.html)"

# A thermal slowdown makes the result DEGRADED, but its numbers are still printed.
FAKE_NVML="${device/events=0x1,0x4/events=0x1,0x44}" run 0 "$GSWBENCH" "${arguments[@]}"
expect '^RESULT DEGRADED'
expect '^degraded: hw-thermal-slowdown: rank 0 \(.*, emulated H100 at 00000000:1B:00\.0\): hardware thermal slowdown in '
expect '^step time '
expect '"status": "degraded"' "$(result result.json)"

# In these runs there is no driver, no NVML library, no GPU with this UUID, and then an older driver.
FAKE_NVML="$device init=9" run 0 "$GSWBENCH" "${arguments[@]}"
expect '^RESULT (VALID|DEGRADED)'
expect '^gpus: not observed: libnvidia-ml\.so\.1: Driver Not Loaded$'
expect '"sm_clock_mhz"' "$(result result.json)"
unexpected 'tokens/J'
LD_LIBRARY_PATH='' run 0 "$GSWBENCH" "${arguments[@]}"
expect '^gpus: not observed: libnvidia-ml\.so\.1 cannot be loaded '
FAKE_NVML='uuid=GPU-1' run 0 "$GSWBENCH" "${arguments[@]}"
expect '^gpus: not observed: libnvidia-ml\.so\.1 does not find GPU-00000000-0000-0000-0000-000000000000: Not Found$'
LD_LIBRARY_PATH=$GSWBENCH_BINARY_DIR/tests/nvml_old FAKE_NVML=$device run 0 "$GSWBENCH" "${arguments[@]}"
expect "^gpus: 1 of 1 observed  SM clock 345 MHz  power 90 W  at most 31 C  energy [0-9.]+ J/step"
expect '"energy_source": "power"' "$(result result.json)"

# NVML loses the GPU during the run.
FAKE_NVML="$device lost=2" run 0 "$GSWBENCH" "${arguments[@]}"
expect '^note: not-observed: rank 0 .*observed for [0-9]+ samples only: GPU is lost$|^gpus: not observed: GPU is lost$'

# A run on the host backend has no observations.
FAKE_NVML=$device run 0 "$GSWBENCH" "${arguments[@]}" --backend host
expect '^RESULT (VALID|DEGRADED)'
unexpected '^gpus:'
expect '"observations": \[\]' "$(result result.json)"

# Two ranks run on separate GPUs, and the second GPU is slow and has lost an NVLink. Then both ranks run on one GPU.
as_a_rank() {
    export NCCL_HOSTID=rank$OMPI_COMM_WORLD_RANK FAKE_DEVICE=$((OMPI_COMM_WORLD_RANK * OWN))
    export FAKE_NVML=${FAKE_NVML/000000000000 name/00000000000$FAKE_DEVICE name}
    if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then
        FAKE_NVML="${FAKE_NVML/1755/1410}"
        FAKE_NVML="${FAKE_NVML/active=18/active=17}"
    fi
    exec "$GSWBENCH" "$@"
}
export -f as_a_rank
FAKE_NVML=$device OWN=1 run 0 mpirun -np 2 bash -c 'as_a_rank "$@"' x "${arguments[@]}"
expect '^RESULT DEGRADED'
expect '^degraded: sm-clock-low: rank 1 \(.*\): SM clock 1410 MHz, 10\.9 % below 1582, the median of 2 ranks$'
expect '^degraded: nvlink-inactive: rank 1 \(.*\): 17 of 18 NVLinks active, its peers have 18$'
expect '^gpus: 2 of 2 observed  SM clock 1582 MHz \(1410 to 1755\) .* energy 40 J/step'
FAKE_NVML=$device OWN=0 run 0 mpirun -np 2 bash -c 'as_a_rank "$@"' x "${arguments[@]}" --set run.ranks_per_device=2
expect '^RESULT (VALID|DEGRADED)'
expect '^gpus: not observed: 2 ranks share the device$'
unexpected 'nvlink|sm-clock|tokens/J'
finish
