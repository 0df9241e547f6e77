// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/labelled_features.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_views.h"
#include "ssl/data/fault_counts.h"
#include "ssl/data/read_fault.h"
#include "ssl/distributed/agree.h"

namespace ssl {
namespace {

absl::Status CheckBatch(const Batch& batch, const std::string& what) {
  if (batch.views.size() != 1 || !HasARowForEachSample(batch)) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": batches have ", ViewsOf(batch).size(),
                                                   " views, expected 1; give config.DATA.TEST.TRANSFORMS, which an "
                                                   "evaluation reads both splits with"));
  }
  const bool has_classes = batch.targets.defined() && batch.targets.dim() == 1 &&
                           batch.targets.scalar_type() == at::kLong && batch.targets.min().item<int64_t>() >= 0;
  if (has_classes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": images have ", batch.targets.defined() ? "several labels or none" : "no labels",
      ", expected one class for each; check LABEL_SOURCES and LABEL_PATHS of config.DATA.TRAIN and config.DATA.TEST"));
}

// This rank's share, batch by batch.
struct Share {
  std::vector<at::Tensor> features;
  std::vector<at::Tensor> labels;
  std::vector<at::Tensor> indices;
};

absl::Status AddNextBatch(BatchSource& source, const std::string& what, const ComputeFeatures& compute, Share* share) {
  SSL_ASSIGN_OR_RETURN(const Batch* batch, source.Next());
  if (batch == nullptr) return absl::InternalError(absl::StrCat(what, ": fewer batches than batches_per_epoch()"));
  SSL_RETURN_IF_ERROR(CheckBatch(*batch, what));
  return GuardTorch(what, [&] {
    share->features.push_back(compute(batch->views[0]));
    // The next batch takes the loader's buffers.
    share->labels.push_back(batch->targets.clone());
    share->indices.push_back(batch->indices.clone());
    return absl::OkStatus();
  });
}

absl::StatusOr<at::Tensor> Gather(const std::vector<at::Tensor>& batches, Communicator& communicator) {
  SSL_ASSIGN_OR_RETURN(const at::Tensor rows, communicator.AllGather(at::cat(batches, 0)));  // [ranks, n, ...]
  return rows.flatten(0, 1);
}

// Of the images that ranks have read, by position in the data set. Collective.
absl::StatusOr<std::map<int64_t, ReadFault>> UnreadableImages(const LabelledSource& source,
                                                              Communicator& communicator) {
  std::map<int64_t, ReadFault> images;
  if (source.images != nullptr) images = source.images->replaced_images();
  SSL_RETURN_IF_ERROR(JoinFaults(communicator, &images));
  return images;
}

// Those of `rows`, positions in `indices`, whose sample is none of `images`.
at::Tensor Without(const std::map<int64_t, ReadFault>& images, const at::Tensor& indices, const at::Tensor& rows) {
  if (images.empty()) return rows;
  const at::Tensor samples = indices.index_select(0, rows);
  const int64_t* sample = samples.const_data_ptr<int64_t>();
  const int64_t* row = rows.const_data_ptr<int64_t>();
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    if (images.count(sample[i]) == 0) kept.push_back(row[i]);
  }
  return at::tensor(kept, at::kLong);
}

absl::StatusOr<LabelledFeatures> GatherAll(const LabelledSource& source, const Share& share, const std::string& what,
                                           Communicator& communicator) {
  SSL_ASSIGN_OR_RETURN(const at::Tensor features, Gather(share.features, communicator));
  SSL_ASSIGN_OR_RETURN(const at::Tensor labels, Gather(share.labels, communicator));
  SSL_ASSIGN_OR_RETURN(const at::Tensor indices, Gather(share.indices, communicator));
  SSL_ASSIGN_OR_RETURN(const auto unreadable, UnreadableImages(source, communicator));
  const at::Tensor all = FirstOfEach(indices);
  const at::Tensor rows = Without(unreadable, indices, all);
  if (rows.size(0) == 0) {
    return absl::DataLossError(absl::StrCat(what, ": none of the ", all.size(0), " images can be read"));
  }
  return LabelledFeatures{features.index_select(0, rows), labels.index_select(0, rows), all.size(0) - rows.size(0)};
}

}  // namespace

at::Tensor FirstOfEach(const at::Tensor& indices) {
  const at::Tensor order = indices.argsort(/*stable=*/true, 0, /*descending=*/false);
  const at::Tensor sorted = indices.index_select(0, order);
  const at::Tensor differs = sorted.slice(0, 1).ne(sorted.slice(0, 0, -1));
  const at::Tensor is_first = at::cat({at::ones({1}, differs.options()), differs}, 0);
  return order.masked_select(is_first);
}

absl::Status CheckLabelledImages(BatchSource& source, const std::string& what) {
  SSL_RETURN_IF_ERROR(source.StartEpoch(0, 0));
  SSL_ASSIGN_OR_RETURN(const Batch* batch, source.Next());
  if (batch == nullptr) return absl::InvalidArgumentError(absl::StrCat(what, ": the data set gives no batch"));
  return GuardTorch(what, [&] { return CheckBatch(*batch, what); });
}

absl::StatusOr<std::optional<LabelledFeatures>> CollectLabelledFeatures(const LabelledSource& source,
                                                                        const std::string& what,
                                                                        const ComputeFeatures& compute,
                                                                        const StopToken* stop,
                                                                        Communicator& communicator) {
  Share share;
  BatchSource& batches = *source.batches;
  absl::Status status = batches.StartEpoch(0, 0);
  // Ranks have equally many batches. They agree after each, so that all leave at the same one.
  for (int64_t i = 0; i < batches.batches_per_epoch(); ++i) {
    status.Update(AddNextBatch(batches, what, compute, &share));
    SSL_RETURN_IF_ERROR(AgreeOnStatus(status, what, communicator));
    SSL_ASSIGN_OR_RETURN(const bool stops, AnyRank(stop != nullptr && stop->requested(), communicator));
    if (stops) return std::optional<LabelledFeatures>();
  }
  SSL_ASSIGN_OR_RETURN(LabelledFeatures all, GatherAll(source, share, what, communicator));
  return std::optional<LabelledFeatures>(std::move(all));
}

}  // namespace ssl
