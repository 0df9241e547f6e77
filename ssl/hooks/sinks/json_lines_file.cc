// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/sinks/json_lines_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

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

// Whether both reports have a value of the same name.
bool ShareValue(const Json& a, const Json& b, const std::vector<std::string>& place_keys) {
  for (const auto& [key, value] : a.items()) {
    const bool is_place = std::find(place_keys.begin(), place_keys.end(), key) != place_keys.end();
    if (!is_place && b.contains(key)) return true;
  }
  return false;
}

// The lines of `text` that come before the report `first`, whose place is `place`.
KeptLines LinesBefore(absl::string_view text, const std::vector<std::string>& place_keys, int64_t place,
                      const Json& first) {
  const std::string& key = place_keys.front();
  KeptLines kept;
  bool made_before = false;  // `first`, by an earlier process
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
    made_before = made_before || (line_place == place && ShareValue(object, first, place_keys));
    if (line_place < place || (line_place == place && !made_before)) absl::StrAppend(&kept.text, line, "\n");
  }
  return kept;
}

}  // namespace

JsonLinesFile::JsonLinesFile(FileSystem& file_system, std::string path, std::vector<std::string> place_keys)
    : file_system_(file_system), path_(std::move(path)), place_keys_(std::move(place_keys)) {}

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
  if (file_system_.Exists(path_)) SSL_RETURN_IF_ERROR(DropFrom(place, first_line));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system_.OpenAppend(path_));
  SSL_RETURN_IF_ERROR(file_system_.SyncDirectory(directory));
  file_ = std::move(file);
  return absl::OkStatus();
}

absl::Status JsonLinesFile::DropFrom(int64_t place, absl::string_view first_line) {
  SSL_ASSIGN_OR_RETURN(const std::string text, file_system_.Read(path_));
  const Json first = Json::parse(first_line.begin(), first_line.end(), nullptr, /*allow_exceptions=*/false);
  const KeptLines kept = LinesBefore(text, place_keys_, place, first);
  if (kept.unreadable > 0) {
    SSL_LOG(WARNING) << path_ << " has " << kept.unreadable << " lines that are no reports; they are dropped";
  }
  return kept.text == text ? absl::OkStatus() : WriteFileAtomically(file_system_, path_, kept.text);
}

}  // namespace ssl
