// SPDX-License-Identifier: Apache-2.0
//
// The pickle inside an archive of torch.save: the input stands in a sound archive, so that changes reach the pickle.
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/torch_samples.h"

namespace ssl::fuzz {

std::vector<std::string> Samples() { return SamplePickles(); }

}  // namespace ssl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ssl::fuzz::ReadTorchBytes(ssl::fuzz::ArchiveOf(ssl::fuzz::ToView(data, size)));
  return 0;
}
