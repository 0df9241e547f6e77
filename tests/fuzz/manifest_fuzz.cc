// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint's manifest. What was read is written and reads back equal.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/io/manifest.h"
#include "tests/fuzz/fuzz_target.h"

namespace ssl::fuzz {

std::vector<std::string> Samples() {
  Manifest one;
  one.iteration = 20;
  one.world_size = 1;
  one.config_hash = "0123456789abcdef";
  one.files = {{"model.safetensors", 44, 0xDEADBEEF}, {"state_rank0.safetensors", 0, 0}};
  Manifest none;
  none.world_size = 8;
  return {ManifestToJson(one), ManifestToJson(none)};
}

}  // namespace ssl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto manifest = ssl::ParseManifest(ssl::fuzz::ToView(data, size), "MANIFEST.json");
  if (!manifest.ok()) return 0;
  for (const ssl::ManifestEntry& entry : manifest->files) {
    const bool plain = !entry.file.empty() && entry.file != ".." && entry.file.find('/') == std::string::npos;
    ssl::fuzz::CheckFuzz(plain && entry.size >= 0, "a file of a manifest lies beside it");
  }
  const std::string text = ssl::ManifestToJson(*manifest);
  const auto again = ssl::ParseManifest(text, "again");
  ssl::fuzz::CheckFuzz(again.ok(), absl::StrCat("what was written reads back: ", again.status().ToString()));
  ssl::fuzz::CheckFuzz(ssl::ManifestToJson(*again) == text, "what was written reads back equal");
  return 0;
}
