// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/manifest_rows.h"

#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ssl {
namespace {

TEST(ManifestRowsTest, FilesComeBack_WithoutThePadding) {
  const std::vector<ManifestEntry> files = {
      {"model.safetensors", std::numeric_limits<int64_t>::max(), std::numeric_limits<uint32_t>::max()},
      {std::string(kMaxFileName, 'x'), 0, 0},
      {"\xC3\xA9.json", 1, 2}};  // bytes above 127
  const at::Tensor rows = RowsFromFiles(files, 5);
  EXPECT_EQ(rows.size(0), 5);
  const std::vector<ManifestEntry> back = FilesFromRows(rows);
  ASSERT_EQ(back.size(), files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(back[i].file, files[i].file);
    EXPECT_EQ(back[i].size, files[i].size);
    EXPECT_EQ(back[i].crc32c, files[i].crc32c);
  }
}

TEST(ManifestRowsTest, NoFile_IsPaddingAlone) { EXPECT_TRUE(FilesFromRows(RowsFromFiles({}, 3)).empty()); }

}  // namespace
}  // namespace ssl
