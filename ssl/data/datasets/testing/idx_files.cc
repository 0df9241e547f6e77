// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/testing/idx_files.h"

#include "gtest/gtest.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {

std::string IdxBytes(const std::vector<uint32_t>& shape, absl::string_view values) {
  constexpr char kUnsignedBytes[] = {0, 0, 8};
  std::string bytes(kUnsignedBytes, sizeof(kUnsignedBytes));
  bytes.push_back(static_cast<char>(shape.size()));
  for (const uint32_t dimension : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(dimension >> shift));
  }
  bytes.append(values.data(), values.size());
  return bytes;
}

std::string IdxImages(int count, int base) {
  std::string values;
  for (int i = 0; i < count; ++i) values.append(4, static_cast<char>(base + i));
  return IdxBytes({static_cast<uint32_t>(count), 2, 2}, values);
}

std::string IdxLabels(int count) {
  std::string values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<char>(i));
  return IdxBytes({static_cast<uint32_t>(count)}, values);
}

std::string MakeIdxFolder() {
  const std::string folder = MakeTempDir("idx");
  const auto write = [&folder](const char* name, const std::string& bytes) {
    EXPECT_OK(WriteFileAtomically(PosixFileSystem(), folder + name, bytes));
  };
  write("/train-images-idx3-ubyte", IdxImages(3, 100));
  write("/train-labels-idx1-ubyte", IdxLabels(3));
  write("/t10k-images-idx3-ubyte", IdxImages(2, 200));
  write("/t10k-labels-idx1-ubyte", IdxLabels(2));
  return folder;
}

}  // namespace ssl
