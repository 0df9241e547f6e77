// SPDX-License-Identifier: Apache-2.0
//
// An OpenMP runtime in place of libgomp: the functions GOMP_* and omp_* that LibTorch calls, as symbols of the program.
// The dynamic loader prefers those of the program to those of a library. Shares are computed by threads that take over
// for one another (team.h). README.md says why.
#ifndef SSL_OPENMP_OPENMP_RUNTIME_H_
#define SSL_OPENMP_OPENMP_RUNTIME_H_

#include <string>

namespace ssl {

// A program that calls this anywhere has the runtime in it from its start; the others keep libgomp. A compute thread
// that cannot be started ends the process by std::terminate, with std::system_error or std::bad_alloc as the exception:
// LibTorch could not return an error there. libgomp ends the process by exit(1).
void UseOwnOpenMp();

// The variables that libgomp obeys and this runtime does not, of those that the environment sets, joined by ", ". One
// that is "false" asks for nothing.
std::string IgnoredOpenMpVariables();

}  // namespace ssl

#endif  // SSL_OPENMP_OPENMP_RUNTIME_H_
