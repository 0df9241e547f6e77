// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/image_folder.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <set>
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
#include "ssl/io/errno_status.h"

namespace ssl {
namespace {

constexpr absl::Duration kReportInterval = absl::Seconds(2);
constexpr size_t kMaxNamed = 5;

bool IsImageName(absl::string_view name) {
  static constexpr absl::string_view kEndings[] = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                                   ".pgm", ".tif",  ".tiff", ".webp"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](absl::string_view ending) { return absl::EndsWithIgnoreCase(name, ending); });
}

// What lies directly in a folder, sorted.
struct Listing {
  std::vector<std::string> folders;
  std::vector<std::string> hidden_folders;
  std::vector<std::string> images;
};

absl::StatusOr<Listing> ListFolder(const std::string& folder) {
  Listing listing;
  std::error_code error;
  // The directory entry knows its kind without a call per file.
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    std::error_code unknown;  // a link that leads nowhere is no folder
    if (entry->is_directory(unknown)) {
      (name.front() == '.' ? listing.hidden_folders : listing.folders).push_back(std::move(name));
    } else if (IsImageName(name)) {
      listing.images.push_back(std::move(name));
    }
  }
  if (error) {
    const std::string message = absl::StrCat(folder, ": cannot list the folder: ", error.message());
    return error == std::errc::no_such_file_or_directory ? absl::NotFoundError(message)
                                                         : absl::FailedPreconditionError(message);
  }
  std::sort(listing.folders.begin(), listing.folders.end());
  std::sort(listing.hidden_folders.begin(), listing.hidden_folders.end());
  std::sort(listing.images.begin(), listing.images.end());
  return listing;
}

// Tells of a scan that takes long.
class Progress {
 public:
  Progress(const std::string& folder, Clock& clock) : folder_(folder), clock_(clock), start_(clock.Now()) {}

  void Report(int64_t images, int64_t folders) {
    const absl::Time now = clock_.Now();
    if (now - last_report_ < kReportInterval || now - start_ < kReportInterval) return;
    last_report_ = now;
    SSL_LOG(INFO) << folder_ << ": " << images << " images in " << folders << " folders so far";
  }

 private:
  const std::string& folder_;
  Clock& clock_;
  absl::Time start_;
  absl::Time last_report_ = absl::InfinitePast();
};

