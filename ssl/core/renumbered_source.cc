// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/renumbered_source.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "ssl/base/status_macros.h"
#include "ssl/core/batch.h"
#include "ssl/core/class_map.h"
#include "ssl/core/read_ahead.h"

namespace ssl {
namespace {

class RenumberedSource : public BatchSource, public ReadAhead {
 public:
  RenumberedSource(std::unique_ptr<BatchSource> source, ClassMap classes, std::vector<std::string> names)
      : source_(std::move(source)),
        ahead_(dynamic_cast<ReadAhead*>(source_.get())),
        classes_(std::move(classes)),
        names_(std::move(names)) {}

  int64_t batches_per_epoch() const override { return source_->batches_per_epoch(); }
  int64_t dataset_size() const override { return source_->dataset_size(); }
  bool has_labels() const override { return source_->has_labels(); }
  std::vector<std::string> ClassNames() const override { return names_; }
  std::string SampleIdentity(int64_t index) const override { return source_->SampleIdentity(index); }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override {
    return source_->StartEpoch(epoch, first_batch);
  }

  absl::StatusOr<std::vector<int64_t>> Classes() const override {
    SSL_ASSIGN_OR_RETURN(const std::vector<int64_t> own, source_->Classes());
    SSL_ASSIGN_OR_RETURN(const at::Tensor renumbered, classes_.Renumber(at::tensor(own, at::kLong)));
    const int64_t* begin = renumbered.const_data_ptr<int64_t>();
    std::vector<int64_t> numbers(begin, begin + renumbered.numel());
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }

  absl::StatusOr<const Batch*> Next() override {
    SSL_ASSIGN_OR_RETURN(const Batch* batch, source_->Next());
    return Renumbered(batch, &batch_);
  }

  absl::Status PrepareFor(const c10::Device& device) override {
    return ahead_ != nullptr ? ahead_->PrepareFor(device) : absl::OkStatus();
  }

  const Batch* Following() override {
    const Batch* const following = ahead_ != nullptr ? ahead_->Following() : nullptr;
    return Renumbered(following, &following_).value_or(nullptr);  // Next has the error
  }

  const PackedImages* ImagesOfNext() const override { return ahead_ != nullptr ? ahead_->ImagesOfNext() : nullptr; }

  const PackedImages* ImagesOfFollowing() const override {
    return ahead_ != nullptr ? ahead_->ImagesOfFollowing() : nullptr;
  }

 private:
  // batch: may be null. Lent, or made of it in `renumbered`.
  absl::StatusOr<const Batch*> Renumbered(const Batch* batch, Batch* renumbered) const {
    // A row of weights for each class has no number to change: whoever gives rows gives no names.
    if (batch == nullptr || !batch->targets.defined() || batch->targets.dim() != 1) return batch;
    *renumbered = *batch;
    SSL_ASSIGN_OR_RETURN(renumbered->targets, classes_.Renumber(batch->targets));
    return renumbered;
  }

  const std::unique_ptr<BatchSource> source_;
  ReadAhead* const ahead_;  // source_, if it reads ahead
  const ClassMap classes_;
  const std::vector<std::string> names_;  // of training
  Batch batch_;
  Batch following_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BatchSource>> NumberedAsInTraining(std::unique_ptr<BatchSource> test,
                                                                  const BatchSource& train, const ConfigNode& config) {
  // Nothing to number, or numbers only, which stay as they are.
  if (!test->has_labels() || (!train.has_labels() && test->ClassNames().empty())) return test;
  SSL_ASSIGN_OR_RETURN(SplitClasses in_training, ClassesOf("TRAIN", train, config));
  SSL_ASSIGN_OR_RETURN(const SplitClasses in_test, ClassesOf("TEST", *test, config));
  // A head has an output for every class, also for one that DATA_LIMIT has left without a sample.
  in_training.numbers.resize(in_training.names.size());
  std::iota(in_training.numbers.begin(), in_training.numbers.end(), int64_t{0});
  SSL_ASSIGN_OR_RETURN(ClassMap classes, ClassMap::Create(in_training, in_test));
  if (classes.is_identity()) return test;
  return std::make_unique<RenumberedSource>(std::move(test), std::move(classes), std::move(in_training.names));
}

}  // namespace ssl
