// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/image_folder.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/utf8.h"
#include "ssl/data/datasets/scan_progress.h"

namespace ssl {
namespace {

constexpr size_t kMaxNamed = 5;
constexpr size_t kLongestPath = 4096;  // of Linux

bool IsImageName(absl::string_view name) {
  static constexpr absl::string_view kEndings[] = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                                   ".pgm", ".tif",  ".tiff", ".webp"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](absl::string_view ending) { return absl::EndsWithIgnoreCase(name, ending); });
}

// Files that are no images, by the end of their names in lower case: ".heic"; "" has none.
using KindCounts = std::map<std::string, int64_t>;

std::string KindOf(absl::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == absl::string_view::npos ? "" : absl::AsciiStrToLower(name.substr(dot));
}

// What lies directly in a folder, sorted.
struct Listing {
  std::vector<std::string> folders;
  std::vector<std::string> hidden_folders;
  std::vector<std::string> links_out;
  std::vector<std::string> images;
  std::vector<std::string> hidden_images;
  KindCounts others;
};

absl::StatusOr<std::vector<DirectoryEntry>> ListEntries(const std::string& folder, const ScanOptions& options) {
  return options.root != nullptr ? options.root->ListEntries(folder) : options.file_system->ListEntries(folder);
}

absl::StatusOr<std::string> Identity(const std::string& folder, const ScanOptions& options) {
  if (options.root == nullptr) return options.file_system->Identity(folder);
  SSL_ASSIGN_OR_RETURN(FolderRoot::Place place, options.root->LookUp(folder));
  return std::move(place.identity);
}

enum class LinkTarget { kFolder, kOther, kOutside };

LinkTarget Follow(const std::string& link, const ScanOptions& options) {
  if (options.root == nullptr) {
    return options.file_system->IsDirectory(link) ? LinkTarget::kFolder : LinkTarget::kOther;
  }
  const absl::StatusOr<FolderRoot::Place> place = options.root->LookUp(link);
  if (absl::IsPermissionDenied(place.status())) return LinkTarget::kOutside;
  return place.ok() && place->is_directory ? LinkTarget::kFolder : LinkTarget::kOther;
}

absl::Status CheckNotStopped(const std::string& folder, const StopToken* stop) {
  if (stop == nullptr || !stop->requested()) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("the scan for images was stopped at ", folder));
}

absl::StatusOr<Listing> ListFolder(const std::string& folder, const ScanOptions& options) {
  SSL_RETURN_IF_ERROR(CheckNotStopped(folder, options.stop));
  SSL_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, ListEntries(folder, options));
  Listing listing;
  for (DirectoryEntry& entry : entries) {
    LinkTarget target = entry.kind == DirectoryEntry::Kind::kDirectory ? LinkTarget::kFolder : LinkTarget::kOther;
    if (entry.kind == DirectoryEntry::Kind::kLink) {
      // A data set made of links costs a call for each image.
      SSL_RETURN_IF_ERROR(CheckNotStopped(folder, options.stop));
      target = Follow(absl::StrCat(folder, "/", entry.name), options);
    }
    if (target == LinkTarget::kFolder) {
      (entry.name.front() == '.' ? listing.hidden_folders : listing.folders).push_back(std::move(entry.name));
    } else if (IsImageName(entry.name)) {
      (entry.name.front() == '.' ? listing.hidden_images : listing.images).push_back(std::move(entry.name));
    } else if (target == LinkTarget::kOutside) {
      listing.links_out.push_back(std::move(entry.name));
    } else if (entry.name.front() != '.') {
      ++listing.others[KindOf(entry.name)];
    }
  }
  return listing;
}