// "1 hidden folder", "3 hidden folders".
std::string Count(size_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// The first few, and whether there are more.
std::string Named(const std::vector<std::string>& names) {
  const auto end = names.begin() + static_cast<int64_t>(std::min(names.size(), kMaxNamed));
  return absl::StrCat(absl::StrJoin(names.begin(), end, ", "), names.size() > kMaxNamed ? ", ..." : "");
}

// Which folder a path leads to, whatever links are on the way.
using FolderId = std::pair<uint64_t, uint64_t>;  // device, inode

absl::StatusOr<FolderId> IdOf(const std::string& folder) {
  struct stat info;
  if (stat(folder.c_str(), &info) == 0) return FolderId(info.st_dev, info.st_ino);
  return ErrnoStatus(errno, "looking up the folder", folder);
}

// The folder itself and those that it lies in: a link from below to one of them is a circle.
std::set<FolderId> FolderAndAbove(const std::string& folder) {
  std::set<FolderId> ids;
  std::error_code error;
  std::filesystem::path path = std::filesystem::canonical(folder, error);
  for (; !error && !path.empty(); path = path.parent_path()) {
    const absl::StatusOr<FolderId> id = IdOf(path.string());
    // Above "/" is "/".
    if (!id.ok() || !ids.insert(*id).second) break;
  }
  return ids;
}

// The folders of one class.
class ClassTree {
 public:
  // seen: folders that do not count.
  ClassTree(const std::string& root, std::set<FolderId> seen) : root_(root), seen_(std::move(seen)) {}

  // Adds `folder` and those below, each once. Their order is that of a walk; sort them by path.
  absl::Status Add(const std::string& folder) {
    const std::string path = absl::StrCat(root_, "/", folder);
    SSL_ASSIGN_OR_RETURN(const FolderId id, IdOf(path));
    if (!seen_.insert(id).second) {
      repeated_.push_back(folder);
      return absl::OkStatus();
    }
    SSL_ASSIGN_OR_RETURN(Listing listing, ListFolder(path));
    const std::vector<std::string> below = std::move(listing.folders);
    for (const std::string& name : listing.hidden_folders) hidden_.push_back(absl::StrCat(folder, "/", name));
    folders_.emplace_back(folder, std::move(listing));
    for (const std::string& name : below) SSL_RETURN_IF_ERROR(Add(absl::StrCat(folder, "/", name)));
    return absl::OkStatus();
  }

  // By path as text, which is how torchvision sorts them.
  const std::vector<std::pair<std::string, Listing>>& Sorted() {
    std::sort(folders_.begin(), folders_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return folders_;
  }
  // Links to folders that counted already or do not count.
  const std::vector<std::string>& repeated() const { return repeated_; }
  const std::vector<std::string>& hidden() const { return hidden_; }

 private:
  const std::string& root_;
  std::set<FolderId> seen_;
  std::vector<std::pair<std::string, Listing>> folders_;
  std::vector<std::string> repeated_;
  std::vector<std::string> hidden_;
};

absl::Status CheckHasClasses(const std::string& folder, const Listing& top) {
  if (!top.folders.empty()) return absl::OkStatus();
  const std::string found = top.images.empty() ? "" : absl::StrCat(" but ", Count(top.images.size(), "image"));
  return absl::InvalidArgumentError(absl::StrCat(
      folder, ": holds no folders", found, ", expected one for each class with its images in it; for images without ",
      "classes move them into one folder (", folder, "/all), or list their paths in a text file, one a line, and set ",
      "DATA_SOURCES to [disk_filelist] and DATA_PATHS to that file"));
}

absl::Status CheckNotEmpty(const std::string& folder, const std::vector<std::string>& empty) {
  if (empty.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(folder, ": ", Count(empty.size(), "class folder"), empty.size() == 1 ? " holds" : " hold",
                   " no image, expected at least one in each: ", Named(empty), "; move what is no class out of ",
                   folder, ", or give it a name that begins with a dot"));
}

void AddPassedOver(const std::vector<std::string>& names, absl::string_view what, absl::string_view why,
                   ImageFolder* result) {
  if (names.empty()) return;
  result->passed_over.push_back(absl::StrCat(Count(names.size(), what), why, ": ", Named(names)));
}

}  // namespace

absl::StatusOr<ImageFolder> ScanImageFolder(const std::string& folder, Clock& clock) {
  const std::string root(absl::StripSuffix(folder, "/"));
  SSL_ASSIGN_OR_RETURN(Listing top, ListFolder(folder));
  SSL_RETURN_IF_ERROR(CheckHasClasses(folder, top));
  ImageFolder result;
  result.classes = std::move(top.folders);
  result.paths = PathList(absl::StrCat(root, "/"));
  const std::set<FolderId> outside = FolderAndAbove(folder);
  Progress progress(folder, clock);
  int64_t num_folders = 0;
  std::vector<std::string> empty, repeated, hidden = std::move(top.hidden_folders);
  for (size_t label = 0; label < result.classes.size(); ++label) {
    ClassTree tree(root, outside);
    SSL_RETURN_IF_ERROR(tree.Add(result.classes[label]));
    const int64_t before = result.paths.size();
    for (const auto& [name, listing] : tree.Sorted()) {
      for (const std::string& image : listing.images) result.paths.Add(absl::StrCat(name, "/", image));
      ++num_folders;
    }
    if (result.paths.size() == before) empty.push_back(result.classes[label]);
    result.labels.resize(result.paths.size(), static_cast<int64_t>(label));
    repeated.insert(repeated.end(), tree.repeated().begin(), tree.repeated().end());
    hidden.insert(hidden.end(), tree.hidden().begin(), tree.hidden().end());
    progress.Report(result.paths.size(), num_folders);
  }
  SSL_RETURN_IF_ERROR(CheckNotEmpty(folder, empty));
  AddPassedOver(hidden, "hidden folder", "", &result);
  AddPassedOver(repeated, "link", " to a folder above the classes or counted already", &result);
  AddPassedOver(top.images, "image", " beside the class folders", &result);
  return result;
}

}  // namespace ssl
