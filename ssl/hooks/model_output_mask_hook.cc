// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/model_output_mask_hook.h"

#include <ATen/ops/ones.h>
#include <c10/core/ScalarType.h>

#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr absl::string_view kKey = "config.METERS.model_output_mask";

absl::StatusOr<std::unique_ptr<Hook>> MakeModelOutputMask(const ModelOutputMaskOptions& options,
                                                          const ConfigNode& params, const BuildContext& context) {
  return std::make_unique<ModelOutputMaskHook>();
}

}  // namespace

std::vector<PlannedAction> ModelOutputMaskHook::Plan() const {
  return {
      {"masks scores of classes that are not there", {Cadence::Unit::kEpoch, 1, 1, 0, false}, /*in_test_phase=*/true}};
}

absl::Status ModelOutputMaskHook::OnPhaseStart(StepContext& context) {
  if (context.state.training || classes_.has_value()) return absl::OkStatus();
  SSL_RET_CHECK(context.source != nullptr, "a test phase has a source of batches");
  absl::StatusOr<std::vector<int64_t>> classes = context.source->Classes();
  if (!classes.ok()) return Annotate(classes.status(), absl::StrCat(kKey, " needs the classes of the test split"));
  classes_ = *std::move(classes);
  return absl::OkStatus();
}

absl::StatusOr<at::Tensor> ModelOutputMaskHook::AbsentClasses(const at::Tensor& scores) {
  const int64_t num_classes = scores.size(1);
  at::Tensor& absent = absent_[num_classes];
  if (absent.defined()) return absent;
  at::Tensor mask = at::ones({num_classes}, at::kBool);
  for (const int64_t label : *classes_) {
    if (label < 0 || label >= num_classes) {
      return absl::InvalidArgumentError(absl::StrCat(kKey, ": the test split has class ", label,
                                                     ", but the model has scores of ", num_classes,
                                                     " classes, expected classes in [0, ", num_classes, ")"));
    }
    mask.mutable_data_ptr<bool>()[label] = false;
  }
  absent = mask.to(scores.device());
  return absent;
}

absl::Status ModelOutputMaskHook::OnForward(StepContext& context) {
  if (context.state.training) return absl::OkStatus();
  for (at::Tensor& scores : context.outputs) {
    if (scores.dim() != 2) continue;
    SSL_ASSIGN_OR_RETURN(const at::Tensor absent, AbsentClasses(scores));
    if (scores.requires_grad()) scores = scores.detach().clone();  // autograd may need what would be overwritten
    scores.masked_fill_(absent, -std::numeric_limits<double>::infinity());
  }
  return absl::OkStatus();
}

absl::Status RegisterModelOutputMaskHook(Registries* registries) {
  return RegisterHook(registries,
                      {"model_output_mask", "in test phases, scores of classes that the split lacks are -inf"},
                      &MakeModelOutputMask);
}

}  // namespace ssl
