// SPDX-License-Identifier: Apache-2.0
//
// The binary files of CIFAR-10 and CIFAR-100. The first byte of an input chooses the kind.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/data/datasets/binary_dataset.h"
#include "ssl/data/sample.h"
#include "ssl/io/file_system.h"
#include "tests/fuzz/fuzz_target.h"

namespace ssl::fuzz {

std::vector<std::string> Samples() {
  const std::string pixels(3072, 'p');
  return {absl::StrCat("0", "\x09", pixels), absl::StrCat("0", "\x01", pixels, "\x02", pixels),
          absl::StrCat("1", "\x13\x63", pixels)};
}

}  // namespace ssl::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool hundred = data[0] % 2 == 1;
  // Readers look for their file in a folder.
  const std::string path =
      ssl::fuzz::WriteFuzzFile(ssl::fuzz::ToView(data + 1, size - 1), hundred ? "test.bin" : "test_batch.bin");
  const std::string folder = path.substr(0, path.rfind('/'));
  ssl::FileSystem& files = ssl::PosixFileSystem();
  const auto dataset =
      hundred ? ssl::ReadCifar100(files, folder, /*test=*/true) : ssl::ReadCifar10(files, folder, /*test=*/true);
  if (!dataset.ok()) return 0;
  ssl::Sample sample;
  for (int64_t i = 0; i < (*dataset)->size(); ++i) {
    sample.ResetViews(1);
    ssl::fuzz::CheckFuzz((*dataset)->Get(i, &sample).ok(), "every sample of a data set can be read");
    ssl::fuzz::CheckFuzz(sample.label >= 0 && sample.label < (hundred ? 100 : 10), "a label is a class");
    ssl::fuzz::CheckFuzz(sample.view(0).image.size_bytes() == 3072, "an image has its size");
  }
  return 0;
}