// "1 hidden folder", "3 hidden folders".
std::string Count(size_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

// The first few, and whether there are more.
std::string Named(const std::vector<std::string>& names) {
  const auto end = names.begin() + static_cast<int64_t>(std::min(names.size(), kMaxNamed));
  const std::string first = EscapeForMessage(absl::StrJoin(names.begin(), end, ", "));
  return absl::StrCat(first, names.size() > kMaxNamed ? ", ..." : "");
}

// The identities of the folder itself and those that it lies in: a link from below to one of them is a circle.
std::set<std::string> FolderAndAbove(const std::string& folder, const ScanOptions& options) {
  std::set<std::string> identities;
  // A host's file system may know no top, where each path is another.
  for (std::string path = folder; path.size() <= kLongestPath; path += "/..") {
    absl::StatusOr<std::string> identity = Identity(path, options);
    // Above "/" is "/". What this user cannot look up, or what lies outside, no link leads to either.
    if (!identity.ok() || !identities.insert(*std::move(identity)).second) break;
  }
  return identities;
}

// What does not count.
struct PassedOver {
  std::vector<std::string> hidden;     // folders
  std::vector<std::string> repeated;   // links to folders that counted already or do not count
  std::vector<std::string> links_out;  // of the root
  std::vector<std::string> hidden_images;
  KindCounts others;
};

// What does not count of what lies directly in a folder, whose path and "/" is `prefix`.
void AddRest(const std::string& prefix, const Listing& listing, PassedOver* passed_over) {
  for (const std::string& name : listing.hidden_folders) passed_over->hidden.push_back(prefix + name);
  for (const std::string& name : listing.links_out) passed_over->links_out.push_back(prefix + name);
  for (const std::string& name : listing.hidden_images) passed_over->hidden_images.push_back(prefix + name);
  for (const auto& [kind, count] : listing.others) passed_over->others[kind] += count;
}

// "54 files of kinds that are not read: .heic 30, .gif 24", the most frequent first. others: not empty.
std::string Describe(const KindCounts& others) {
  std::vector<std::pair<int64_t, std::string>> kinds;
  int64_t count = 0;
  for (const auto& [kind, files] : others) {
    kinds.emplace_back(-files, absl::StrCat(kind.empty() ? "without an end" : kind, " ", files));
    count += files;
  }
  std::sort(kinds.begin(), kinds.end());
  std::vector<std::string> texts;
  for (const auto& [files, text] : kinds) texts.push_back(text);
  return absl::StrCat(Count(count, "file"), " of kinds that are not read: ", Named(texts));
}

// The folders of one class.
class ClassTree {
 public:
  // seen: identities of folders that do not count. passed_over: gets what does not count either.
  ClassTree(const std::string& root, std::set<std::string> seen, const ScanOptions& options, PassedOver* passed_over)
      : root_(root), seen_(std::move(seen)), options_(options), passed_over_(*passed_over) {}

  // Adds `folder` and those below, each once. Their order is that of a walk; sort them by path.
  absl::Status Add(const std::string& folder) {
    const std::string path = absl::StrCat(root_, "/", folder);
    SSL_ASSIGN_OR_RETURN(std::string identity, Identity(path, options_));
    if (!seen_.insert(std::move(identity)).second) {
      passed_over_.repeated.push_back(folder);
      return absl::OkStatus();
    }
    SSL_ASSIGN_OR_RETURN(Listing listing, ListFolder(path, options_));
    const std::vector<std::string> below = std::move(listing.folders);
    AddRest(absl::StrCat(folder, "/"), listing, &passed_over_);
    folders_.emplace_back(folder, std::move(listing));
    for (const std::string& name : below) SSL_RETURN_IF_ERROR(Add(absl::StrCat(folder, "/", name)));
    return absl::OkStatus();
  }

  // By path as text, which is how torchvision sorts them.
  const std::vector<std::pair<std::string, Listing>>& Sorted() {
    std::sort(folders_.begin(), folders_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return folders_;
  }

 private:
  const std::string& root_;
  std::set<std::string> seen_;
  const ScanOptions& options_;
  std::vector<std::pair<std::string, Listing>> folders_;
  PassedOver& passed_over_;
};

// Takes links to the root or above it out of `folders`.
std::vector<std::string> TakeLinksBack(const std::string& root, const std::set<std::string>& outside,
                                       const ScanOptions& options, std::vector<std::string>* folders) {
  std::vector<std::string> links;
  const auto leads_back = [&](const std::string& name) {
    if (!CheckNotStopped(root, options.stop).ok()) return false;  // the scan is about to end
    const absl::StatusOr<std::string> identity = Identity(absl::StrCat(root, "/", name), options);
    if (!identity.ok() || outside.count(*identity) == 0) return false;
    links.push_back(name);
    return true;
  };
  folders->erase(std::remove_if(folders->begin(), folders->end(), leads_back), folders->end());
  return links;
}

// The first of the names that a folder has, in any case and with any number behind it, as "train2017"; "": none has it.
std::string FindPart(const std::vector<std::string>& folders, std::initializer_list<absl::string_view> names) {
  for (const absl::string_view name : names) {
    for (const std::string& folder : folders) {
      const absl::string_view stem = absl::string_view(folder).substr(0, folder.find_last_not_of("0123456789") + 1);
      if (absl::EqualsIgnoreCase(stem, name)) return folder;
    }
  }
  return "";
}

// The parts of a data set would be its classes, and the test images be trained on.
absl::Status CheckNotRoot(const std::string& root, const std::vector<std::string>& folders,
                          const ScanOptions& options) {
  const std::string train = FindPart(folders, {"train", "training"});
  const std::string test = FindPart(folders, {"val", "valid", "validation", "test", "testing"});
  if (!train.empty() && !test.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        root, ": looks like the root of a data set, whose parts would be the classes: '", EscapeForMessage(train),
        "' and '", EscapeForMessage(test), "'; expected config.DATA.TRAIN.DATA_PATHS=[", root, "/", train,
        "] and, for the test images, config.DATA.TEST.DATA_PATHS=[", root, "/", test, "]; both together are ",
        "DATA_SOURCES=[disk_folder,disk_folder] and DATA_PATHS=[", root, "/", train, ",", root, "/", test, "]"));
  }
  if (train.empty() || folders.size() > 1) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const Listing below, ListFolder(absl::StrCat(root, "/", train), options));
  if (below.folders.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(root, ": looks like the root of a data set, whose one part would be the one class: '",
                   EscapeForMessage(train), "'; expected DATA_PATHS=[", root, "/", train, "], whose ",
                   Count(below.folders.size(), "folder"), " would be classes"));
}

