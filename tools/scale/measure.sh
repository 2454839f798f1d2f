#!/bin/bash
# Times the loss over a sharded memory by 1, 2 and 4 processes of one thread each, for docs/scale.md: a JSON object a line.
#   tools/scale/measure.sh target/release/anchorhood [ROWS …] > loss.jsonl && python3 tools/scale/fit.py loss.jsonl
# Every other process on the machine falsifies it: the first word of a line is the load before it.
set -euo pipefail
program=$1
shift
sizes=("$@")
[[ $# -gt 0 ]] || sizes=(10000 30000 100000 300000 1000000 3000000 10000000)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl=self,vader OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
for n in "${sizes[@]}"; do
    for ranks in 1 2 4; do
        steps=$((n < 1000000 ? 30 : 5))
        printf '%s ' "$(cut -d' ' -f1 /proc/loadavg)"
        mpirun -n "$ranks" --bind-to none "$program" bench loss --n "$n" --dim 64 --batch 128 --steps "$steps" --threads 1 --json
    done
done
