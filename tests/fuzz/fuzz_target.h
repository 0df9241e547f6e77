// SPDX-License-Identifier: Apache-2.0
//
// What a fuzz target defines: the parser's entry point, as libFuzzer calls it, and valid inputs to start from.
//
// A target's .cc is linked into three programs (fuzz.bzl): the fuzzer, a writer of its seeds, and a plain test that
// replays the seeds and all findings. An input that breaks a promise ends the program: CheckFuzz.
#ifndef SSL_TESTS_FUZZ_FUZZ_TARGET_H_
#define SSL_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// The name and signature are libFuzzer's. Returns 0.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace ssl::fuzz {

// Valid inputs of the target, at least one.
std::vector<std::string> Samples();

// The samples, then copies of them that were damaged by a fixed sequence of random changes; `count` in all, or all
// samples when there are more. Equal calls give equal seeds.
std::vector<std::string> MakeSeeds(const std::vector<std::string>& samples, size_t count);

inline absl::string_view ToView(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the program with `promise` on stderr when it does not hold.
void CheckFuzz(bool holds, absl::string_view promise);

// Writes `bytes` to a file of that name, in a folder of this process, and returns its path: for readers that take a
// path. The folder lies in memory where the machine has such a place, and goes away with the program.
std::string WriteFuzzFile(absl::string_view bytes, absl::string_view name);

}  // namespace ssl::fuzz

#endif  // SSL_TESTS_FUZZ_FUZZ_TARGET_H_
