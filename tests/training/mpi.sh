# Sourced by tests of several processes, which have set bin and scratch: skips where there is no MPI, and enters an empty scratch folder.
skip() { echo "skipped: $*"; exit 77; }
command -v mpirun >/dev/null || skip "there is no mpirun (openmpi-bin)"
[[ -e $bin/../lib/librt/communicator_mpi.so ]] || skip "built without MPI (libopenmpi-dev)"
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1  # ranks share the cores with other tests
# A container may forbid processes to read each other's memory.
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none

fail() { echo "FAILED: $*"; exit 1; }
