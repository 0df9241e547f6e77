// SPDX-License-Identifier: Apache-2.0
//
// A part of a data set: sample i is sample positions[i] of the whole. And VISSL's rule for drawing one (DATA_LIMIT).
#ifndef SSL_DATA_DATASETS_SUBSET_DATASET_H_
#define SSL_DATA_DATASETS_SUBSET_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ssl/data/dataset.h"
#include "ssl/data/datasets/broken_images.h"
#include "ssl/data/datasets/counts_broken.h"
#include "ssl/data/image/byte_buffer.h"

namespace ssl {

// `count` different positions in [0, size), in random order: the positions from `skip` on of
// numpy.random.RandomState(seed).choice(size, skip + count, replace=False), as VISSL draws them without balancing.
// skip + count <= size. Golden test: subset_dataset_test.
std::vector<int64_t> DrawSubset(int64_t size, int64_t count, int64_t skip, uint32_t seed);

// The same with equally many of each class, as VISSL draws with balancing: `count` and `skip` are spread over the
// classes in ascending order, the first ones taking the remainder; each class is drawn by the one generator in turn.
// labels: the class of each sample. InvalidArgument names a class that has too few samples, or a sample without one.
// Golden test: samplers_golden_test.
absl::StatusOr<std::vector<int64_t>> DrawBalancedSubset(const std::vector<int64_t>& labels, int64_t count, int64_t skip,
                                                        uint32_t seed);

// A part of each class, to test on: the positions, ascending, of those samples (or, with held_out false, of all
// others). Of a class with n samples, n * fraction are held out, rounded, but at least 1 and at most n - 1; none of a
// single one. labels: the class of each sample; those below 0 are a class, too. One generator draws from the classes in
// ascending order. Ours: VISSL has no such split.
std::vector<int64_t> DrawHeldOut(const std::vector<int64_t>& labels, double fraction, uint32_t seed, bool held_out);

class SubsetDataset : public Dataset, public CountsBroken {
 public:
  // positions: each in [0, dataset->size()).
  SubsetDataset(std::unique_ptr<Dataset> dataset, std::vector<int64_t> positions);

  int64_t size() const override { return static_cast<int64_t>(positions_.size()); }
  bool has_labels() const override { return dataset_->has_labels(); }
  std::string description() const override { return dataset_->description(); }
  absl::Status Get(int64_t index, Sample* sample) const override { return dataset_->Get(positions_[index], sample); }
  void KeepInMemory(const DatasetCache& cache) override { dataset_->KeepInMemory(cache); }
  void WillRead(int64_t samples) override { dataset_->WillRead(samples); }
  BrokenImages* broken() const override { return CountOf(*dataset_); }
  absl::StatusOr<bool> ReadEncoded(int64_t index, ByteBuffer* bytes) const override {
    return dataset_->ReadEncoded(positions_[index], bytes);
  }
  std::vector<std::string> PassedOver() const override { return dataset_->PassedOver(); }
  std::string ImagePath(int64_t index) const override { return dataset_->ImagePath(positions_[index]); }
  std::string SampleIdentity(int64_t index) const override { return dataset_->SampleIdentity(positions_[index]); }
  int64_t Label(int64_t index) const override { return dataset_->Label(positions_[index]); }
  absl::Span<const int64_t> LabelRow(int64_t index) const override { return dataset_->LabelRow(positions_[index]); }
  absl::Span<const int64_t> LabelList(int64_t index) const override { return dataset_->LabelList(positions_[index]); }
  absl::Span<const std::string> ClassNames() const override { return dataset_->ClassNames(); }
  std::string SampleName(int64_t index) const override { return dataset_->SampleName(positions_[index]); }

 private:
  std::unique_ptr<Dataset> dataset_;
  std::vector<int64_t> positions_;
};

}  // namespace ssl

#endif  // SSL_DATA_DATASETS_SUBSET_DATASET_H_
