// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/checkpoint_names.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

constexpr char kStepPrefix[] = "step_";
constexpr char kNameSuffix[] = ".step";
constexpr char kUnfinished[] = ".step.tmp-";  // of an atomic write (ssl/io/atomic_file.cc)

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}

}  // namespace

std::string StepName(int64_t iteration) { return absl::StrCat(kStepPrefix, iteration); }

int64_t IterationOf(absl::string_view step_name) {
  int64_t iteration = -1;
  absl::string_view number = step_name;
  if (!absl::ConsumePrefix(&number, kStepPrefix) || !absl::SimpleAtoi(number, &iteration)) return -1;
  return step_name == StepName(iteration) ? iteration : -1;
}

CheckpointNames::CheckpointNames(std::string directory, FileSystem& file_system)
    : directory_(std::move(directory)), file_system_(file_system) {}

std::string CheckpointNames::Path(absl::string_view name) const {
  return absl::StrCat(directory_, "/", name, kNameSuffix);
}

absl::StatusOr<std::map<std::string, int64_t>> CheckpointNames::All() const {
  const absl::StatusOr<std::vector<std::string>> files = file_system_.List(directory_);
  if (absl::IsNotFound(files.status())) return std::map<std::string, int64_t>();
  SSL_RETURN_IF_ERROR(files.status());
  std::map<std::string, int64_t> names;
  for (const std::string& file : *files) {
    absl::string_view name = file;
    if (!absl::ConsumeSuffix(&name, kNameSuffix)) continue;
    const absl::StatusOr<std::string> text = file_system_.Read(Path(name));
    if (absl::IsNotFound(text.status())) continue;  // a training beside this process has dropped it since
    SSL_RETURN_IF_ERROR(text.status());
    const int64_t iteration = IterationOf(absl::StripTrailingAsciiWhitespace(*text));
    if (iteration < 0) {
      return absl::DataLossError(absl::StrCat(Path(name),
                                              ": does not name a checkpoint, expected step_<iteration>; "
                                              "remove the file, or write the name of the checkpoint into it"));
    }
    names.emplace(name, iteration);
  }
  return names;
}

absl::StatusOr<std::set<int64_t>> CheckpointNames::Iterations() const {
  SSL_ASSIGN_OR_RETURN(const auto names, All());
  std::set<int64_t> iterations;
  for (const auto& [name, iteration] : names) iterations.insert(iteration);
  return iterations;
}

absl::StatusOr<int64_t> CheckpointNames::Move(const std::string& name, int64_t iteration) {
  if (name.empty() || !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(
        absl::StrCat("name of a checkpoint is '", name, "', expected letters, digits, '_', '-' and '.'"));
  }
  SSL_ASSIGN_OR_RETURN(const auto before, All());
  const auto previous = before.find(name);
  if (previous != before.end() && previous->second == iteration) return -1;
  SSL_RETURN_IF_ERROR(WriteFileAtomically(file_system_, Path(name), absl::StrCat(StepName(iteration), "\n")));
  if (previous == before.end()) return -1;
  SSL_ASSIGN_OR_RETURN(const std::set<int64_t> named, Iterations());
  return named.count(previous->second) > 0 ? -1 : previous->second;
}

absl::Status CheckpointNames::DropAfter(int64_t iteration) {
  SSL_ASSIGN_OR_RETURN(const auto names, All());
  for (const auto& [name, named] : names) {
    if (named > iteration) SSL_RETURN_IF_ERROR(Drop(name));
  }
  return absl::OkStatus();
}

absl::Status CheckpointNames::Drop(const std::string& name) {
  SSL_RETURN_IF_ERROR(file_system_.RemoveAll(Path(name)));
  return file_system_.SyncDirectory(directory_);
}

bool CheckpointNames::IsLeftOver(absl::string_view file) { return absl::StrContains(file, kUnfinished); }

}  // namespace ssl
