// SPDX-License-Identifier: Apache-2.0
//
// PNG files.
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/image_fuzz.h"

namespace ssl::fuzz {

std::vector<std::string> Samples() { return SampleFiles(".png"); }

}  // namespace ssl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ssl::fuzz::DecodeForFuzz(ssl::fuzz::ToView(data, size));
  return 0;
}
