// SPDX-License-Identifier: Apache-2.0
//
// Zip archives: the directory and every entry.
#include <string>
#include <vector>

#include "ssl/io/testing/zip_builder.h"
#include "ssl/io/zip_reader.h"
#include "tests/fuzz/fuzz_target.h"

namespace ssl::fuzz {
namespace {

constexpr int64_t kMaxContent = 1 << 20;

void ReadEntry(absl::string_view file, const ZipEntry& entry) {
  const bool inside =
      entry.stored.empty() || (entry.stored.data() >= file.data() && entry.stored.end() <= file.data() + file.size());
  CheckFuzz(inside && entry.size >= 0, "an entry lies inside the archive");
  if (!entry.deflated) {
    CheckFuzz(entry.size == static_cast<int64_t>(entry.stored.size()), "a stored entry is as large as it says");
    CheckZipContent(entry, entry.stored).IgnoreError();
  } else if (entry.size <= kMaxContent) {
    const auto content = InflateZipEntry(entry);
    if (!content.ok()) return;
    CheckFuzz(static_cast<int64_t>(content->size()) == entry.size, "a deflated entry is as large as it says");
    CheckZipContent(entry, *content).IgnoreError();
  }
}

}  // namespace

std::vector<std::string> Samples() {
  const std::string repeated(300, 'r');
  ZipItem deflated{"b/data.pkl", repeated};
  deflated.deflate = true;
  ZipItem wide{"c", "content"};
  wide.zip64 = true;
  return {BuildZip({{"archive/a", "stored"}, deflated}), BuildZip({wide}, /*zip64_end=*/true), BuildZip({})};
}

}  // namespace ssl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view file = ssl::fuzz::ToView(data, size);
  ssl::IsZip(file);
  const auto entries = ssl::ReadZipDirectory(file);
  if (!entries.ok()) return 0;
  for (const ssl::ZipEntry& entry : *entries) ssl::fuzz::ReadEntry(file, entry);
  return 0;
}
