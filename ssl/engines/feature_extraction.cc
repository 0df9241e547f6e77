// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/feature_extraction.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <c10/core/InferenceMode.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ssl/base/clock.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/autocast.h"
#include "ssl/core/batch.h"
#include "ssl/engines/progress.h"

namespace ssl {
namespace {

// [B, D] float. A grey picture that the loader repeated for three channels counts once.
at::Tensor Pixels(const at::Tensor& images) {
  const at::Tensor first = images.slice(1, 0, 1);
  const bool is_grey = images.size(1) == 3 && at::equal(images, first.expand_as(images));
  return (is_grey ? first : images).flatten(1);
}

// [B, D] float: the pixels, or the requested stages side by side.
at::Tensor RowsOf(Model* model, const at::Tensor& images, const FeatureExtractionOptions& options) {
  if (model == nullptr) return Pixels(images);
  const AutocastScope autocast(options.use_autocast);
  std::vector<at::Tensor> rows;
  for (const at::Tensor& stage : model->Features(images, options.requests)) {
    const at::Tensor row = stage.flatten(1).to(at::kFloat);
    const bool joined = options.requests.size() > 1;
    rows.push_back(joined ? row.div(row.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12)) : row);
  }
  return at::cat(rows, 1);
}

absl::Status CheckBatch(const Batch& batch, const std::string& what) {
  if (batch.views.size() == 1 && batch.targets.defined()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, ": batches have ", batch.views.size(), " views and ",
                                                 batch.targets.defined() ? "labels" : "no labels",
                                                 ", expected 1 view and labels; check config.DATA.TEST"));
}

absl::StatusOr<FeatureSet> Extract(Model* model, BatchSource& source, const FeatureExtractionOptions& options,
                                   const StopToken& stop) {
  const int64_t total = source.dataset_size();
  Progress progress(options.what, total, Clock::Real());
  FeatureSet set;
  int64_t done = 0;
  SSL_RETURN_IF_ERROR(source.StartEpoch(0, 0));
  while (true) {
    if (stop.requested()) return absl::CancelledError(absl::StrCat(options.what, ": stopped"));
    SSL_ASSIGN_OR_RETURN(const Batch* batch, source.Next());
    if (batch == nullptr) break;
    SSL_RETURN_IF_ERROR(CheckBatch(*batch, options.what));
    const at::Tensor rows = RowsOf(model, batch->views[0], options);
    if (!set.features.defined()) {
      set.features = at::empty({total, rows.size(1)}, rows.options());
      set.labels = at::empty({total}, batch->targets.options());
    }
    set.features.slice(0, done, done + rows.size(0)).copy_(rows);
    set.labels.slice(0, done, done + rows.size(0)).copy_(batch->targets);
    done += rows.size(0);
    progress.Update(done);
  }
  if (done != total) {
    return absl::InternalError(absl::StrCat(options.what, ": source gave ", done, " samples of ", total));
  }
  return set;
}

}  // namespace

absl::StatusOr<std::vector<FeatureRequest>> ParseFeatureRequests(const std::vector<std::string>& texts) {
  std::vector<FeatureRequest> requests;
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
    FeatureRequest request{parts.first, 0};
    const bool pooled = !parts.second.empty();
    if (pooled && (!absl::SimpleAtoi(parts.second, &request.pool_size) || request.pool_size < 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("feature '", text, "' has no pooled size after ':', expected a stage like res4 or res4:2"));
    }
    requests.push_back(request);
  }
  return requests;
}

absl::StatusOr<FeatureSet> ExtractFeatures(Model* model, BatchSource& source, const FeatureExtractionOptions& options,
                                           const StopToken& stop) {
  absl::StatusOr<FeatureSet> set;
  SSL_RETURN_IF_ERROR(GuardTorch(options.what, [&] {
    const c10::InferenceMode inference;
    if (model != nullptr) model->SetTraining(false);
    set = Extract(model, source, options, stop);
    return set.status();
  }));
  return set;
}

}  // namespace ssl
