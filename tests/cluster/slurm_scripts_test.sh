#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests the Slurm scripts that are installed in share/gswbench/slurm: a single job, an array of jobs over numbers of
# ranks and precisions, and error messages. The script runs itself on hosts of tests/cluster/slurm.
set -euo pipefail
if [ "${GSWBENCH_HOSTS:-}" != inside ]; then
    exec "$GSWBENCH_SOURCE_DIR/tests/cluster/slurm" --hosts 4 --slots 2 bash "$0"
fi
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
scripts=$GSWBENCH_SOURCE_DIR/scripts/slurm
export PATH=$(dirname "$GSWBENCH"):$PATH
version=$(gswbench -V | sed -n 's/^gswbench \([^ ]*\).*/\1/p')
short=(--layers 1 --steps 2 --warmup 1)

# looks RANKS PRECISION: expects one run of tiny-llama with this number of ranks and this precision, with log and result
# file.
looks() {
    local folder=results/$version/$2/tiny-llama/$1 log
    log=$(ls "$folder"/log-gswbench_tiny-llama_"$1"_*.out) || complain "no log in $folder"
    [ "$(grep -cE '^RESULT (VALID|DEGRADED)' "$log")" = 1 ] || complain "no result in $log" "$log"
    grep -q "precision $2$" "$log" && grep -q "^# layout ranks $1 " "$log" || complain "another job" "$log"
    log=${log%.out}
    [ -s "$folder/${log##*_}/result.json" ] || complain "no link to the run in $folder" <(ls -lR "$folder")
}

# Tests one job. If a job fails, sbatch must return the exit code of the rank that failed first, or of ranks that
# Slurm then killed.
run 0 sbatch --wait --nodes=2 --ntasks-per-node=2 "$scripts/job.sbatch" tiny-llama bf16 "${short[@]}"
looks 4 bf16
! sbatch --quiet --wait --nodes=2 --ntasks-per-node=2 "$scripts/job.sbatch" tiny-llama bf16 --set train.micro_batch=3 ||
    complain "a job that fails is none" /dev/null
grep -hq 'global_batch = 8 is not a multiple of micro_batch x replicas' results/*/bf16/tiny-llama/4/*.err || complain "no reason"
run 2 sbatch --wait --nodes=1 --ntasks-per-node=1 "$scripts/job.sbatch"
grep -hq '^usage: sbatch' gswbench-*.log || complain "no usage"
run 2 bash "$scripts/job.sbatch" tiny-llama
rm -r results

# For each number of ranks, scripts/slurm/submit starts an array with one job per precision.
mkdir stage
SBATCH_WAIT=1 STAGE_PATH=$PWD/stage run 0 "$scripts/submit" --ranks 2,4 --precisions bf16,fp8 --ranks-per-node 1 tiny-llama -- "${short[@]}"
cd stage
for ranks in 2 4; do looks $ranks bf16; looks $ranks fp8; done
run 0 gswbench table --force results    # two steps are too few for a VALID run
[ "$(wc -l <output)" = 5 ] || complain "not a title and four rows"
cd ..

# Without --ranks, scripts/slurm/submit uses the numbers of ranks and precisions that have a published step time.
run 0 "$scripts/submit" --dry-run llama2-70b-fsdp torchtitan-llama3-70b
[ "$(wc -l <output)" = 7 ] || complain "not the rows"
expect '^sbatch --nodes=8 --ntasks-per-node=8 --array=0-1 .*/job.sbatch llama2-70b-fsdp bf16,fp8$'
expect '^sbatch --nodes=256 --ntasks-per-node=8 --array=0-1 .*/job.sbatch llama2-70b-fsdp bf16,fp8$'
expect '^sbatch --nodes=8 --ntasks-per-node=8 --array=0-0 .*/job.sbatch torchtitan-llama3-70b bf16$'
run 0 "$scripts/submit" --dry-run --ranks 64 --ranks-per-node 4 --precisions fp8 llama2-70b-fsdp -- --steps 20
expect '^sbatch --nodes=16 --ntasks-per-node=4 --array=0-0 .*/job.sbatch llama2-70b-fsdp fp8 --steps 20$'
run 0 "$scripts/submit" --dry-run megatron-qwen3-235b-a22b
expect '^sbatch --nodes=8 --ntasks-per-node=8 --array=0-0 .*/job.sbatch megatron-qwen3-235b-a22b fp8$'
[ "$(wc -l <output)" = 1 ] || complain "rows of several GPUs, or variants"
run 2 "$scripts/submit" --dry-run tiny-llama
expect 'nothing was published of tiny-llama: name numbers of ranks by --ranks'
run 2 "$scripts/submit" --dry-run --ranks 12 tiny-llama
expect '12 ranks are no multiple of 8'
run 2 "$scripts/submit" --dry-run --ranks 8 nonsense
expect '^gswbench: nonsense: no such configuration'
run 0 "$scripts/submit" --dry-run --ranks 8 --gres gpu:8 llama3.1-8b -- --repeat 3
expect '^sbatch --gres=gpu:8 --nodes=1 .* --repeat 3$'
run 2 "$scripts/submit" --nodes 3 tiny-llama
expect '^usage: submit'

# A Slurm prolog that finds a slow GPU must drain its node with the reason, while another node runs its job.
mkdir found
printf '#!/bin/sh\n[ "$(hostname)" = h2 ] || exit 0\necho "outlier: device 1 of host h2 takes 10.3 %% longer"\nexit 6\n' >found/mpirun
printf '#!/bin/bash\nexport PATH=%s:%s GSWBENCH_RANKS=2\nexec %s\n' "$PWD/found" "$PATH" "$GSWBENCH_SOURCE_DIR/scripts/monitors/slurm_prolog" >prolog
chmod +x found/mpirun prolog
chmod 755 .
printf 'Prolog=%s\nPrologFlags=Alloc\n' "$PWD/prolog" >>"$SLURM_CONF"
run 0 scontrol reconfigure
run 0 sbatch --wrap hostname --nodelist=h2
run 0 srun --nodelist=h3 hostname
expect '^h3$'
for ((try = 0; try < 100; try++)); do
    run 0 scontrol show node h2
    grep -q DRAIN output && break
    sleep 0.2
done
expect 'State=.*DRAIN'
expect 'Reason=gswbench: outlier: device 1 of host h2 takes 10.3 % longer'
run 0 scontrol show node h3
expect 'State=(IDLE|MIXED|ALLOCATED|COMPLETING)'
finish
