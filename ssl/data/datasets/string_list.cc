// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/datasets/string_list.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "ssl/base/status_macros.h"
#include "ssl/data/datasets/scan_progress.h"
#include "ssl/io/npy.h"

namespace ssl {
namespace {

constexpr int64_t kChunkBytes = int64_t{1} << 20;
constexpr int64_t kMaxEmptyTail = 1000;
// Of UTF-8: what some editors put before the first line.
constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";

// Lines of a text that arrives in pieces. A line is judged as soon as it is long enough to be wrong, so that a file
// that is no list costs no more than a piece.
class LineCollector {
 public:
  LineCollector(const std::string& path, const std::function<void(absl::string_view)>& take)
      : path_(path), take_(take) {}

  absl::Status Add(absl::string_view text) {
    for (size_t end = text.find('\n'); end != absl::string_view::npos; end = text.find('\n')) {
      SSL_RETURN_IF_ERROR(Extend(text.substr(0, end)));
      SSL_RETURN_IF_ERROR(EndLine());
      text.remove_prefix(end + 1);
    }
    return Extend(text);
  }

  // Of complete lines.
  int64_t number() const { return number_; }

  absl::Status Finish() { return line_.empty() ? absl::OkStatus() : EndLine(); }

 private:
  absl::Status Extend(absl::string_view part) {
    if (line_.size() + part.size() > kMaxLineBytes) {
      return Error(absl::StrCat("the line is longer than ", kMaxLineBytes, " bytes, expected a list of short lines"));
    }
    // A path would end there, and name another file.
    if (part.find('\0') != absl::string_view::npos) return Error("the line has a NUL byte, expected text");
    line_.append(part.data(), part.size());
    return absl::OkStatus();
  }

  // Empty lines are kept back: they are wrong only when another follows.
  absl::Status EndLine() {
    const absl::string_view line = absl::StripSuffix(line_, "\r");
    ++number_;
    if (line.empty()) {
      line_.clear();
      first_empty_ = first_empty_ == 0 ? number_ : first_empty_;
      return number_ - first_empty_ < kMaxEmptyTail ? absl::OkStatus() : EmptyLine();
    }
    if (first_empty_ > 0) return EmptyLine();
    take_(line);
    line_.clear();
    return absl::OkStatus();
  }

  absl::Status EmptyLine() {
    number_ = first_empty_ - 1;
    return Error("the line is empty");
  }

  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ":", number_ + 1, ": ", what));
  }

  const std::string& path_;
  const std::function<void(absl::string_view)>& take_;
  std::string line_;         // begun
  int64_t number_ = 0;       // of complete lines
  int64_t first_empty_ = 0;  // number of the first of the empty lines at the end so far; 0: none
};

}  // namespace

absl::Status ForEachLine(FileSystem& file_system, const std::string& path,
                         const std::function<void(absl::string_view)>& take, Clock& clock) {
  if (absl::EndsWith(path, ".npy")) {
    SSL_ASSIGN_OR_RETURN(const std::vector<std::string> lines, ReadNpyStrings(file_system, path));
    for (const std::string& line : lines) take(line);
    return absl::OkStatus();
  }
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, file_system.OpenRead(path));
  LineCollector lines(path, take);
  std::string chunk;
  ScanProgress progress(path, clock);
  for (int64_t offset = 0; offset < file->size(); offset += static_cast<int64_t>(chunk.size())) {
    chunk.resize(std::min(kChunkBytes, file->size() - offset));
    SSL_RETURN_IF_ERROR(file->ReadAt(offset, absl::MakeSpan(chunk)));
    const absl::string_view text = chunk;
    SSL_RETURN_IF_ERROR(lines.Add(offset == 0 ? absl::StripPrefix(text, kByteOrderMark) : text));
    const int64_t end = offset + static_cast<int64_t>(chunk.size());
    progress.Report([&] { return absl::StrCat(lines.number(), " lines (", 100 * end / file->size(), "%)"); });
  }
  return lines.Finish();
}

absl::StatusOr<std::vector<std::string>> ReadStringList(FileSystem& file_system, const std::string& path) {
  std::vector<std::string> lines;
  SSL_RETURN_IF_ERROR(ForEachLine(file_system, path, [&lines](absl::string_view line) { lines.emplace_back(line); }));
  return lines;
}

}  // namespace ssl
