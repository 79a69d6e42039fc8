# Sourced by tests of several processes, which have set bin and scratch: skips where there is no MPI, and enters an empty scratch folder.
. "$(dirname "${BASH_SOURCE[0]}")/../support/programs.sh"
skip() { echo "skipped: $*"; exit 77; }
command -v mpirun >/dev/null || skip "there is no mpirun (openmpi-bin)"
[[ -e $bin/../lib/librt/communicator_mpi.so ]] || skip "built without MPI (libopenmpi-dev)"
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
. "$(dirname "${BASH_SOURCE[0]}")/../support/open_mpi.sh"

# The process of this rank of a training that runs here. No pipe into grep: pipefail and its early end lose a rank.
rank_process() {
  local pid
  for pid in $(pgrep -x rttrain); do
    [[ $(readlink "/proc/$pid/cwd") == "$scratch" ]] || continue
    if grep -zqx "OMPI_COMM_WORLD_RANK=$1" "/proc/$pid/environ" 2>/dev/null; then echo "$pid"; fi
  done
}

