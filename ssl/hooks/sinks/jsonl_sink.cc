// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/sinks/jsonl_sink.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

using Json = nlohmann::ordered_json;

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

std::string FormatLine(const MetricReport& report) {
  Json line = {{"iteration", report.iteration}, {"epoch", report.epoch}};
  for (const auto& [name, value] : report.values) line[name] = value;
  return absl::StrCat(line.dump(-1, ' ', false, Json::error_handler_t::replace), "\n");
}

struct KeptLines {
  std::string text;
  int unreadable = 0;
};

// The lines of `text` that are reports of iterations before `iteration`.
KeptLines LinesBefore(absl::string_view text, int64_t iteration) {
  KeptLines kept;
  // A last line without its line feed was cut off, and may parse nevertheless.
  const absl::string_view complete = text.substr(0, text.find_last_of('\n') + 1);
  for (const absl::string_view line : absl::StrSplit(complete, '\n', absl::SkipEmpty())) {
    const Json report = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    const bool readable = report.is_object() && report.contains("iteration") && report["iteration"].is_number_integer();
    if (!readable) {
      ++kept.unreadable;
    } else if (report["iteration"].get<int64_t>() < iteration) {
      absl::StrAppend(&kept.text, line, "\n");
    }
  }
  return kept;
}

class JsonlSink : public MetricSink {
 public:
  JsonlSink(FileSystem& file_system, std::string path) : file_system_(file_system), path_(std::move(path)) {}

  absl::Status Write(const MetricReport& report) override {
    if (file_ == nullptr) SSL_RETURN_IF_ERROR(Open(report.iteration));
    absl::Status status = file_->Append(FormatLine(report));
    // Half a line may be in the file: the next report opens and repairs it.
    if (!status.ok()) file_.reset();
    return status;
  }

  absl::Status Flush() override { return file_ == nullptr ? absl::OkStatus() : file_->Sync(); }

 private:
  absl::Status Open(int64_t iteration) {
    SSL_RETURN_IF_ERROR(file_system_.CreateDirectories(DirectoryOf(path_)));
    if (file_system_.Exists(path_)) SSL_RETURN_IF_ERROR(DropFrom(iteration));
    SSL_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system_.OpenAppend(path_));
    SSL_RETURN_IF_ERROR(file_system_.SyncDirectory(DirectoryOf(path_)));
    file_ = std::move(file);
    return absl::OkStatus();
  }

  absl::Status DropFrom(int64_t iteration) {
    SSL_ASSIGN_OR_RETURN(const std::string text, file_system_.Read(path_));
    const KeptLines kept = LinesBefore(text, iteration);
    if (kept.unreadable > 0) {
      SSL_LOG(WARNING) << path_ << " has " << kept.unreadable << " lines that are no metric reports; they are dropped";
    }
    return kept.text == text ? absl::OkStatus() : WriteFileAtomically(file_system_, path_, kept.text);
  }

  FileSystem& file_system_;
  const std::string path_;
  std::unique_ptr<WritableFile> file_;  // null before the first report
};

}  // namespace

std::unique_ptr<MetricSink> MakeJsonlSink(FileSystem& file_system, std::string path) {
  return std::make_unique<JsonlSink>(file_system, std::move(path));
}

}  // namespace ssl
