// SPDX-License-Identifier: Apache-2.0
//
// The names of what evaluations leave in a run's directory: engines, and the command that runs them, write under these,
// and a run that starts anew there (CHECKPOINT.OVERWRITE_EXISTING) removes them, so that an earlier run's figures do
// not pass for its own.
#ifndef SSL_ENGINES_RUN_FILES_H_
#define SSL_ENGINES_RUN_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/io/file_system.h"

namespace ssl {

inline constexpr char kTrainCommand[] = "train";  // of every command that trains, whatever it evaluates
// What is wrong with the data. It says nothing about a training, so that one that starts anew leaves it.
inline constexpr char kDataCheckFile[] = "data_check.json";
inline constexpr char kPreviewFile[] = "preview.png";  // nor does what a network will see
inline constexpr char kNeighborsFile[] = "neighbors.json";
inline constexpr char kFeaturesFolder[] = "features";
inline constexpr char kFullTuneFolder[] = "full_tune";

// The resolved configuration of a command and the report of its failure. command: kTrainCommand, or the names of its
// engines with '_' between them: "knn_config.yaml", "failure.json" of a training, "knn_failure.json".
std::string CommandConfigFile(absl::string_view command);
std::string CommandFailureFile(absl::string_view command);

// Whether files in the run directory are what `engine` is for, so that it has nothing to give where that cannot be
// written. Others print a table. Features go elsewhere where EXTRACT_FEATURES.OUTPUT_DIR says so, which the engine
// asks.
bool IsForFiles(absl::string_view engine);

// The sheet of a network's neighbours: "neighbors.png" of the one that is "trained", "neighbors_untrained.png".
std::string NeighborsSheet(absl::string_view network);

// kNN_<layer>_output_<kind>.npy; kind: "predictions", "targets", "image_indices".
std::string KnnFile(absl::string_view layer, absl::string_view kind);

// rank<r>_<split>_<head>_<kind>.npy; split: "train", "test"; kind: "predictions", "conf_scores", "targets", "inds".
std::string PredictionFile(int64_t rank, absl::string_view split, absl::string_view head, absl::string_view kind);

// What an extraction of predictions by `ranks` processes takes the place of, as far as process `rank` has to remove it:
// its own files, of whatever heads, and on rank 0 those of ranks that are no more.
absl::StatusOr<std::vector<std::string>> EarlierPredictionFiles(const std::string& run_directory, int64_t rank,
                                                                int64_t ranks, FileSystem& file_system);

// Writes one of them, into the directory, which has to be there: one that went away while an engine was at work is not
// made anew. Errors name the directory and the key that chooses another; FailedPrecondition, which ends a command as a
// run directory that cannot be used does, instead of NotFound.
absl::Status WriteEvaluationFile(const std::string& run_directory, absl::string_view name, absl::string_view contents,
                                 FileSystem& file_system);

// Whether `name` is one of the above, but for those of a training. engines: all that there are.
bool IsEvaluationFile(absl::string_view name, const std::vector<std::string>& engines);

// Removes what an evaluation that was killed has left of its arrays: "<name>.tmp-<process>", of a process that is gone.
absl::Status RemoveUnfinishedFiles(const std::string& run_directory, FileSystem& file_system);

// Removes all of these from `run_directory`, extracted features (feature_files.h) and fine-tuning as well; nothing
// else.
absl::Status RemoveEvaluationFiles(const std::string& run_directory, const std::vector<std::string>& engines,
                                   FileSystem& file_system);

}  // namespace ssl

#endif  // SSL_ENGINES_RUN_FILES_H_
