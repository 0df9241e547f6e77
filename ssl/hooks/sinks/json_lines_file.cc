// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/sinks/json_lines_file.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

using Json = nlohmann::json;

struct KeptLines {
  std::string text;
  int unreadable = 0;
};

// What says of a file's reports which of a place they are.
struct ReportKeys {
  const std::vector<std::string>& place;
  const std::string& anywhere;

  bool Identify(const std::string& key) const {
    return std::find(place.begin(), place.end(), key) == place.end() && !absl::StartsWith(key, anywhere);
  }
};

// Whether both reports have a value of the same name that tells which they are.
bool ShareValue(const Json& a, const Json& b, const ReportKeys& keys) {
  for (const auto& [key, value] : a.items()) {
    if (keys.Identify(key) && b.contains(key)) return true;
  }
  return false;
}

// Whether both reports have the same names.
bool HaveTheSameNames(const Json& a, const Json& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.items()) {
    if (!b.contains(key)) return false;
  }
  return true;
}

struct ReportLine {
  Json object;
  absl::string_view text;
};

// `first`, as an earlier process made it: the end of `lines` when it did not. Another report of the place may have some
// of the same values, such as the evaluation of an epoch's last iteration and the report of that epoch.
std::vector<ReportLine>::const_iterator FindEarlier(const std::vector<ReportLine>& lines, const Json& first,
                                                    const ReportKeys& keys) {
  const auto same = std::find_if(lines.begin(), lines.end(),
                                 [&first](const ReportLine& line) { return HaveTheSameNames(line.object, first); });
  if (same != lines.end()) return same;
  return std::find_if(lines.begin(), lines.end(),
                      [&first, &keys](const ReportLine& line) { return ShareValue(line.object, first, keys); });
}

// The lines of `text` that come before the report `first`, whose place is `place`, and none behind `last`.
KeptLines LinesBefore(absl::string_view text, const ReportKeys& keys, int64_t place, int64_t last, const Json& first) {
  const std::string& key = keys.place.front();
  KeptLines kept;
  std::vector<ReportLine> here;  // of `place`, the last that may stay
  // A last line without its line feed was cut off, and may parse nevertheless.
  const absl::string_view complete = text.substr(0, text.find_last_of('\n') + 1);
  for (const absl::string_view line : absl::StrSplit(complete, '\n', absl::SkipEmpty())) {
    const Json object = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    const bool readable = object.is_object() && object.contains(key) && object[key].is_number_integer();
    if (!readable) {
      ++kept.unreadable;
      continue;
    }
    const int64_t line_place = object[key].get<int64_t>();
    if (line_place > last) continue;
    if (line_place < place) absl::StrAppend(&kept.text, line, "\n");
    if (line_place == place) here.push_back({object, line});
  }
  const auto end = FindEarlier(here, first, keys);
  for (auto line = here.cbegin(); line != end; ++line) absl::StrAppend(&kept.text, line->text, "\n");
  return kept;
}

}  // namespace

JsonLinesFile::JsonLinesFile(FileSystem& file_system, std::string path, std::vector<std::string> place_keys,
                             std::string anywhere)
    : file_system_(file_system),
      path_(std::move(path)),
      place_keys_(std::move(place_keys)),
      anywhere_(std::move(anywhere)) {}

absl::Status JsonLinesFile::Append(int64_t place, absl::string_view json) {
  if (file_ == nullptr) SSL_RETURN_IF_ERROR(Open(place, json));
  absl::Status status = file_->Append(absl::StrCat(json, "\n"));
  // Half a line may be in the file: the next one opens and repairs it.
  if (!status.ok()) file_.reset();
  return status;
}

absl::Status JsonLinesFile::Sync() { return file_ == nullptr ? absl::OkStatus() : file_->Sync(); }

absl::Status JsonLinesFile::Open(int64_t place, absl::string_view first_line) {
  const std::string directory = ParentDirectory(path_);
  SSL_RETURN_IF_ERROR(file_system_.CreateDirectories(directory));
  // Before it is read: a directory that has its name is a fault of the place, and a read would call it one of an input.
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system_.OpenAppend(path_));
  SSL_ASSIGN_OR_RETURN(const bool is_new, DropFrom(place, first_line));
  if (is_new) {
    SSL_ASSIGN_OR_RETURN(file, file_system_.OpenAppend(path_));
  }
  SSL_RETURN_IF_ERROR(file_system_.SyncDirectory(directory));
  file_ = std::move(file);
  goes_on_from_ = std::numeric_limits<int64_t>::max();  // what stands behind it from now on is this process's
  return absl::OkStatus();
}

absl::StatusOr<bool> JsonLinesFile::DropFrom(int64_t place, absl::string_view first_line) {
  SSL_ASSIGN_OR_RETURN(const std::string text, file_system_.Read(path_));
  const Json first = Json::parse(first_line.begin(), first_line.end(), nullptr, /*allow_exceptions=*/false);
  const KeptLines kept = LinesBefore(text, {place_keys_, anywhere_}, place, goes_on_from_, first);
  if (kept.unreadable > 0) {
    SSL_LOG(WARNING) << path_ << " has " << kept.unreadable << " lines that are no reports; they are dropped";
  }
  if (kept.text == text) return false;
  SSL_RETURN_IF_ERROR(WriteFileAtomically(file_system_, path_, kept.text));
  return true;
}

}  // namespace ssl
