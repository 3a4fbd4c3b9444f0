#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tests what `gswbench doctor` prints about MPI, launchers and Slurm: on the login host, inside an allocation, and with
# parts missing. The script runs itself on hosts of tests/cluster/slurm.
set -euo pipefail
if [ "${GSWBENCH_HOSTS:-}" != inside ]; then
    exec "$GSWBENCH_SOURCE_DIR/tests/cluster/slurm" --hosts 2 --slots 2 bash "$0"
fi
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
slurm=$(srun --version) mpi=$(mpirun --version | sed -n '1s/.* //p')

# Tests the login host, and each task of a job.
run 0 "$GSWBENCH" doctor
expect "^slurm +ok +$slurm with PMIx$"
expect "^mpi +ok +Open MPI v$mpi$"
expect "^mpirun +ok +mpirun \(Open MPI\) $mpi$"
expect '^driver +absent +no NVIDIA driver'
expect '^nothing is wrong'
run 0 srun --quiet --mpi=pmix -N 2 --ntasks-per-node=1 "$GSWBENCH" doctor
[ "$(grep -cE "^slurm +ok +$slurm with PMIx$" output)" = 2 ] || complain "not one line a host"
[ "$(grep -c '^nothing is wrong' output)" = 2 ] || complain "something is wrong on a host"

# stand_in NAME TEXT: makes a program called NAME that prints TEXT, whatever its arguments are
stand_in() {
    mkdir -p programs
    printf '#!/bin/sh\necho "%s"\n' "$2" >"programs/$1"
    chmod +x "programs/$1"
}

# Imitates a Slurm without PMIx. doctor must suggest to start ranks with mpirun.
stand_in srun "$slurm MPI plugin types are... cray_shasta none pmi2"
run 0 env PATH="$PWD/programs:$PATH" "$GSWBENCH" doctor
expect "^slurm +warning +$slurm .*without PMIx: .*Open MPI needs it under srun: start ranks with mpirun inside salloc"
rm programs/srun

# Without mpirun in PATH, doctor must suggest srun. An mpirun of another Open MPI version is an error.
for tool in sh tr srun; do ln -s "$(command -v $tool)" programs; done
run 0 env PATH="$PWD/programs" "$GSWBENCH" doctor
expect '^mpirun +warning +mpirun is not in PATH: jobs then start with srun --mpi=pmix'
expect "^slurm +ok +$slurm with PMIx$"
stand_in mpirun 'mpirun (Open MPI) 9.0.1'
run 4 env PATH="$PWD/programs" "$GSWBENCH" doctor
expect "^mpirun +wrong +mpirun \(Open MPI\) 9.0.1, but ranks load Open MPI v$mpi: put the mpirun of that version first"

# If the MPI library is not usable, no rank could start, so doctor must report an error.
printf 'no library\n' >programs/libmpi.so.40
LD_LIBRARY_PATH=$PWD/programs run 4 "$GSWBENCH" doctor
expect '^mpi +wrong .*libmpi.so.40.*: install the MPI of the build'
finish
