// SPDX-License-Identifier: Apache-2.0
//
// An OpenMP runtime in place of libgomp: the functions GOMP_* and omp_* that LibTorch calls, as symbols of the program.
// The dynamic loader prefers those of the program to those of a library. Shares are computed by threads that take over
// for one another (team.h). README.md says why.
#ifndef SSL_OPENMP_OPENMP_RUNTIME_H_
#define SSL_OPENMP_OPENMP_RUNTIME_H_

namespace ssl {

// A program that calls this anywhere has the runtime in it from its start; the others keep libgomp. on_no_thread is
// called with the reason when a compute thread cannot be started, and must not return; libgomp ends the process there.
// Call it once, before LibTorch computes.
void UseOwnOpenMp(void (*on_no_thread)(const char* reason));

}  // namespace ssl

#endif  // SSL_OPENMP_OPENMP_RUNTIME_H_
