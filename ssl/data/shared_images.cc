// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/shared_images.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "ssl/data/dataset_source.h"

namespace ssl {
namespace {

// One number for each path, however its folders are spelled: whatever links, "." and ".." are on the way. Each folder
// costs one look, by which it is no link: the way to it is known by then.
class Paths {
 public:
  size_t Number(const std::string& path) { return absl::HashOf(FolderOf(path).number, NameIn(path)); }

 private:
  using Type = std::filesystem::file_type;
  struct Place {
    size_t number = 0;
    Type type = Type::directory;  // not_found where nobody has looked
  };

  static std::string NameIn(const std::string& path) { return path.substr(path.rfind('/') + 1); }  // npos + 1 is 0

  Place FolderOf(const std::string& path) {
    const size_t slash = path.rfind('/');
    return Find(slash == std::string::npos ? working_directory_ : path.substr(0, slash));
  }

  Place Find(const std::string& path) {
    if (path.empty()) return {};  // "/"
    const auto [known, is_new] = places_.emplace(path, Place());
    Place& place = known->second;  // stays where it is
    if (is_new) place = Look(path);
    return place;
  }

  Place Look(const std::string& path) {
    const Place parent = FolderOf(path);
    const std::string name = NameIn(path);
    Place place{absl::HashOf(parent.number, name), parent.type};
    if (parent.type == Type::regular) return place;  // within a tar file, whose names mean nothing
    if (name.empty() || name == ".") return parent;
    std::error_code unknown;  // then the folder is compared as it is spelled
    place.type =
        parent.type == Type::directory ? std::filesystem::symlink_status(path, unknown).type() : Type::not_found;
    if (place.type != Type::symlink && name != "..") return place;
    const std::string real =
        std::filesystem::weakly_canonical(std::filesystem::absolute(path, unknown), unknown).string();
    return unknown || real == path ? place : Find(real);
  }

  std::error_code no_directory_;
  const std::string working_directory_ = std::filesystem::current_path(no_directory_).string();
  std::unordered_map<std::string, Place> places_;
};

// "sample 17", without the data set, which may be spelled in several ways.
std::string PositionOf(const Dataset& dataset, int64_t index) {
  const std::string name = dataset.SampleName(index);
  return name.substr(0, name.find(" of "));
}

// Of an image, equal for the same one of another data set; none where nothing tells it. An identity alone may be a
// checksum, of which many are equal by chance.
std::optional<size_t> NumberOf(const Dataset& dataset, int64_t index, Paths* paths) {
  const std::string path = dataset.ImagePath(index);
  if (!path.empty()) return paths->Number(path);
  const std::string identity = dataset.SampleIdentity(index);
  if (identity.empty()) return std::nullopt;
  return absl::HashOf(identity, PositionOf(dataset, index));
}

}  // namespace

int64_t CountSharedImages(const Dataset& train, const Dataset& test) {
  Paths paths;
  std::vector<size_t> trained;
  for (int64_t i = 0; i < train.size(); ++i) {
    if (const std::optional<size_t> number = NumberOf(train, i, &paths)) trained.push_back(*number);
  }
  std::sort(trained.begin(), trained.end());
  int64_t shared = 0;
  for (int64_t i = 0; i < test.size(); ++i) {
    const std::optional<size_t> number = NumberOf(test, i, &paths);
    shared += number.has_value() && std::binary_search(trained.begin(), trained.end(), *number) ? 1 : 0;
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