// Images without classes. A walk into folders would find none: there are none.
ImageFolder OfImagesAlone(const std::string& root, const Listing& top) {
  ImageFolder result;
  result.paths = PathList(absl::StrCat(root, "/"));
  for (const std::string& image : top.images) result.paths.Add(image);
  return result;
}

constexpr char kLinksOut[] = " with a target that is closed or outside PATHS_BELOW";

absl::Status HasNothing(const std::string& folder, const Listing& top) {
  std::vector<std::string> rest;
  if (!top.links_out.empty()) {
    rest.push_back(absl::StrCat(Count(top.links_out.size(), "link"), kLinksOut, ": ", Named(top.links_out)));
  }
  if (!top.others.empty()) rest.push_back(Describe(top.others));
  return absl::InvalidArgumentError(
      absl::StrCat(folder, ": holds neither folders nor images, expected a folder for each class with its images in ",
                   "it, or images without classes", rest.empty() ? "" : "; it has ", absl::StrJoin(rest, ", and ")));
}

absl::Status CheckNotEmpty(const std::string& folder, const std::vector<std::string>& empty, const KindCounts& others) {
  if (empty.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(folder, ": ", Count(empty.size(), "class folder"), empty.size() == 1 ? " holds" : " hold",
                   " no image, expected at least one in each: ", Named(empty), "; move what is no class out of ",
                   folder, ", or give it a name that begins with a dot",
                   others.empty() ? "" : absl::StrCat("; passed over: ", Describe(others))));
}

void AddPassedOver(const std::vector<std::string>& names, absl::string_view what, absl::string_view why,
                   ImageFolder* result) {
  if (names.empty()) return;
  result->passed_over.push_back(absl::StrCat(Count(names.size(), what), why, ": ", Named(names)));
}

void AddPassedOver(const PassedOver& passed_over, ImageFolder* result) {
  AddPassedOver(passed_over.hidden, "hidden folder", "", result);
  AddPassedOver(passed_over.hidden_images, "hidden image", "", result);
  AddPassedOver(passed_over.repeated, "link", " to a folder above the classes or counted already", result);
  AddPassedOver(passed_over.links_out, "link", kLinksOut, result);
  if (!passed_over.others.empty()) result->passed_over.push_back(Describe(passed_over.others));
}

}  // namespace

absl::StatusOr<ImageFolder> ScanImageFolder(const std::string& folder, const ScanOptions& options) {
  const std::string root(absl::StripSuffix(folder, "/"));
  SSL_ASSIGN_OR_RETURN(Listing top, ListFolder(folder, options));
  const std::set<std::string> outside = FolderAndAbove(folder, options);
  PassedOver passed_over;
  passed_over.repeated = TakeLinksBack(root, outside, options, &top.folders);
  AddRest("", top, &passed_over);
  ImageFolder result;
  if (top.folders.empty()) {
    if (top.images.empty()) return HasNothing(folder, top);
    result = OfImagesAlone(root, top);
    AddPassedOver(passed_over, &result);
    return result;
  }
  SSL_RETURN_IF_ERROR(CheckNotRoot(root, top.folders, options));
  result.classes = std::move(top.folders);
  result.paths = PathList(absl::StrCat(root, "/"));
  ScanProgress progress(folder, *options.clock);
  int64_t num_folders = 0;
  std::vector<std::string> empty;
  for (size_t label = 0; label < result.classes.size(); ++label) {
    ClassTree tree(root, outside, options, &passed_over);
    SSL_RETURN_IF_ERROR(tree.Add(result.classes[label]));
    const int64_t before = result.paths.size();
    for (const auto& [name, listing] : tree.Sorted()) {
      for (const std::string& image : listing.images) result.paths.Add(absl::StrCat(name, "/", image));
      ++num_folders;
    }
    if (result.paths.size() == before) empty.push_back(result.classes[label]);
    result.labels.resize(result.paths.size(), static_cast<int64_t>(label));
    progress.Report([&] { return absl::StrCat(result.paths.size(), " images in ", num_folders, " folders"); });
  }
  SSL_RETURN_IF_ERROR(CheckNotEmpty(folder, empty, passed_over.others));
  AddPassedOver(passed_over, &result);
  AddPassedOver(top.images, "image", " beside the class folders", &result);
  return result;
}

}  // namespace ssl
