// Exports of communicator_mpi.so: the ranks that mpirun started, as a communicator (rt/communicator.h).
//
// A separate module, so that programs run where MPI is not installed.
#pragma once

#include <rt/communicator.h>

extern "C" {
/// After which time the others give a rank up.
struct rt_mpi_limits {
  double answer_seconds;  ///< without a sign of life: it is stopped, or its machine cannot be reached
  double wait_seconds;    ///< it answers, but the others wait for it; 0: no limit
};

/// Connects to the other ranks. Returns null or an error message. *made is valid until close. After an error
/// the process should end with _exit: threads of MPI may still run.
__attribute__((visibility("default"))) const char* rt_mpi_open(const rt_mpi_limits* limits,
                                                               const rt_communicator** made);
/// After a failure: returns once started operations no longer access memory. No others can be started; the
/// process should end with _exit.
__attribute__((visibility("default"))) void rt_mpi_abandon(void);
/// After all operations were waited for: finalizes MPI together with the other ranks. Returns null or an
/// error message, after which the process should end with _exit.
__attribute__((visibility("default"))) const char* rt_mpi_close(void);
}

#define RT_MPI_MODULE "communicator_mpi.so"
