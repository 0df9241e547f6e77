// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/image_fuzz.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/data/image/decode_image.h"
#include "ssl/data/image/decode_limits.h"
#include "ssl/data/image/image.h"
#include "tests/fuzz/fuzz_target.h"

namespace ssl::fuzz {
namespace {

constexpr char kFolder[] = "ssl/data/testdata/decode/images";

std::string Folder() {
  const char* const runfiles = std::getenv("TEST_SRCDIR");
  if (runfiles == nullptr) return kFolder;
  return absl::StrCat(runfiles, "/", std::getenv("TEST_WORKSPACE"), "/", kFolder);
}

}  // namespace

void DecodeForFuzz(absl::string_view bytes) {
  static Image* const image = new Image();  // reused, as a loader's thread reuses its own
  DecodeLimits limits;
  limits.max_pixels = 1 << 18;
  const absl::Status status = DecodeImage(bytes, limits, image);
  if (!status.ok()) return;
  CheckFuzz(image->channels() == 3 && image->height() > 0 && image->width() > 0, "a decoded image has a size");
  CheckFuzz(image->size_bytes() <= 3 * limits.max_pixels, "an image keeps the limit");
  // Reads every pixel, so that one which was never written is seen.
  unsigned sum = 0;
  for (int64_t i = 0; i < image->size_bytes(); ++i) sum += image->pixels()[i];
  CheckFuzz(sum <= 255u * static_cast<unsigned>(image->size_bytes()), "pixels are bytes");
}

std::vector<std::string> SampleFiles(absl::string_view suffix) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    if (absl::EndsWith(entry.path().string(), suffix)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> files;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

}  // namespace ssl::fuzz
