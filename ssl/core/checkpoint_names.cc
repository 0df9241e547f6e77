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
#include "ssl/base/error_detail.h"
#include "ssl/base/status_macros.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

constexpr char kStepPrefix[] = "step_";
constexpr char kNameSuffix[] = ".step";
constexpr char kReplaceable[] = "\nreplaceable";
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

absl::StatusOr<CheckpointNames::Named> CheckpointNames::Read(absl::string_view name) const {
  SSL_ASSIGN_OR_RETURN(const std::string text, file_system_.Read(Path(name)));
  absl::string_view step = absl::StripTrailingAsciiWhitespace(text);
  Named named;
  named.replaceable = absl::ConsumeSuffix(&step, kReplaceable);
  named.iteration = IterationOf(step);
  if (named.iteration >= 0) return named;
  return absl::DataLossError(absl::StrCat(Path(name),
                                          ": does not name a checkpoint, expected step_<iteration>; "
                                          "remove the file, or write the name of the checkpoint into it"));
}

absl::StatusOr<std::map<std::string, CheckpointNames::Named>> CheckpointNames::ReadAll() const {
  const absl::StatusOr<std::vector<std::string>> files = file_system_.List(directory_);
  if (absl::IsNotFound(files.status())) return std::map<std::string, Named>();
  SSL_RETURN_IF_ERROR(files.status());
  std::map<std::string, Named> all;
  for (const std::string& file : *files) {
    absl::string_view name = file;
    if (!absl::ConsumeSuffix(&name, kNameSuffix)) continue;
    const absl::StatusOr<Named> named = Read(name);
    if (absl::IsNotFound(named.status())) continue;  // a training beside this process has dropped it since
    SSL_RETURN_IF_ERROR(named.status());
    all.emplace(name, *named);
  }
  return all;
}

absl::Status CheckpointNames::Write(absl::string_view name, const Named& named) {
  return WriteFileAtomically(file_system_, Path(name),
                             absl::StrCat(StepName(named.iteration), named.replaceable ? kReplaceable : "", "\n"));
}

absl::StatusOr<std::map<std::string, int64_t>> CheckpointNames::All() const {
  SSL_ASSIGN_OR_RETURN(const auto all, ReadAll());
  std::map<std::string, int64_t> iterations;
  for (const auto& [name, named] : all) iterations.emplace(name, named.iteration);
  return iterations;
}

absl::StatusOr<std::set<int64_t>> CheckpointNames::Iterations() const {
  SSL_ASSIGN_OR_RETURN(const auto names, All());
  std::set<int64_t> iterations;
  for (const auto& [name, iteration] : names) iterations.insert(iteration);
  return iterations;
}

absl::StatusOr<CheckpointNames::Nameless> CheckpointNames::Move(const std::string& name, int64_t iteration,
                                                                bool replaceable) {
  if (name.empty() || !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(
        absl::StrCat("name of a checkpoint is '", name, "', expected letters, digits, '_', '-' and '.'"));
  }
  SSL_ASSIGN_OR_RETURN(const auto before, ReadAll());
  const auto previous = before.find(name);
  if (previous != before.end() && previous->second.iteration == iteration) return Nameless();
  SSL_RETURN_IF_ERROR(Write(name, {iteration, replaceable}));
  if (previous == before.end()) return Nameless();
  SSL_ASSIGN_OR_RETURN(const std::set<int64_t> named, Iterations());
  if (named.count(previous->second.iteration) > 0) return Nameless();
  return Nameless{previous->second.iteration, previous->second.replaceable};
}

absl::StatusOr<bool> CheckpointNames::IsReplaceable(int64_t iteration) const {
  SSL_ASSIGN_OR_RETURN(const auto all, ReadAll());
  return std::any_of(all.begin(), all.end(), [iteration](const auto& entry) {
    return entry.second.iteration == iteration && entry.second.replaceable;
  });
}

absl::Status CheckpointNames::Keep(int64_t iteration) {
  SSL_ASSIGN_OR_RETURN(const auto all, ReadAll());
  for (const auto& [name, named] : all) {
    if (named.iteration != iteration || !named.replaceable) continue;
    SSL_RETURN_IF_ERROR(Write(name, {iteration, /*replaceable=*/false}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> CheckpointNames::DropDamaged() {
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> files, file_system_.List(directory_));
  std::vector<std::string> told;
  for (const std::string& file : files) {
    absl::string_view name = file;
    if (!absl::ConsumeSuffix(&name, kNameSuffix)) continue;
    const absl::Status status = Read(name).status();
    const bool is_damaged = absl::IsDataLoss(status) && DetailOf(status, kDetailErrno).empty();
    if (!is_damaged) continue;
    SSL_RETURN_IF_ERROR(Drop(std::string(name)));
    told.push_back(absl::StrCat(Path(name),
                                " was damaged: it did not name a checkpoint, and is gone; who has given the "
                                "name gives it anew"));
  }
  return told;
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
