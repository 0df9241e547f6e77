// SPDX-License-Identifier: Apache-2.0
//
// Extracted features on disk, under VISSL's names, so that its tools and NumPy read them:
//
//   rank{r}_chunk{c}_{train|test}_{layer}_features.npy   [n, ...] float32 (VISSL writes float64 by mistake; both are
//   read) rank{r}_chunk{c}_{train|test}_{layer}_targets.npy    [n, 1] int64, or [n, classes]
//   rank{r}_chunk{c}_{train|test}_{layer}_inds.npy       [n] int64, ascending: positions in the data set
//   {train|test}_classes.json                            names of the classes, by number (ours); not there where
//   classes are numbers only
//   {train|test}_files.json                              the image of each position in the data set (ours): row i of an
//   array is of the file number inds[i]; not there where images have no files
//   {train|test}_broken.json             images that could not be read (ours, broken_rows.h): they have rows of what
//   stands in for them
//   {train|test}_features.replacing      while these files take the place of others (ours)
//
// Each file is replaced in one step. Used by one thread; LibTorch exceptions may pass.
#ifndef SSL_ENGINES_FEATURE_FILES_H_
#define SSL_ENGINES_FEATURE_FILES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/data/dataset.h"
#include "ssl/engines/feature_extraction.h"
#include "ssl/io/file_system.h"

namespace ssl {

struct FeatureFilesOptions {
  std::string directory;  // exists
  std::string split;      // "train" or "test"
  int64_t rank = 0;
  std::vector<std::string> layers;
  // A chunk is written once it holds so many samples; 0: one for each batch; -1: one for everything. Memory holds one.
  int64_t chunk_threshold = -1;
};

// For tables.
struct WrittenArray {
  std::string file;  // without the directory
  std::vector<int64_t> shape;
  int64_t bytes = 0;  // of its values
};

// Writes an array of float or int64, on the CPU, under directory/file.
absl::StatusOr<WrittenArray> WriteArray(const std::string& directory, const std::string& file, const at::Tensor& array,
                                        FileSystem& file_system);

// "file  [shape]  size", one line each, and the sum of these and of what is elsewhere, under the name `sum`.
std::string FormatArrayTable(const std::string& directory, const std::vector<WrittenArray>& arrays,
                             const std::string& sum = "all", int64_t bytes_elsewhere = 0);

// Samples that a rank repeats (they fill up the last batches of several ranks) are written once.
class FeatureFileWriter {
 public:
  FeatureFileWriter(FeatureFilesOptions options, FileSystem& file_system);

  // InvalidArgument for soft labels.
  absl::Status Add(const FeatureBatch& batch);
  // Writes what is left.
  absl::Status Finish();

  const std::vector<WrittenArray>& arrays() const { return arrays_; }
  // Samples that they hold.
  int64_t rows() const { return rows_; }

 private:
  absl::Status WriteChunk();
  absl::Status WriteLayer(const std::string& layer, const at::Tensor& features, const at::Tensor& targets,
                          const at::Tensor& indices);

  const FeatureFilesOptions options_;
  FileSystem& file_system_;
  std::vector<FeatureBatch> batches_;  // of the chunk in progress
  int64_t samples_ = 0;                // in them
  int64_t chunk_ = 0;
  int64_t rows_ = 0;
  std::vector<WrittenArray> arrays_;
};

// Writes the file of class names; none for no names.
absl::Status WriteClassNames(const std::string& directory, const std::string& split,
                             const std::vector<std::string>& names, FileSystem& file_system);

// What WriteClassNames wrote; nothing when there is no file.
absl::StatusOr<std::vector<std::string>> ReadClassNames(const std::string& directory, const std::string& split,
                                                        FileSystem& file_system);

// Writes the list of Dataset::ImagePath by position, as JSON (ssl/base/surrogate_escape.h); none where the first image
// has no path.
absl::Status WriteImageFiles(const std::string& directory, const std::string& split, const Dataset& dataset,
                             FileSystem& file_system);

// Notes, on stable storage, that the files of a split are being replaced: until the note is removed, whatever is there
// is taken for no set of features. Some chunks alone would pass for all of them.
absl::Status NoteReplacement(const std::string& directory, const std::string& split, FileSystem& file_system);
absl::Status RemoveReplacementNote(const std::string& directory, const std::string& split, FileSystem& file_system);

// Removes a split's files of an earlier extraction, which may have had more ranks or chunks; the note stays.
absl::Status RemoveFeatureFiles(const std::string& directory, const std::string& split, FileSystem& file_system);

// The layers that a directory holds of a split, sorted. DataLoss while there is a note of a replacement.
absl::StatusOr<std::vector<std::string>> FeatureFileLayers(const std::string& directory, const std::string& split,
                                                           FileSystem& file_system);

// One layer with all ranks and chunks, ordered by position in the data set; a sample that several files hold counts
// once, and one whose image could not be read is left out. NotFound names the layers that are there; DataLoss names a
// file whose shape does not fit, and a note of a replacement.
absl::StatusOr<FeatureSet> LoadFeatures(const std::string& directory, const std::string& split,
                                        const std::string& layer, FileSystem& file_system);

}  // namespace ssl

#endif  // SSL_ENGINES_FEATURE_FILES_H_
