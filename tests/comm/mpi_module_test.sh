#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The program must start on a machine without MPI. It loads its MPI module only if a launcher started it or --comm mpi
# is given.
"$GSWBENCH" run --help | grep -q ' mpi,' || exit 77
source "$GSWBENCH_SOURCE_DIR/tests/support/script.sh"
tiny=(run --config tiny-llama --layers 1 --steps 2 --warmup 0 --set trace.steps=0)

! ldd "$GSWBENCH" | grep libmpi || complain "the program is linked with MPI"

# Tests a copy of the program without its MPI module.
mkdir -p lone/bin lone/share/gswbench
cp "$GSWBENCH" lone/bin
cp -r "$GSWBENCH_SOURCE_DIR/configs" lone/share/gswbench
run 0 lone/bin/gswbench check --config tiny-llama
run 0 lone/bin/gswbench "${tiny[@]}" --ranks 2
expect '^RESULT (VALID|DEGRADED)'
run 4 lone/bin/gswbench "${tiny[@]}" --comm mpi
expect "^gswbench: MPI cannot be loaded: $PWD/lone/lib/gswbench/mpi\.so cannot be loaded "
[ "$(wc -l <output)" = 1 ] || complain "more than one line"

# Adds the module, but hides the MPI library that it is linked with.
mkdir -p lone/lib/gswbench lone/empty
cp "$(dirname "$GSWBENCH")/../lib/gswbench/mpi.so" lone/lib/gswbench
library=$(ldd lone/lib/gswbench/mpi.so | sed -n 's/^\t\(libmpi[^ ]*\) => .*/\1/p')
echo 'no library' >"lone/empty/$library"
run 4 env LD_LIBRARY_PATH="$PWD/lone/empty" lone/bin/gswbench "${tiny[@]}" --comm mpi
expect "^gswbench: MPI cannot be loaded: .*$library"
run 0 lone/bin/gswbench "${tiny[@]}" --comm mpi
expect '^# system mpi communicator'

# With several ranks, each stream has a communication thread, so MPI must support calls from several threads.
faulty=$GSWBENCH_BINARY_DIR/tests/libmpi_with_faults.so
run 4 mpirun -np 2 env LD_PRELOAD="$faulty" "$GSWBENCH" "${tiny[@]}"
expect '^gswbench: Open MPI .* does not support MPI_THREAD_MULTIPLE, which communicator mpi needs: '
run 0 env LD_PRELOAD="$faulty" "$GSWBENCH" "${tiny[@]}" --comm mpi

# A message that MPI lost ends the job, which would otherwise compute with what is in the buffer.
run 8 mpirun -np 2 env LD_PRELOAD="$faulty" FAULTY_TESTALL=1 "$GSWBENCH" "${tiny[@]}" --backend host --set model.family=mixtral \
    --set model.experts=4 --set model.top_k=2 --set parallel.dp=2 --set parallel.ep=2
expect '^gswbench: rank [01] on .*: MPI_Testall: MPI_ERR_OTHER'
finish
