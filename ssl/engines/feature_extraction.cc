// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/feature_extraction.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/clock.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_views.h"
#include "ssl/core/device_memory.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/broken_images_results.h"
#include "ssl/engines/progress.h"
#include "ssl/hooks/labelled_features.h"

namespace ssl {
namespace {

absl::Status CheckViews(const Batch& batch, const std::string& what) {
  if (batch.views.size() == 1 && HasARowForEachSample(batch)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": batches have ", ViewsOf(batch).size(),
                                                 " views, expected 1; check config.DATA.TEST.TRANSFORMS"));
}

absl::Status Stopped(const std::string& what) { return absl::CancelledError(absl::StrCat(what, ": stopped")); }

absl::Status MissingLabels(const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat(what,
                   ": batches have no labels, expected a class for each image; check LABEL_SOURCES and LABEL_PATHS of "
                   "config.DATA.TRAIN and config.DATA.TEST"));
}

// A number that is not finite would win or lose every comparison, and the accuracy would still look like one.
absl::Status CheckFinite(const FeatureBatch& batch, const std::vector<std::string>& names, const std::string& what) {
  for (size_t i = 0; i < batch.features.size(); ++i) {
    const at::Tensor finite = at::isfinite(batch.features[i]).flatten(1).all(1);  // [B]
    if (finite.all().item<bool>()) continue;
    const int64_t row = finite.logical_not().nonzero()[0].item<int64_t>();
    return absl::OutOfRangeError(
        absl::StrCat(what, ": layer '", i < names.size() ? names[i] : absl::StrCat(i), "' of sample ",
                     batch.indices[row].item<int64_t>(),
                     " has values that are not finite, expected numbers; the "
                     "weights are too large, or the precision is too low: try config.MODEL.AMP_PARAMS.USE_AMP=False"));
  }
  return absl::OkStatus();
}

absl::Status RunEpoch(BatchSource& source, const FeatureLayers& layers, const std::string& what, const StopToken& stop,
                      absl::FunctionRef<absl::Status(const FeatureBatch&)> consume) {
  int64_t done = 0;
  std::unique_ptr<Progress> progress;
  SSL_RETURN_IF_ERROR(source.StartEpoch(0, 0));
  while (true) {
    if (stop.requested()) return Stopped(what);
    SSL_ASSIGN_OR_RETURN(const Batch* batch, source.Next());
    if (batch == nullptr) return absl::OkStatus();
    SSL_RETURN_IF_ERROR(CheckViews(*batch, what));
    if (progress == nullptr) {
      // A rank sees a part of the data set only.
      const int64_t total = std::min(source.dataset_size(), source.batches_per_epoch() * batch->size());
      progress = std::make_unique<Progress>(what, total, Clock::Real());
    }
    const FeatureBatch features{layers.compute(batch->views[0]), batch->targets, batch->indices};
    SSL_RETURN_IF_ERROR(CheckFinite(features, layers.names, what));
    SSL_RETURN_IF_ERROR(consume(features));
    done += batch->size();
    progress->Update(done);
  }
}

// Fills preallocated tensors of `total` rows.
class Collector {
 public:
  Collector(int64_t total, std::string what, LabelNeed labels)
      : total_(total), what_(std::move(what)), labels_(labels) {}

  absl::Status Add(const FeatureBatch& batch) {
    if (!batch.labels.defined() && labels_ == LabelNeed::kRequired) return MissingLabels(what_);
    const int64_t rows = batch.indices.size(0);
    if (done_ + rows > total_) return WrongCount(done_ + rows);
    if (done_ == 0) Allocate(batch);
    for (size_t i = 0; i < batch.features.size(); ++i) Put(batch.features[i], &set_.features[i]);
    if (batch.labels.defined()) Put(batch.labels, &set_.labels);
    Put(batch.indices, &set_.indices);
    done_ += rows;
    return absl::OkStatus();
  }

  absl::StatusOr<FeatureSet> Finish() {
    if (done_ != total_) return WrongCount(done_);
    return std::move(set_);
  }

 private:
  void Allocate(const FeatureBatch& batch) {
    for (const at::Tensor& features : batch.features) set_.features.push_back(Like(features));
    if (batch.labels.defined()) set_.labels = Like(batch.labels);
    set_.indices = Like(batch.indices);
  }

  at::Tensor Like(const at::Tensor& rows) const {
    std::vector<int64_t> shape = rows.sizes().vec();
    shape[0] = total_;
    return at::empty(shape, rows.options());
  }

  void Put(const at::Tensor& rows, at::Tensor* all) const { all->slice(0, done_, done_ + rows.size(0)).copy_(rows); }

