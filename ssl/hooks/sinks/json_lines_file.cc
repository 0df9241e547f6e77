// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/sinks/json_lines_file.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

struct KeptLines {
  std::string text;
  int unreadable = 0;
};

// The lines of `text` whose `key` is below `place`.
KeptLines LinesBefore(absl::string_view text, const std::string& key, int64_t place) {
  using Json = nlohmann::json;
  KeptLines kept;
  // A last line without its line feed was cut off, and may parse nevertheless.
  const absl::string_view complete = text.substr(0, text.find_last_of('\n') + 1);
  for (const absl::string_view line : absl::StrSplit(complete, '\n', absl::SkipEmpty())) {
    const Json object = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    const bool readable = object.is_object() && object.contains(key) && object[key].is_number_integer();
    if (!readable) {
      ++kept.unreadable;
    } else if (object[key].get<int64_t>() < place) {
      absl::StrAppend(&kept.text, line, "\n");
    }
  }
  return kept;
}

}  // namespace

JsonLinesFile::JsonLinesFile(FileSystem& file_system, std::string path, std::string key)
    : file_system_(file_system), path_(std::move(path)), key_(std::move(key)) {}

absl::Status JsonLinesFile::Append(int64_t place, absl::string_view json) {
  if (file_ == nullptr) SSL_RETURN_IF_ERROR(Open(place));
  absl::Status status = file_->Append(absl::StrCat(json, "\n"));
  // Half a line may be in the file: the next one opens and repairs it.
  if (!status.ok()) file_.reset();
  return status;
}

absl::Status JsonLinesFile::Sync() { return file_ == nullptr ? absl::OkStatus() : file_->Sync(); }

absl::Status JsonLinesFile::Open(int64_t place) {
  const std::string directory = ParentDirectory(path_);
  SSL_RETURN_IF_ERROR(file_system_.CreateDirectories(directory));
  if (file_system_.Exists(path_)) SSL_RETURN_IF_ERROR(DropFrom(place));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system_.OpenAppend(path_));
  SSL_RETURN_IF_ERROR(file_system_.SyncDirectory(directory));
  file_ = std::move(file);
  return absl::OkStatus();
}

absl::Status JsonLinesFile::DropFrom(int64_t place) {
  SSL_ASSIGN_OR_RETURN(const std::string text, file_system_.Read(path_));
  const KeptLines kept = LinesBefore(text, key_, place);
  if (kept.unreadable > 0) {
    SSL_LOG(WARNING) << path_ << " has " << kept.unreadable << " lines that are no reports; they are dropped";
  }
  return kept.text == text ? absl::OkStatus() : WriteFileAtomically(file_system_, path_, kept.text);
}

}  // namespace ssl
