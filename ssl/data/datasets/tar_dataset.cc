// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/tar_dataset.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "ssl/base/crc32c.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/utf8.h"
#include "ssl/data/data_options.h"
#include "ssl/data/datasets/dataset_path.h"
#include "ssl/data/datasets/tar_index.h"

namespace ssl {
namespace {

constexpr char kTarEnding[] = ".tar";
constexpr int64_t kMaxShards = 1000000;

// "a-{008..010}.tar" is a-008.tar, a-009.tar and a-010.tar; a path without braces is itself.
absl::StatusOr<std::vector<std::string>> ExpandBraces(const std::string& pattern) {
  const size_t open = pattern.find('{');
  if (open == std::string::npos) return std::vector<std::string>{pattern};
  const size_t dots = pattern.find("..", open);
  const size_t close = pattern.find('}', open);
  int64_t first = 0, last = 0;
  const bool valid = dots < close && close != std::string::npos &&
                     absl::SimpleAtoi(pattern.substr(open + 1, dots - open - 1), &first) &&
                     absl::SimpleAtoi(pattern.substr(dots + 2, close - dots - 2), &last) && first >= 0 &&
                     last >= first && last - first < kMaxShards;
  if (!valid) {
    return absl::InvalidArgumentError(
        absl::StrCat(pattern, ": expected two numbers in the braces that do not fall, ", "as in train-{000..146}.tar"));
  }
  std::vector<std::string> paths;
  const auto digits = static_cast<int>(dots - open - 1);
  for (int64_t number = first; number <= last; ++number) {
    paths.push_back(absl::StrFormat("%s%0*d%s", pattern.substr(0, open), digits, number, pattern.substr(close + 1)));
  }
  return paths;
}

// Like the images, within PATHS_BELOW where that is set.
absl::StatusOr<std::vector<std::string>> ListShards(const std::string& path, const EncodedImageOptions& options) {
  FileSystem& file_system = *options.file_system;
  if (!file_system.IsDirectory(path)) return ExpandBraces(path);
  SSL_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries,
                       options.root == nullptr ? file_system.ListEntries(path) : options.root->ListEntries(path));
  std::vector<std::string> shards;
  for (const DirectoryEntry& entry : entries) {
    if (absl::EndsWith(entry.name, kTarEnding)) shards.push_back(absl::StrCat(path, "/", entry.name));
  }
  if (!shards.empty()) return shards;
  return absl::InvalidArgumentError(absl::StrCat(path, ": holds no file that ends in ", kTarEnding));
}

// The same file under two names would count its samples twice.
absl::Status CheckDifferent(const std::vector<std::string>& shards, FileSystem& file_system) {
  std::map<std::string, std::string> seen;
  for (const std::string& shard : shards) {
    SSL_ASSIGN_OR_RETURN(std::string identity, file_system.Identity(shard));
    const auto [first, is_new] = seen.emplace(std::move(identity), shard);
    if (is_new) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(shard, " and ", first->second, " are the same file, expected each shard once"));
  }
  return absl::OkStatus();
}

// A copy of a shard under another name counts its samples twice as well, but shards of equal names and sizes may
// differ.
class Copies {
 public:
  void Look(const std::string& shard, const TarIndex& index) {
    uint32_t names = 0;
    int64_t bytes = 0;
    for (const TarSample& sample : index.samples) {
      names = ExtendCrc32c(names, absl::StrCat(sample.name, "/", sample.size, "/", sample.label, "\n"));
      bytes += sample.size;
    }
    const auto [first, is_new] = seen_.emplace(std::make_tuple(names, bytes, index.samples.size()), shard);
    if (is_new || index.samples.empty()) return;
    SSL_LOG(WARNING) << shard << " and " << first->second << " hold " << index.samples.size()
                     << " images of the same names, sizes and labels: where one is a copy, take it out; its images "
                     << "count twice";
  }

 private:
  std::map<std::tuple<uint32_t, int64_t, size_t>, std::string> seen_;
};

// The samples of all shards.
struct Shards {
  std::vector<TarShard> files;
  std::vector<TarPlace> places;
  PathList names;
  std::vector<int64_t> labels;
  // What does not count.
  int64_t without_image = 0;
  int64_t unknown = 0;
  int64_t other = 0;
  int64_t unread_json = 0;
  int64_t second_images = 0;
  std::string first_unread_json;
  std::string first_second_image;
  std::string first_dotted;

  void Add(size_t shard, const TarIndex& index) {
    for (const TarSample& sample : index.samples) {
      places.push_back({static_cast<int32_t>(shard), sample.offset, sample.size});
      names.Add(sample.name);
      labels.push_back(sample.label);
    }
    without_image += index.samples_without_image;
    unknown += index.unknown_members;
    other += index.other_members;
    unread_json += index.unread_json;
    second_images += index.second_images;
    if (first_second_image.empty()) first_second_image = index.first_second_image;
    if (first_unread_json.empty()) first_unread_json = index.first_unread_json;
    if (first_dotted.empty()) first_dotted = index.first_dotted;
  }

