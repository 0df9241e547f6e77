// SPDX-License-Identifier: Apache-2.0

#include "ssl/testing/temp_dir.h"

#include <stdlib.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace ssl {

std::string MakeTempDir(absl::string_view name) {
  const std::string root = ::testing::TempDir();
  std::string path = absl::StrCat(absl::StripSuffix(root, "/"), "/", name, "_XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    GTEST_LOG_(FATAL) << "directory " << path << " cannot be made";
  }
  return path;
}

}  // namespace ssl
