// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/check_nan_hook.h"
#include "ssl/core/finite_check.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr absl::string_view kHints =
    "look at the learning rate (lower it or warm it up), the loss's temperature and epsilon, mixed precision, and the "
    "input images";

absl::Status NotFiniteError(const StepContext& context, absl::string_view what, absl::string_view weights) {
  return absl::OutOfRangeError(absl::StrCat(what, " at iteration ", context.state.iteration, " (epoch ",
                                            context.state.train_phase_index, "), expected a finite number; ", weights,
                                            "; ", kHints));
}

constexpr absl::string_view kBeforeStep = "the weights are those before this step";

absl::Status LossError(const StepContext& context, double loss) {
  return NotFiniteError(
      context, absl::StrCat("loss is ", loss, std::isfinite(loss) ? " here and not finite on another rank" : ""),
      kBeforeStep);
}

// Which of the facts hold on any rank.
absl::StatusOr<std::vector<bool>> OnAnyRank(const std::vector<bool>& here, Communicator& communicator) {
  at::Tensor flags = at::zeros({static_cast<int64_t>(here.size())}, at::kFloat);
  for (size_t i = 0; i < here.size(); ++i) flags[i] = here[i] ? 1.0 : 0.0;
  SSL_RETURN_IF_ERROR(communicator.AllReduce(flags, ReduceOp::kMax));
  std::vector<bool> anywhere;
  for (size_t i = 0; i < here.size(); ++i) anywhere.push_back(flags[i].item<float>() != 0.0F);
  return anywhere;
}

struct Named {
  std::vector<std::string> names;
  std::vector<at::Tensor> tensors;
};

// A host's optimizer need not name its parameters.
std::string NameOf(const ParameterGroup& group, size_t index) {
  if (index < group.names.size()) return group.names[index];
  return absl::StrCat("parameter ", index, " of group '", group.name, "'");
}

// What the optimizer updates, or the gradients of it.
Named Collect(Optimizer& optimizer, bool gradients) {
  Named named;
  for (const ParameterGroup& group : optimizer.groups()) {
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      const at::Tensor& tensor = gradients ? group.parameters[i].grad() : group.parameters[i];
      if (!tensor.defined() || tensor.numel() == 0) continue;  // no values have no largest one
      named.names.push_back(NameOf(group, i));
      named.tensors.push_back(tensor.detach());
    }
  }
  return named;
}

// By the bits of the exponents: a third of the time of norms, which are one operation for each tensor here.
std::string FirstNonFiniteOnCpu(const Named& named) {
  for (size_t i = 0; i < named.names.size(); ++i) {
    if (CountNonFinite(named.tensors[i]) > 0) return named.names[i];
  }
  return "";
}

// The first name whose tensor holds NaN or infinity; "" when none does. One read of the device.
std::string FirstNonFinite(const Named& named) {
  if (named.tensors.empty()) return "";
  if (named.tensors[0].is_cpu()) return FirstNonFiniteOnCpu(named);
  // The largest magnitude of each tensor: unlike a sum of squares, it overflows for no finite number.
  const std::vector<at::Tensor> largest = at::_foreach_norm(named.tensors, std::numeric_limits<double>::infinity());
  const at::Tensor finite = at::isfinite(at::stack(largest)).cpu();
  for (size_t i = 0; i < named.names.size(); ++i) {
    if (!finite[static_cast<int64_t>(i)].item<bool>()) return named.names[i];
  }
  return "";
}

absl::StatusOr<std::unique_ptr<Hook>> MakeCheckNan(const CheckNanOptions& options, const ConfigNode& params,
                                                   const BuildContext& context) {
  return std::make_unique<CheckNanHook>(options.report.log_frequency);
}

}  // namespace

std::vector<PlannedAction> CheckNanHook::Plan() const {
  return {{"looks at loss and gradients", {Cadence::Unit::kUpdate, 1, 1, 0, false}},
          {"looks at weights", {Cadence::Unit::kUpdate, weights_frequency_, 1, 0, false}}};
}

absl::Status CheckNanHook::OnLossAndMeter(StepContext& context) {
  const double loss = context.loss.detach().item<double>();
  if (context.state.training) {
    if (std::isfinite(loss_)) loss_ = loss;
    return absl::OkStatus();
  }
  SSL_ASSIGN_OR_RETURN(const std::vector<bool> bad, OnAnyRank({!std::isfinite(loss)}, context.communicator));
  return bad[0] ? LossError(context, loss) : absl::OkStatus();
}

absl::Status CheckNanHook::OnBackward(StepContext& context) {
  const double loss = std::exchange(loss_, 0.0);
  const bool looks = !context.skips_update && !context.gradients_are_finite;
  const at::NoGradGuard no_grad;
  const std::string name = looks ? FirstNonFinite(Collect(*context.optimizer, /*gradients=*/true)) : "";
  SSL_ASSIGN_OR_RETURN(const std::vector<bool> bad,
                       OnAnyRank({!std::isfinite(loss), !name.empty()}, context.communicator));
  if (bad[0]) return LossError(context, loss);
  if (!bad[1]) return absl::OkStatus();
  return NotFiniteError(context,
                        name.empty() ? "a gradient on another rank is NaN or infinite"
                                     : absl::StrCat("gradient of ", name, " is NaN or infinite"),
                        kBeforeStep);
}

absl::Status CheckNanHook::OnUpdate(StepContext& context) {
  const int64_t done = context.state.iteration + 1;
  if (done % weights_frequency_ != 0 && done != context.state.max_iterations) return absl::OkStatus();
  const at::NoGradGuard no_grad;
  const std::string name = FirstNonFinite(Collect(*context.optimizer, /*gradients=*/false));
  SSL_ASSIGN_OR_RETURN(const std::vector<bool> bad, OnAnyRank({!name.empty()}, context.communicator));
  if (!bad[0]) return absl::OkStatus();
  return NotFiniteError(
      context, name.empty() ? "a weight on another rank is NaN or infinite" : absl::StrCat(name, " is NaN or infinite"),
      "an update that was too large has spoilt it, and it is not saved");
}

void CheckNanOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("CHECK_NAN", &check_nan, Doc("stop when loss, gradients or weights are NaN or infinite").MayChange());
}

absl::Status RegisterCheckNanHook(Registries* registries) {
  return RegisterHook(registries, {"check_nan", "stops the run when a loss, gradient or weight is NaN or infinite"},
                      &MakeCheckNan);
}

}  // namespace ssl
