// SPDX-License-Identifier: Apache-2.0
//
// Several data sets, one after another, as one.
#ifndef SSL_DATA_DATASETS_CONCAT_DATASET_H_
#define SSL_DATA_DATASETS_CONCAT_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ssl/data/dataset.h"
#include "ssl/data/image/byte_buffer.h"

namespace ssl {

// Classes with names are one class where the names are equal, numbered by the sorted names of all parts; numbers
// without names mean the same class in every part. It has labels when all parts do.
class ConcatDataset : public Dataset {
 public:
  // InvalidArgument: labels of some parts are classes and of others rows, or rows of another length; classes of some
  // parts have names and of others none. parts: not empty.
  static absl::StatusOr<std::unique_ptr<ConcatDataset>> Create(std::vector<std::unique_ptr<Dataset>> parts);

  int64_t size() const override { return begins_.back(); }
  bool has_labels() const override { return has_labels_; }
  // "a + b"
  std::string description() const override;
  absl::Status Get(int64_t index, Sample* sample) const override;
  // Each part gets a share of the memory by the number of its samples.
  void KeepInMemory(const DatasetCache& cache) override;
  absl::StatusOr<bool> ReadEncoded(int64_t index, ByteBuffer* bytes) const override;
  int64_t Label(int64_t index) const override;
  absl::Span<const int64_t> LabelRow(int64_t index) const override;
  absl::Span<const int64_t> LabelList(int64_t index) const override;
  absl::Span<const std::string> ClassNames() const override { return class_names_; }
  std::string ImagePath(int64_t index) const override;
  std::string SampleName(int64_t index) const override;
  std::string SampleIdentity(int64_t index) const override;

 private:
  explicit ConcatDataset(std::vector<std::unique_ptr<Dataset>> parts);

  absl::Status CheckLabels() const;
  void NumberClasses();
  // The part that holds a sample, and the sample's place in it.
  std::pair<size_t, int64_t> Find(int64_t index) const;
  // A class of part `part` as one of all.
  int64_t Renumbered(size_t part, int64_t label) const;

  std::vector<std::unique_ptr<Dataset>> parts_;
  std::vector<int64_t> begins_;  // of each part, and the end of the last one
  bool has_labels_ = false;
  std::vector<std::string> class_names_;
  std::vector<std::vector<int64_t>> numbers_;  // of each part's named classes among all; empty: as they are
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_CONCAT_DATASET_H_