  // Why there may be fewer images than names that end like one.
  std::string DottedText() const {
    return first_dotted.empty() ? ""
                                : absl::StrCat("; what follows the first dot of a name says what it is, as WebDataset ",
                                               "has it: '", EscapeForMessage(first_dotted), "' is none");
  }
};

// All samples have labels, or none.
absl::Status CheckLabels(Shards* shards) {
  const auto unlabelled = std::find(shards->labels.begin(), shards->labels.end(), -1);
  if (unlabelled == shards->labels.end()) return absl::OkStatus();
  const bool none = std::all_of(shards->labels.begin(), shards->labels.end(), [](int64_t label) { return label < 0; });
  if (none) {
    shards->labels.clear();
    return absl::OkStatus();
  }
  const int64_t index = unlabelled - shards->labels.begin();
  return absl::InvalidArgumentError(absl::StrCat(
      shards->files[shards->places[index].shard].path, ": '", EscapeForMessage(shards->names[index]),
      "' has no label, but ", "others have; expected .cls, or \"label\" in .json, for all samples or for none",
      shards->unread_json == 0 ? "" : absl::StrCat("; ", shards->first_unread_json)));
}

absl::StatusOr<Shards> ReadShards(const std::string& path, const EncodedImageOptions& options,
                                  const BuildContext& context) {
  Shards shards;
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListShards(path, options));
  SSL_RETURN_IF_ERROR(CheckDifferent(paths, context.file_system));
  Copies copies;
  for (const std::string& shard : paths) {
    // The file first, whose path may be refused; then the stamp, before the headers that it is of.
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, OpenImageFile(options, shard));
    SSL_ASSIGN_OR_RETURN(const FileStamp stamp, StampOfImageFile(options, shard));
    SSL_ASSIGN_OR_RETURN(const TarIndex index, ReadTarIndex(*file, shard, context.stop));
    copies.Look(shard, index);
    shards.Add(shards.files.size(), index);
    shards.files.push_back({shard, stamp});
  }
  if (shards.places.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no member of ", paths.size(),
                                                   " tar files has .jpg, .jpeg, .png or .webp behind its name",
                                                   shards.DottedText()));
  }
  SSL_RETURN_IF_ERROR(CheckLabels(&shards));
  return shards;
}

std::vector<std::string> Rest(const Shards& shards) {
  std::vector<std::string> rest;
  if (shards.unread_json > 0) {
    rest.push_back(
        absl::StrCat(shards.unread_json, " .json members, which give no label, the first: ", shards.first_unread_json));
  }
  if (shards.second_images > 0) {
    rest.push_back(absl::StrCat(shards.second_images, " further images of samples that have one (of .jpg, .jpeg, .png ",
                                "and .webp the first in this order is read), the first: ", shards.first_second_image));
  }
  if (shards.without_image > 0 || shards.unknown > 0 || shards.other > 0) {
    rest.push_back(absl::StrCat(shards.without_image, " samples without an image, ", shards.unknown,
                                " members that are neither image nor label, ", shards.other, " links and the like, of ",
                                shards.files.size(), " tar files", shards.DottedText()));
  }
  return rest;
}

}  // namespace

TarDataset::TarDataset(std::vector<TarShard> shards, std::vector<TarPlace> places, PathList names,
                       std::vector<int64_t> labels, EncodedImageOptions options)
    : EncodedImageDataset(static_cast<int64_t>(places.size()), std::move(labels), std::move(options)),
      shards_(std::move(shards)),
      places_(std::move(places)),
      names_(std::move(names)) {}

std::string TarDataset::ImagePath(int64_t index) const {
  return absl::StrCat(shards_[places_[index].shard].path, "/", names_[index]);
}

std::string TarDataset::SampleIdentity(int64_t index) const {
  const TarPlace& place = places_[index];
  const absl::string_view shard = shards_[place.shard].path;
  return absl::StrCat(shard.substr(shard.rfind('/') + 1), "/", absl::CHexEscape(names_[index]), " of ", place.size,
                      " bytes");
}

absl::StatusOr<std::unique_ptr<Dataset>> MakeTarShards(const ConfigNode& data_split, const BuildContext& context) {
  SSL_ASSIGN_OR_RETURN(const DataSplitOptions split, ReadDataSplit(data_split, context.config));
  const std::vector<std::string> below =
      split.split == "test" ? std::vector<std::string>{"val", "test"} : std::vector<std::string>{"train"};
  SSL_ASSIGN_OR_RETURN(const std::string path,
                       FindDatasetPath("DATA_PATHS", split.data_paths, below, split, data_split, context));
  SSL_ASSIGN_OR_RETURN(EncodedImageOptions options, ReadEncodedImageOptions(split, data_split, context));
  absl::StatusOr<Shards> shards = ReadShards(path, options, context);
  if (!shards.ok()) return Annotate(shards.status(), SplitKey(data_split, context.config, "DATA_PATHS"));
  options.passed_over = Rest(*shards);
  options.description = path;
  return std::make_unique<TarDataset>(std::move(shards->files), std::move(shards->places), std::move(shards->names),
                                      std::move(shards->labels), std::move(options));
}

}  // namespace ssl
