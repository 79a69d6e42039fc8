# Sourced by tests of several processes, which have set bin and scratch: skips where there is no MPI, and enters an empty scratch folder.
. "$(dirname "${BASH_SOURCE[0]}")/../support/programs.sh"
skip() { echo "skipped: $*"; exit 77; }
command -v mpirun >/dev/null || skip "there is no mpirun (openmpi-bin)"
[[ -e $bin/../lib/librt/communicator_mpi.so ]] || skip "built without MPI (libopenmpi-dev)"
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1  # ranks share the cores with other tests
# A container may forbid processes to read each other's memory.
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none

# The process of this rank of a training that runs here. No pipe into grep: pipefail and its early end lose a rank.
rank_process() {
  local pid
  for pid in $(pgrep -x rttrain); do
    [[ $(readlink "/proc/$pid/cwd") == "$scratch" ]] || continue
    if grep -zqx "OMPI_COMM_WORLD_RANK=$1" "/proc/$pid/environ" 2>/dev/null; then echo "$pid"; fi
  done
}

