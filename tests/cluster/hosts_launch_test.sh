#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests errors in launching a job on several hosts, and their messages. The script runs itself on hosts of
# tests/cluster/hosts.
if [ "${GSWBENCH_HOSTS:-}" != inside ]; then
    exec "$GSWBENCH_SOURCE_DIR/tests/cluster/hosts" --hosts 4 --slots 4 bash "$0"
fi
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
source "$GSWBENCH_SOURCE_DIR/tests/cluster/kill_rank.sh"
on_host=$GSWBENCH_SOURCE_DIR/tests/cluster/on_host
export GSWBENCH_CONFIGS=$GSWBENCH_SOURCE_DIR/configs
mkdir bin
ln -s "$(dirname "$GSWBENCH")/../lib" lib
cp "$GSWBENCH" bin/gswbench
cp "$GSWBENCH_CONFIGS/tiny-llama.ini" job.ini
sed 's/^sequence = .*/sequence = 64/' job.ini >other.ini
job=(bin/gswbench run --verbose --config job.ini --set parallel.tp=2 --set parallel.dp=auto --set train.global_batch=auto
    --layers 1 --steps 3 --warmup 1)

# Ranks are placed so that tp groups span hosts. A note must say so and suggest other mpirun flags, and a job with these
# flags must get no such note.
run 0 mpirun -np 16 --map-by node "${job[@]}"
expect_text 'note: ranks-apart: 8 of 8 tp groups span nodes, the first is ranks 0 (h1) to 1 (h2)'
expect_text 'mpirun --map-by ppr:4:node --bind-to none'
for way in 'ppr:4:node --bind-to none' ppr:4:socket; do
    # shellcheck disable=SC2086
    run 0 mpirun -np 16 --map-by $way "${job[@]}"
    expect '^RESULT (VALID|DEGRADED)'    # DEGRADED, since ranks share cores
    expect '^# layout ranks 16 '
    unexpected 'ranks-apart|ranks-unlike|local-rank'
done

# One host has another configuration, or another build of the program, at the same path. The error must name a rank on
# that host.
"$on_host" h3 "mount --bind $PWD/other.ini $PWD/job.ini"
run 4 mpirun -np 16 "${job[@]}"
expect_text 'gswbench: rank 8 on h3 has train.sequence = 64 (4 ranks deviate), 12 of 16 ranks, such as 0 on h1, 128: give'
"$on_host" h3 "umount $PWD/job.ini"
version=$(bin/gswbench --version | sed -n 's/^gswbench //p')
sed "s/$version/${version//[0-9]/7}/" bin/gswbench >other
chmod +x other
"$on_host" h2 "mount --bind $PWD/other $PWD/bin/gswbench"
run 4 mpirun -np 16 "${job[@]}"
expect_text "gswbench: rank 4 on h2 has gswbench ${version//[0-9]/7}, build "
expect_text " (4 ranks deviate), 12 of 16 ranks, such as 0 on h1, $version, build "
"$on_host" h2 "umount $PWD/bin/gswbench"

# Host h3 does not see the folder for checkpoints.
mkdir own
"$on_host" h3 "mount -t tmpfs tmpfs $PWD/own"
run 9 mpirun -np 16 "${job[@]}" --set checkpoint.save=own/saved --set checkpoint.every=1
expect '^gswbench: rank 8 on h3: cannot open own/saved: No such file or directory'

# A rank is killed during the run. The job must end on all hosts, and the message must name the rank and the host.
kill_rank OMPI_COMM_WORLD_RANK=9 16 'process rank 9 .*on node h3 exited on signal 9' mpirun -np 16 "${job[@]}"

# The launcher is killed, or its daemon on another host. The ranks on every host must end within 5 s.
for killed in mpirun orted; do
    : >steps    # the loop below must not see the steps of the job before
    mpirun -np 16 "${job[@]}" --steps 1000000 >steps 2>log </dev/null &
    until grep -q '^completed step: 2,' steps; do sleep 0.1; done
    pkill -KILL --exact --oldest $killed || complain "there is no $killed"
    for _ in {1..50}; do
        left=$(pgrep --count --exact gswbench || true)
        [ "$left" -gt 0 ] || break
        sleep 0.1
    done
    [ "$left" -eq 0 ] || complain "$left ranks are left 5 s after $killed was killed" log
    wait || true
done
finish
