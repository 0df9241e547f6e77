// SPDX-License-Identifier: Apache-2.0
//
// The images of one data set with labels from elsewhere.
#ifndef SSL_DATA_DATASETS_LABELLED_DATASET_H_
#define SSL_DATA_DATASETS_LABELLED_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/broken_images.h"
#include "ssl/data/datasets/counts_broken.h"
#include "ssl/data/datasets/label_table.h"
#include "ssl/data/image/byte_buffer.h"

namespace ssl {

class LabelledDataset : public Dataset, public CountsBroken {
 public:
  // labels: as many as the data set has samples.
  LabelledDataset(std::unique_ptr<Dataset> images, LabelTable labels)
      : images_(std::move(images)), labels_(std::move(labels)) {}

  int64_t size() const override { return images_->size(); }
  bool has_labels() const override { return true; }
  std::string description() const override { return images_->description(); }
  absl::Status Get(int64_t index, Sample* sample) const override;
  void KeepInMemory(const DatasetCache& cache) override { images_->KeepInMemory(cache); }
  void WillRead(int64_t samples) override { images_->WillRead(samples); }
  BrokenImages* broken() const override { return CountOf(*images_); }
  absl::StatusOr<bool> ReadEncoded(int64_t index, ByteBuffer* bytes) const override {
    return images_->ReadEncoded(index, bytes);
  }
  std::vector<std::string> PassedOver() const override { return images_->PassedOver(); }
  std::string ImagePath(int64_t index) const override { return images_->ImagePath(index); }
  std::string SampleIdentity(int64_t index) const override { return images_->SampleIdentity(index); }
  int64_t Label(int64_t index) const override {
    return labels_.kind == LabelTable::Kind::kClass ? labels_.values[index] : -1;
  }
  absl::Span<const int64_t> LabelRow(int64_t index) const override {
    return labels_.kind == LabelTable::Kind::kRow ? labels_.of(index) : absl::Span<const int64_t>();
  }
  absl::Span<const int64_t> LabelList(int64_t index) const override {
    return labels_.kind == LabelTable::Kind::kList ? labels_.of(index) : absl::Span<const int64_t>();
  }
  absl::Span<const std::string> ClassNames() const override { return labels_.class_names; }
  std::string SampleName(int64_t index) const override { return images_->SampleName(index); }

 private:
  std::unique_ptr<Dataset> images_;
  LabelTable labels_;
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_LABELLED_DATASET_H_
