// SPDX-License-Identifier: Apache-2.0
#include "tests/reliability/resume/tensor_files.h"

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {

std::vector<std::pair<std::string, std::string>> TensorFiles(const std::string& directory, int64_t step) {
  const std::string path = absl::StrCat(directory, "/checkpoints/step_", step);
  std::vector<std::pair<std::string, std::string>> files;
  const absl::StatusOr<std::vector<std::string>> names = PosixFileSystem().List(path);
  EXPECT_OK(names);
  if (!names.ok()) return files;
  for (const std::string& name : *names) {
    if (absl::EndsWith(name, ".safetensors")) files.emplace_back(name, *PosixFileSystem().Read(path + "/" + name));
  }
  return files;
}

}  // namespace ssl
