// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/named_files.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(NamedFiles, EachIsNamedOnce_AndAFewOfASource) {
  NamedFiles files;
  for (size_t i = 0; i < NamedFiles::kMostOfSource; ++i) {
    EXPECT_TRUE(files.Add("/a", absl::StrCat(i, ".jpg: empty")));
    EXPECT_FALSE(files.Add("/a", absl::StrCat(i, ".jpg: empty")));
  }
  EXPECT_FALSE(files.Add("/a", "new.jpg: empty"));
  EXPECT_TRUE(files.Add("/b", "0.jpg: empty"));
}

TEST(NamedFiles, ManySources_AreForgotten) {
  NamedFiles files;
  EXPECT_TRUE(files.Add("first", "0.jpg"));
  for (size_t i = 1; i < NamedFiles::kMostSources; ++i) EXPECT_TRUE(files.Add(absl::StrCat(i), "0.jpg"));
  EXPECT_FALSE(files.Add("first", "0.jpg"));
  EXPECT_TRUE(files.Add("one more", "0.jpg"));
  EXPECT_TRUE(files.Add("first", "0.jpg"));
}

}  // namespace
}  // namespace ssl