  absl::Status WrongCount(int64_t count) const {
    return absl::InternalError(absl::StrCat(what_, ": source gave ", count, " samples of ", total_));
  }

  const int64_t total_;
  const std::string what_;
  const LabelNeed labels_;
  int64_t done_ = 0;
  FeatureSet set_;
};

absl::Status Gather(at::Tensor* rows, Communicator& communicator) {
  SSL_ASSIGN_OR_RETURN(const at::Tensor all, communicator.AllGather(*rows));  // [ranks, n, ...]
  *rows = all.flatten(0, 1);
  return absl::OkStatus();
}

absl::Status GuardInference(const std::string& what, const FeatureLayers& layers,
                            absl::FunctionRef<absl::Status()> work) {
  const absl::Status status = GuardTorch(what, [&] {
    const c10::InferenceMode inference;
    return work();
  });
  return WithMemoryAdvice(status, layers.device, MemoryUse::kEvaluation);
}

// From the shares of all ranks to the whole set.
absl::Status GatherShares(FeatureSet* set, Communicator& communicator) {
  SSL_RETURN_IF_ERROR(Gather(&set->indices, communicator));
  const at::Tensor kept = FirstOfEach(set->indices);
  std::vector<at::Tensor*> parts;
  if (set->labels.defined()) parts.push_back(&set->labels);
  for (at::Tensor& features : set->features) parts.push_back(&features);
  for (at::Tensor* rows : parts) {
    SSL_RETURN_IF_ERROR(Gather(rows, communicator));
    *rows = rows->index_select(0, kept);  // at once: the set of all ranks is large
  }
  set->indices = set->indices.index_select(0, kept);
  return absl::OkStatus();
}

}  // namespace

absl::Status ForEachFeatureBatch(BatchSource& source, const FeatureLayers& layers, const std::string& what,
                                 const StopToken& stop, absl::FunctionRef<absl::Status(const FeatureBatch&)> consume) {
  return GuardInference(what, layers, [&] { return RunEpoch(source, layers, what, stop, consume); });
}

absl::Status DropRows(const std::map<int64_t, ReadFault>& images, const std::string& what, FeatureSet* set) {
  if (images.empty()) return absl::OkStatus();
  const at::Tensor indices = set->indices.contiguous();
  const int64_t* index = indices.const_data_ptr<int64_t>();
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < indices.size(0); ++row) {
    if (images.count(index[row]) == 0) rows.push_back(row);
  }
  if (rows.empty()) {
    return absl::DataLossError(absl::StrCat(what, ": none of the ", indices.size(0), " images can be read"));
  }
  const at::Tensor kept = at::tensor(rows, at::kLong);
  for (at::Tensor& features : set->features) features = features.index_select(0, kept);
  if (set->labels.defined()) set->labels = set->labels.index_select(0, kept);
  set->indices = indices.index_select(0, kept);
  return absl::OkStatus();
}

absl::StatusOr<FeatureSet> ExtractFeatures(BatchSource& source, const FeatureLayers& layers, const std::string& what,
                                           const StopToken& stop, Communicator& communicator, LabelNeed labels) {
  const int64_t ranks = communicator.size();
  Collector collector((source.dataset_size() + ranks - 1) / ranks, what, labels);
  absl::Status status =
      ForEachFeatureBatch(source, layers, what, stop, [&](const FeatureBatch& batch) { return collector.Add(batch); });
  absl::StatusOr<FeatureSet> share = status.ok() ? collector.Finish() : status;
  SSL_RETURN_IF_ERROR(AgreeOnStatus(share.status(), what, communicator));
  if (ranks > 1) SSL_RETURN_IF_ERROR(GuardTorch(what, [&] { return GatherShares(&*share, communicator); }));
  SSL_ASSIGN_OR_RETURN(const auto broken, BrokenImagesOf(source, communicator));
  SSL_RETURN_IF_ERROR(GuardTorch(what, [&] { return DropRows(broken, what, &*share); }));
  return share;
}

absl::Status TryFirstImage(BatchSource& source, const FeatureLayers& layers, const std::string& what,
                           LabelNeed labels) {
  SSL_RETURN_IF_ERROR(source.StartEpoch(0, 0));
  SSL_ASSIGN_OR_RETURN(const Batch* batch, source.Next());
  if (batch == nullptr) return absl::InvalidArgumentError(absl::StrCat(what, ": the data set gives no batch"));
  SSL_RETURN_IF_ERROR(CheckViews(*batch, what));
  if (labels == LabelNeed::kRequired && !batch->targets.defined()) return MissingLabels(what);
  return GuardInference(what, layers, [&] {
    layers.compute(batch->views[0].slice(0, 0, 1));
    return absl::OkStatus();
  });
}

}  // namespace ssl
