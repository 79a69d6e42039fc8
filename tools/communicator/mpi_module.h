// Exports of communicator_mpi.so: the ranks that mpirun started, as a communicator (rt/communicator.h).
//
// A separate module, so that programs run where MPI is not installed.
#pragma once

#include <rt/communicator.h>

extern "C" {
/// Connects to the other ranks. Returns null or an error message. *made is valid until close.
__attribute__((visibility("default"))) const char* rt_mpi_open(const rt_communicator** made);
/// After a failure: returns once started operations no longer access memory. No others can be started; the
/// process should end.
__attribute__((visibility("default"))) void rt_mpi_abandon(void);
/// After all operations were waited for: finalizes MPI together with the other ranks.
__attribute__((visibility("default"))) void rt_mpi_close(void);
}

#define RT_MPI_MODULE "communicator_mpi.so"
