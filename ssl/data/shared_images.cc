// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/shared_images.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "ssl/data/dataset_source.h"

namespace ssl {
namespace {

bool AreTheSame(const Dataset& train, const Dataset& test) {
  const int64_t last = train.size() - 1;
  if (last < 0 || test.size() != train.size()) return false;
  const std::string first = train.SampleIdentity(0);
  return !first.empty() && first == test.SampleIdentity(0) && train.SampleIdentity(last) == test.SampleIdentity(last);
}

// One number for each path, whose folder is told without links, "." and "..".
class Paths {
 public:
  size_t Number(const std::string& path) {
    const size_t slash = std::min(path.rfind('/'), path.size());
    const std::string folder = path.substr(0, slash);
    const auto [known, is_new] = folders_.emplace(folder, "");
    if (is_new) {
      std::error_code unknown;  // then the folder is compared as it is spelled
      known->second = std::filesystem::weakly_canonical(std::filesystem::absolute(folder, unknown), unknown).string();
      if (unknown) known->second = folder;
    }
    return absl::HashOf(known->second, path.substr(slash));
  }

 private:
  std::map<std::string, std::string> folders_;
};

}  // namespace

int64_t CountSharedImages(const Dataset& train, const Dataset& test) {
  if (train.size() == 0 || test.size() == 0) return 0;
  if (train.ImagePath(0).empty() || test.ImagePath(0).empty()) return AreTheSame(train, test) ? test.size() : 0;
  Paths paths;
  std::vector<size_t> trained;
  for (int64_t i = 0; i < train.size(); ++i) trained.push_back(paths.Number(train.ImagePath(i)));
  std::sort(trained.begin(), trained.end());
  int64_t shared = 0;
  for (int64_t i = 0; i < test.size(); ++i) {
    shared += std::binary_search(trained.begin(), trained.end(), paths.Number(test.ImagePath(i))) ? 1 : 0;
  }
  return shared;
}

int64_t CountSharedImages(const BatchSource& train, const BatchSource& test) {
  const auto* train_images = dynamic_cast<const DatasetSource*>(&train);
  const auto* test_images = dynamic_cast<const DatasetSource*>(&test);
  if (train_images == nullptr || test_images == nullptr) return 0;
  return CountSharedImages(train_images->dataset(), test_images->dataset());
}

std::string SharedImagesSentence(int64_t shared, int64_t test_images) {
  if (shared == 0) return "";
  return absl::StrCat(shared, " of the ", test_images, " test images ",
                      shared == 1 ? "is a training image" : "are training images",
                      ", so that the figures say little about new images; config.DATA.TEST.DATA_PATHS names others");
}

}  // namespace ssl
