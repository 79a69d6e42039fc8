// What communicator_mpi.so exports: the ranks that mpirun started, as a communicator (rt/communicator.h).
//
// A module, so that programs run where MPI is not installed.
#pragma once

#include <rt/communicator.h>

extern "C" {
/// Joins the other ranks. Null, or what went wrong. *made lives until close.
__attribute__((visibility("default"))) const char* rt_mpi_open(const rt_communicator** made);
/// After a failure: returns when operations that were begun do not touch memory any more. No others can be
/// begun; the process should end.
__attribute__((visibility("default"))) void rt_mpi_abandon(void);
/// After all operations were waited for: joins the others in ending.
__attribute__((visibility("default"))) void rt_mpi_close(void);
}

#define RT_MPI_MODULE "communicator_mpi.so"
