// Control of libfaults.so from a program that is linked with it. By environment variables: see faults.cpp.
#pragma once

extern "C" {

/// From now on, counts the calls `call` ("malloc", "write", ...) of this process, from 1; the first `times`
/// of them from number `at` on fail with `error` (0: the usual one). at = 0 only counts.
void rt_faults_start(const char* call, long at, long times, int error);
/// No further call fails.
void rt_faults_stop(void);
/// Calls counted, and those that failed, since rt_faults_start().
long rt_faults_counted(void);
long rt_faults_failed(void);

}  // extern "C"
