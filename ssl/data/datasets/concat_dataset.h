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
#include "ssl/data/datasets/broken_images.h"
#include "ssl/data/datasets/counts_broken.h"
#include "ssl/data/image/byte_buffer.h"

namespace ssl {

// Classes with names are one class where the names are equal, numbered by the sorted names of all parts; numbers
// without names mean the same class in every part. It has labels when all parts do and these can be told from one
// another: not where classes of some parts have names and those of others are numbers, nor where labels of some are
// rows and those of others classes, or rows of another length.
class ConcatDataset : public Dataset, public CountsBroken {
 public:
  // parts: not empty.
  explicit ConcatDataset(std::vector<std::unique_ptr<Dataset>> parts);

  // Why there are no labels although a part has some; "" where none has, or there are.
  const std::string& label_conflict() const { return label_conflict_; }

  int64_t size() const override { return begins_.back(); }
  bool has_labels() const override { return has_labels_; }
  // "a + b"
  std::string description() const override;
  absl::Status Get(int64_t index, Sample* sample) const override;
  // Each part gets a share of the memory by the number of its samples.
  void KeepInMemory(const DatasetCache& cache) override;
  // The broken images of the parts are one count, by the rule of the first part that has one. A part that counts by
  // itself is told its share of the samples, and no less than 20: of fewer, two broken ones would be many.
  void WillRead(int64_t samples) override;
  BrokenImages* broken() const override { return broken_; }
  absl::StatusOr<bool> ReadEncoded(int64_t index, ByteBuffer* bytes) const override;
  int64_t Label(int64_t index) const override;
  absl::Span<const int64_t> LabelRow(int64_t index) const override;
  absl::Span<const int64_t> LabelList(int64_t index) const override;
  absl::Span<const std::string> ClassNames() const override { return class_names_; }
  std::vector<std::string> PassedOver() const override;
  std::string ImagePath(int64_t index) const override;
  std::string SampleName(int64_t index) const override;
  std::string SampleIdentity(int64_t index) const override;

 private:
  std::string FindLabelConflict() const;
  void NumberClasses();
  void JoinCounts();
  // The part that holds a sample, and the sample's place in it.
  std::pair<size_t, int64_t> Find(int64_t index) const;
  // A class of part `part` as one of all.
  int64_t Renumbered(size_t part, int64_t label) const;

  std::vector<std::unique_ptr<Dataset>> parts_;
  std::vector<int64_t> begins_;     // of each part, and the end of the last one
  BrokenImages* broken_ = nullptr;  // of all parts; null: none counts
  std::string label_conflict_;
  bool has_labels_ = false;
  std::vector<std::string> class_names_;
  std::vector<std::vector<int64_t>> numbers_;  // of each part's named classes among all; empty: as they are
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_CONCAT_DATASET_H_
