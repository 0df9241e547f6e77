// SPDX-License-Identifier: Apache-2.0
//
// Counts what a test asks memory for: a program that links this has an operator new that counts.
#ifndef SSL_TESTING_ALLOCATION_COUNT_H_
#define SSL_TESTING_ALLOCATION_COUNT_H_

#include <cstdint>

namespace ssl {

// Calls of operator new so far, of all threads. Thread-safe.
int64_t AllocationCount();

// What operator new has given and operator delete not taken back, in bytes. Thread-safe.
int64_t AllocatedBytes();

}  // namespace ssl

#endif  // SSL_TESTING_ALLOCATION_COUNT_H_
