// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/model_complexity_hook.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/core/state_dict.h"
#include "ssl/hooks/plan_once.h"
#include "ssl/hooks/progress_line.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

bool IsBatchStatistic(absl::string_view name) {
  return absl::EndsWith(name, "running_mean") || absl::EndsWith(name, "running_var") ||
         absl::EndsWith(name, "num_batches_tracked");
}

absl::StatusOr<std::unique_ptr<Hook>> MakeModelComplexity(const ModelComplexityOptions& options,
                                                          const ConfigNode& params, const BuildContext& context) {
  if (options.input_shape.size() != 3) {
    return absl::InvalidArgumentError(absl::StrCat(PlaceOf(params, "INPUT_SHAPE", context), " has ",
                                                   options.input_shape.size(),
                                                   " numbers, expected [channels, height, width]"));
  }
  return std::make_unique<ModelComplexityHook>(options.input_shape);
}

}  // namespace

void ModelComplexityOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("COMPUTE_COMPLEXITY", &compute_complexity,
                Doc("log parameters and operations of the model").MayChange());
  visitor.Field("INPUT_SHAPE", &input_shape,
                Doc("[channels, height, width] of the picture that is counted").AtLeast(1).MayChange());
}

absl::StatusOr<ModelComplexity> MeasureComplexity(Model& model, const std::vector<int64_t>& input_shape) {
  const WholeParameters whole(model);
  ModelComplexity complexity;
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, CollectState(model));
  for (const NamedTensor& entry : state) {
    if (!IsBatchStatistic(entry.name)) complexity.parameters += entry.tensor.numel();
  }
  const ParameterShards* const shards = model.parameter_shards();
  for (const NamedParameter& parameter : model.Parameters()) {
    const at::Tensor& value = parameter.value;
    const bool is_shard = shards != nullptr && shards->IsShard(value);
    complexity.trainable_parameters += is_shard ? value[0].numel() * shards->WholeRows(value) : value.numel();
  }

  std::vector<int64_t> shape = {1};
  shape.insert(shape.end(), input_shape.begin(), input_shape.end());
  const std::string what = absl::StrCat("counting the operations of the model for a picture [",
                                        absl::StrJoin(input_shape, ", "), "] (HOOKS.MODEL_COMPLEXITY.INPUT_SHAPE)");
  SSL_RETURN_IF_ERROR(GuardTorch(what, [&] {
    const at::NoGradGuard no_grad;
    const at::Device device = state.empty() ? at::Device(at::kCPU) : state[0].tensor.device();
    const at::Tensor picture = at::zeros(shape, device);
    model.SetTraining(false);
    complexity.operations = CountOperations([&] { model.Forward({picture}); });
    return absl::OkStatus();
  }));
  return complexity;
}

std::vector<PlannedAction> ModelComplexityHook::Plan() const {
  return {{"counts operations, ahead of the update", OnceAt(1)}};
}

absl::Status ModelComplexityHook::OnStart(StepContext& context) {
  const absl::StatusOr<ModelComplexity> complexity = MeasureComplexity(context.model, input_shape_);
  context.model.SetTraining(context.state.training);
  SSL_RETURN_IF_ERROR(complexity.status());
  if (context.communicator.rank() != 0) return absl::OkStatus();
  SSL_LOG(INFO) << "model: " << FormatCount(complexity->parameters) << " parameters, "
                << FormatCount(complexity->trainable_parameters) << " of them trained; for a picture ["
                << absl::StrJoin(input_shape_, ", ") << "]: " << FormatCount(complexity->operations.multiply_adds)
                << " multiply-adds and " << FormatCount(complexity->operations.activations)
                << " activations of convolutions and matrix products";
  return absl::OkStatus();
}

absl::Status RegisterModelComplexityHook(Registries* registries) {
  return RegisterHook(registries, {"model_complexity", "logs parameters, multiply-adds and activations of the model"},
                      &MakeModelComplexity);
}

}  // namespace ssl
