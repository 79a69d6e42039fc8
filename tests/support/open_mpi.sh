# Sourced by tests that run mpirun: Open MPI 4 (OMPI_) and 5 (PRTE_) as root, with more ranks than cores, in a container.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
# Ranks share the cores with other tests.
export OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
# A container may forbid processes to read each other's memory.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
