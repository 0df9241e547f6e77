// SPDX-License-Identifier: Apache-2.0
//
// Whole files of torch.save: archives, and the format before torch 1.6.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/io/testing/pickle_builder.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/torch_samples.h"

namespace ssl::fuzz {
namespace {

// One tensor [2, 2] of a storage of 4 floats.
std::string LegacyFile() {
  return absl::StrCat(std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15),
                      PickleOf(PickleInt(1001)), PickleOf(absl::StrCat("}", PickleText("little_endian"), "\x88s")),
                      PickleOf(PickleTensor(PickleStorage("FloatStorage", "94", 4), 0, {2, 2}, {2, 1})),
                      PickleOf(absl::StrCat("](", PickleText("94"), "e")), PickleRaw(int64_t{4}), "0123456789abcdef");
}

}  // namespace

std::vector<std::string> Samples() {
  std::vector<std::string> files = {LegacyFile()};
  for (const std::string& pickle : SamplePickles()) files.push_back(ArchiveOf(pickle));
  return files;
}

}  // namespace ssl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ssl::fuzz::ReadTorchBytes(ssl::fuzz::ToView(data, size));
  return 0;
}
