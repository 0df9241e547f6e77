// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/feature_staging.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/feature_files.h"

namespace ssl {
namespace {

// Not ".lock": the folder may be that of a run, which this process trains in.
constexpr char kLock[] = ".features.lock";
constexpr char kFolder[] = ".features";

}  // namespace

FeatureStaging::FeatureStaging(std::string directory, FileSystem& file_system, Communicator& communicator)
    : directory_(std::move(directory)),
      path_(absl::StrCat(directory_, "/", kFolder)),
      file_system_(file_system),
      communicator_(communicator) {}

absl::StatusOr<std::unique_ptr<FeatureStaging>> FeatureStaging::Open(const std::string& directory,
                                                                     FileSystem& file_system,
                                                                     Communicator& communicator) {
  auto staging = std::unique_ptr<FeatureStaging>(new FeatureStaging(directory, file_system, communicator));
  const auto prepare = [&] { return staging->Prepare(); };
  SSL_RETURN_IF_ERROR(OnRankZero(prepare, "opening the folder of features", communicator));
  return staging;
}

absl::Status FeatureStaging::Prepare() {
  const absl::Status status = TakeFolder();
  if (status.ok()) return status;
  if (absl::IsUnavailable(status)) return Annotate(status, absl::StrCat("another extraction writes to ", directory_));
  return Annotate(status, absl::StrCat("features cannot be written to ", directory_,
                                       " (config.EXTRACT_FEATURES.OUTPUT_DIR names another place)"));
}

absl::Status FeatureStaging::TakeFolder() {
  SSL_RETURN_IF_ERROR(file_system_.CreateDirectories(directory_));
  SSL_ASSIGN_OR_RETURN(lock_, file_system_.Lock(absl::StrCat(directory_, "/", kLock)));
  SSL_RETURN_IF_ERROR(file_system_.RemoveAll(path_));  // of a process that was killed
  return file_system_.CreateDirectories(path_);
}

FeatureStaging::~FeatureStaging() {
  // Nobody takes what stays for features; the next extraction removes it.
  if (lock_ != nullptr) file_system_.RemoveAll(path_).IgnoreError();
}

absl::Status FeatureStaging::Publish(const std::vector<std::string>& splits) {
  const auto replace = [&] { return Replace(splits); };
  return OnRankZero(replace, "replacing features", communicator_);
}

absl::Status FeatureStaging::Replace(const std::vector<std::string>& splits) {
  for (const std::string& split : splits) SSL_RETURN_IF_ERROR(NoteReplacement(directory_, split, file_system_));
  for (const std::string& split : splits) SSL_RETURN_IF_ERROR(RemoveFeatureFiles(directory_, split, file_system_));
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> files, file_system_.List(path_));
  for (const std::string& file : files) {
    SSL_RETURN_IF_ERROR(file_system_.Rename(absl::StrCat(path_, "/", file), absl::StrCat(directory_, "/", file)));
  }
  SSL_RETURN_IF_ERROR(file_system_.SyncDirectory(directory_));
  for (const std::string& split : splits) SSL_RETURN_IF_ERROR(RemoveReplacementNote(directory_, split, file_system_));
  return absl::OkStatus();
}

}  // namespace ssl
