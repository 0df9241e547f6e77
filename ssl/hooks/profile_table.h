// SPDX-License-Identifier: Apache-2.0
//
// What a recording has spent its time in, as a table for people. Pure functions.
#ifndef SSL_HOOKS_PROFILE_TABLE_H_
#define SSL_HOOKS_PROFILE_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace ssl {

struct ProfiledEvent {
  enum class Kind {
    kOperator,  // on the host; those that it calls lie within it, on the same thread
    kRange,     // on the host: a part of the program with a name, such as a step
    kKernel,    // on the device: a kernel, copy or fill
  };
  std::string name;
  Kind kind = Kind::kOperator;
  uint64_t thread = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

// The ten names that took most, each with its share of all, its milliseconds, how often it ran, and the name: of
// kernels where there are any, else of operators, each without those that it called. "" without either.
std::string ProfileTable(const std::vector<ProfiledEvent>& events);

}  // namespace ssl

#endif  // SSL_HOOKS_PROFILE_TABLE_H_
