// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/original_images.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "ssl/data/dataset.h"

namespace ssl {
namespace {

// One image of class 1.
class OneImage : public Dataset {
 public:
  OneImage(std::string path, std::vector<std::string> classes) : path_(std::move(path)), classes_(std::move(classes)) {}

  int64_t size() const override { return 1; }
  bool has_labels() const override { return true; }
  std::string description() const override { return "one image"; }
  absl::Status Get(int64_t index, Sample* sample) const override { return absl::OkStatus(); }
  std::string ImagePath(int64_t index) const override { return path_; }
  int64_t Label(int64_t index) const override { return 1; }
  absl::Span<const std::string> ClassNames() const override { return classes_; }

 private:
  const std::string path_;
  const std::vector<std::string> classes_;
};

std::string ShortName(const std::string& path, std::vector<std::string> classes = {}) {
  return OriginalImages(OneImage(path, std::move(classes))).ShortName(0);
}

TEST(OriginalImages, ShortName_HasTheClass) {
  EXPECT_EQ(ShortName("/photos/cat/001.jpg", {"ant", "cat"}), "cat/001.jpg");
  EXPECT_EQ(ShortName("/photos/cat/2021/may/001.jpg", {"ant", "cat"}), "cat/001.jpg");
  EXPECT_EQ(ShortName("", {"ant", "cat"}), "cat/image 0");
}

TEST(OriginalImages, ShortName_WithoutNamesOfClassesHasTheFolder) {
  EXPECT_EQ(ShortName("/photos/2021/001.jpg"), "2021/001.jpg");
  EXPECT_EQ(ShortName("/001.jpg"), "/001.jpg");
  EXPECT_EQ(ShortName("001.jpg"), "001.jpg");
  EXPECT_EQ(ShortName(""), "image 0");
}

}  // namespace
}  // namespace ssl
