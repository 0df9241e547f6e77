// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/run_files.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/engines/feature_files.h"
#include "ssl/io/atomic_file.h"

namespace ssl {
namespace {

constexpr char kConfigEnd[] = "_config.yaml";
constexpr char kFailure[] = "failure.json";
constexpr char kFailureEnd[] = "_failure.json";
constexpr char kKnnBegin[] = "kNN_";
constexpr absl::string_view kForFiles[] = {"evaluate",  "export",    "extract_label_predictions",
                                           "full_tune", "neighbors", "preview"};
constexpr std::array<absl::string_view, 2> kSplits = {"train", "test"};
constexpr std::array<absl::string_view, 3> kKnnKinds = {"predictions", "targets", "image_indices"};
constexpr std::array<absl::string_view, 4> kPredictionKinds = {"predictions", "conf_scores", "targets", "inds"};

std::string KnnEnd(absl::string_view kind) { return absl::StrCat("_output_", kind, ".npy"); }

std::string PredictionEnd(absl::string_view kind) { return absl::StrCat("_", kind, ".npy"); }

// Whether `name` is one engine, or several with '_' between them.
bool IsCommand(absl::string_view name, const std::vector<std::string>& engines) {
  return std::any_of(engines.begin(), engines.end(), [&](const std::string& engine) {
    if (engine == kTrainCommand) return false;
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, engine)) return false;
    return rest.empty() || (absl::ConsumePrefix(&rest, "_") && IsCommand(rest, engines));
  });
}

bool IsKnnFile(absl::string_view name) {
  return absl::ConsumePrefix(&name, kKnnBegin) &&
         std::any_of(kKnnKinds.begin(), kKnnKinds.end(),
                     [name](absl::string_view kind) { return absl::EndsWith(name, KnnEnd(kind)); });
}

// Below 0 for a file of another kind.
int64_t RankOfPredictionFile(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "rank")) return -1;
  const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  int64_t rank = 0;
  if (!absl::SimpleAtoi(name.substr(0, digits), &rank)) return -1;
  name.remove_prefix(digits);
  const auto begins = [name](absl::string_view split) { return absl::StartsWith(name, absl::StrCat("_", split, "_")); };
  const auto ends = [name](absl::string_view kind) { return absl::EndsWith(name, PredictionEnd(kind)); };
  const bool is_prediction = std::any_of(kSplits.begin(), kSplits.end(), begins) &&
                             std::any_of(kPredictionKinds.begin(), kPredictionKinds.end(), ends);
  return is_prediction ? rank : -1;
}

bool IsPredictionFile(absl::string_view name) { return RankOfPredictionFile(name) >= 0; }

bool IsNeighborsFile(absl::string_view name) {
  return name == kNeighborsFile || name == NeighborsSheet("trained") || name == NeighborsSheet("untrained");
}

// The temporary folder of arrays (array_set.h), or file of one (ssl/io/npy.cc), whose writer does not live any more.
bool IsUnfinished(absl::string_view name) {
  constexpr absl::string_view kTemporary = ".tmp-";
  const size_t end = name.rfind(kTemporary);
  int process = 0;
  if (end == absl::string_view::npos || !absl::SimpleAtoi(name.substr(end + kTemporary.size()), &process)) return false;
  const absl::string_view array = name.substr(0, end);
  if (process <= 0 || !(IsKnnFile(array) || IsPredictionFile(array))) return false;
  return kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace

std::string CommandConfigFile(absl::string_view command) { return absl::StrCat(command, kConfigEnd); }

std::string CommandFailureFile(absl::string_view command) {
  return command == kTrainCommand ? kFailure : absl::StrCat(command, kFailureEnd);
}

bool IsForFiles(absl::string_view engine) {
  return std::find(std::begin(kForFiles), std::end(kForFiles), engine) != std::end(kForFiles);
}

std::string NeighborsSheet(absl::string_view network) {
  return network == "trained" ? "neighbors.png" : absl::StrCat("neighbors_", network, ".png");
}

std::string KnnFile(absl::string_view layer, absl::string_view kind) {
  return absl::StrCat(kKnnBegin, layer, KnnEnd(kind));
}

std::string PredictionFile(int64_t rank, absl::string_view split, absl::string_view head, absl::string_view kind) {
  return absl::StrCat("rank", rank, "_", split, "_", head, PredictionEnd(kind));
}

absl::StatusOr<std::vector<std::string>> EarlierPredictionFiles(const std::string& run_directory, int64_t rank,
                                                                int64_t ranks, FileSystem& file_system) {
  SSL_ASSIGN_OR_RETURN(std::vector<std::string> names, file_system.List(run_directory));
  const auto stays = [rank, ranks](const std::string& name) {
    const int64_t writer = RankOfPredictionFile(name);
    return writer != rank && !(rank == 0 && writer >= ranks);
  };
  names.erase(std::remove_if(names.begin(), names.end(), stays), names.end());
  return names;
}

absl::Status WriteEvaluationFile(const std::string& run_directory, absl::string_view name, absl::string_view contents,
                                 FileSystem& file_system) {
  const absl::Status status = WriteFileAtomically(file_system, absl::StrCat(run_directory, "/", name), contents);
  if (status.ok()) return status;
  const std::string what =
      absl::StrCat("run directory ", run_directory, " cannot be written (config.CHECKPOINT.DIR chooses another)");
  if (absl::IsNotFound(status)) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": it was removed or moved away while the command ran; ", status.message()));
  }
  return Annotate(status, what);
}

bool IsEvaluationFile(absl::string_view name, const std::vector<std::string>& engines) {
  if (IsKnnFile(name) || IsPredictionFile(name) || IsNeighborsFile(name)) return true;
  return (absl::ConsumeSuffix(&name, kConfigEnd) || absl::ConsumeSuffix(&name, kFailureEnd)) &&
         IsCommand(name, engines);
}

absl::Status RemoveUnfinishedFiles(const std::string& run_directory, FileSystem& file_system) {
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system.List(run_directory));
  for (const std::string& name : names) {
    if (!IsUnfinished(name)) continue;
    SSL_RETURN_IF_ERROR(file_system.RemoveAll(absl::StrCat(run_directory, "/", name)));
  }
  return absl::OkStatus();
}

absl::Status RemoveEvaluationFiles(const std::string& run_directory, const std::vector<std::string>& engines,
                                   FileSystem& file_system) {
  for (const char* folder : {kFeaturesFolder, kFullTuneFolder}) {
    SSL_RETURN_IF_ERROR(file_system.RemoveAll(absl::StrCat(run_directory, "/", folder)));
  }
  // EXTRACT_FEATURES.OUTPUT_DIR may have been the run directory itself, as it is in VISSL.
  for (const absl::string_view split : kSplits) {
    SSL_RETURN_IF_ERROR(RemoveFeatureFiles(run_directory, std::string(split), file_system));
    SSL_RETURN_IF_ERROR(RemoveReplacementNote(run_directory, std::string(split), file_system));
  }
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system.List(run_directory));
  for (const std::string& name : names) {
    if (!IsEvaluationFile(name, engines)) continue;
    SSL_RETURN_IF_ERROR(file_system.RemoveFile(absl::StrCat(run_directory, "/", name)));
  }
  return absl::OkStatus();
}

}  // namespace ssl
