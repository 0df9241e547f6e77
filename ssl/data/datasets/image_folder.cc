// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr absl::Duration kReportInterval = absl::Seconds(2);
constexpr size_t kMaxNamedClasses = 5;

bool IsPictureName(absl::string_view name) {
  static constexpr absl::string_view kEndings[] = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                                   ".pgm", ".tif",  ".tiff", ".webp"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](absl::string_view ending) { return absl::EndsWithIgnoreCase(name, ending); });
}

// What lies directly in a folder, sorted.
struct Listing {
  std::vector<std::string> folders;
  std::vector<std::string> pictures;
};

absl::StatusOr<Listing> ListFolder(const std::string& folder) {
  Listing listing;
  std::error_code error;
  // The directory entry knows its kind without a call per file.
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    std::error_code unknown;  // a link that leads nowhere is no folder
    if (entry->is_directory(unknown)) {
      listing.folders.push_back(std::move(name));
    } else if (IsPictureName(name)) {
      listing.pictures.push_back(std::move(name));
    }
  }
  if (error) {
    const std::string message = absl::StrCat(folder, ": cannot list the folder: ", error.message());
    return error == std::errc::no_such_file_or_directory ? absl::NotFoundError(message)
                                                         : absl::FailedPreconditionError(message);
  }
  std::sort(listing.folders.begin(), listing.folders.end());
  std::sort(listing.pictures.begin(), listing.pictures.end());
  return listing;
}

// Tells of a scan that takes long.
class Progress {
 public:
  Progress(const std::string& folder, Clock& clock) : folder_(folder), clock_(clock), start_(clock.Now()) {}

  void Report(int64_t pictures, int64_t folders) {
    const absl::Time now = clock_.Now();
    if (now - last_report_ < kReportInterval || now - start_ < kReportInterval) return;
    last_report_ = now;
    SSL_LOG(INFO) << folder_ << ": " << pictures << " pictures in " << folders << " folders so far";
  }

 private:
  const std::string& folder_;
  Clock& clock_;
  absl::Time start_;
  absl::Time last_report_ = absl::InfinitePast();
};

// Folders below `folder`, itself first, in the order of their paths as text.
absl::Status ListTree(const std::string& root, const std::string& folder,
                      std::vector<std::pair<std::string, Listing>>* tree) {
  SSL_ASSIGN_OR_RETURN(Listing listing, ListFolder(absl::StrCat(root, "/", folder)));
  const std::vector<std::string> below = std::move(listing.folders);
  tree->emplace_back(folder, std::move(listing));
  for (const std::string& name : below) SSL_RETURN_IF_ERROR(ListTree(root, absl::StrCat(folder, "/", name), tree));
  return absl::OkStatus();
}

absl::Status CheckNotEmpty(const std::string& folder, const std::vector<std::string>& empty) {
  if (empty.empty()) return absl::OkStatus();
  const std::vector<std::string> named(empty.begin(), empty.begin() + std::min(empty.size(), kMaxNamedClasses));
  return absl::InvalidArgumentError(
      absl::StrCat(folder, ": ", empty.size(), " class folders hold no picture, expected at least one in each: ",
                   absl::StrJoin(named, ", "), empty.size() > named.size() ? ", ..." : ""));
}

}  // namespace

absl::StatusOr<ImageFolder> ScanImageFolder(const std::string& folder, Clock& clock) {
  const std::string root(absl::StripSuffix(folder, "/"));
  SSL_ASSIGN_OR_RETURN(Listing top, ListFolder(folder));
  if (top.folders.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": holds no folders, expected one for each class with pictures in it"));
  }
  ImageFolder result;
  result.classes = std::move(top.folders);
  result.paths = PathList(absl::StrCat(root, "/"));
  Progress progress(folder, clock);
  int64_t num_folders = 0;
  std::vector<std::string> empty;
  for (size_t label = 0; label < result.classes.size(); ++label) {
    std::vector<std::pair<std::string, Listing>> tree;
    SSL_RETURN_IF_ERROR(ListTree(root, result.classes[label], &tree));
    std::sort(tree.begin(), tree.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const int64_t before = result.paths.size();
    for (const auto& [name, listing] : tree) {
      for (const std::string& picture : listing.pictures) result.paths.Add(absl::StrCat(name, "/", picture));
    }
    if (result.paths.size() == before) empty.push_back(result.classes[label]);
    result.labels.resize(result.paths.size(), static_cast<int64_t>(label));
    num_folders += static_cast<int64_t>(tree.size());
    progress.Report(result.paths.size(), num_folders);
  }
  SSL_RETURN_IF_ERROR(CheckNotEmpty(folder, empty));
  return result;
}

}  // namespace ssl
