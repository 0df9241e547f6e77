// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/check_nan_hook.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/finite_check.h"
#include "ssl/core/training_pause.h"
#include "ssl/distributed/agree.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr absl::string_view kHints =
    "look at the learning rate (lower it or warm it up), the loss's temperature and epsilon, mixed precision, and the "
    "input images";

// All ranks come here at once, behind OnAnyRank. They agree that the run has failed, and a host may go on with its
// communicator.
absl::Status NotFiniteError(const StepContext& context, absl::string_view what, absl::string_view weights) {
  const absl::Status error = absl::OutOfRangeError(
      absl::StrCat(what, " at iteration ", context.state.iteration, " (epoch ", context.state.train_phase_index,
                   "), expected a finite number; ", weights, "; ", kHints));
  return AgreeOnStatus(error, "looking for numbers that are not finite", context.communicator);
}

// name: "" when it is on another rank.
absl::Status GradientError(const StepContext& context, const std::string& name, absl::string_view weights) {
  return NotFiniteError(context,
                        name.empty() ? "a gradient on another rank is NaN or infinite"
                                     : absl::StrCat("gradient of ", name, " is NaN or infinite"),
                        weights);
}

absl::Status WeightError(const StepContext& context, const std::string& name) {
  return NotFiniteError(
      context, name.empty() ? "a weight on another rank is NaN or infinite" : absl::StrCat(name, " is NaN or infinite"),
      "an update that was too large has spoilt it, and it is not saved");
}

constexpr absl::string_view kLate =
    "it is noticed at a look at the device alone, and weights have changed since; what is not finite is not saved";

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

// What the optimizer updates, or the gradients of it; those that are undefined, too, where `whole` says so.
Named Collect(Optimizer& optimizer, bool gradients, bool whole = false) {
  Named named;
  for (const ParameterGroup& group : optimizer.groups()) {
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      const at::Tensor& tensor = gradients ? group.parameters[i].grad() : group.parameters[i];
      if (group.parameters[i].numel() == 0 || (!tensor.defined() && !whole)) continue;  // no values, no largest one
      named.names.push_back(NameOf(group, i));
      named.tensors.push_back(tensor.defined() ? tensor.detach() : tensor);
    }
  }
  return named;
}

// The first name whose tensor, of the CPU, holds NaN or infinity; "" when none does. By the bits of the exponents: a
// third of the time of norms, which are one operation for each tensor here.
std::string FirstNonFinite(const Named& named) {
  for (size_t i = 0; i < named.names.size(); ++i) {
    if (CountNonFinite(named.tensors[i]) > 0) return named.names[i];
  }
  return "";
}

// flags: [names] bool, on the host. The first name that has one; "" when none does.
std::string FirstOf(const std::vector<std::string>& names, const at::Tensor& flags) {
  const bool* const flag = flags.const_data_ptr<bool>();
  for (size_t i = 0; i < names.size(); ++i) {
    if (flag[i]) return names[i];
  }
  return "";
}

// In place: a recorded update goes on with this memory.
void Note(const at::Tensor& now, at::Tensor* noted) {
  if (noted->defined()) {
    noted->logical_or_(now);
  } else {
    *noted = now.clone();
  }
}

bool IsOnAccelerator(const StepContext& context) { return context.loss.defined() && !context.loss.is_cpu(); }

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
  if (context.state.training && IsOnAccelerator(context)) {
    const at::NoGradGuard no_grad;
    Note(at::isfinite(context.loss.detach()).logical_not_(), &loss_was_bad_);
    return absl::OkStatus();
  }
  const double loss = context.loss.detach().item<double>();
  if (context.state.training) {
    if (std::isfinite(loss_)) loss_ = loss;
    return absl::OkStatus();
  }
  SSL_ASSIGN_OR_RETURN(const std::vector<bool> bad, OnAnyRank({!std::isfinite(loss)}, context.communicator));
  return bad[0] ? LossError(context, loss) : absl::OkStatus();
}

absl::Status CheckNanHook::OnBackward(StepContext& context) {
  const bool looks = !context.found_inf.defined();  // the loss scale has looked at them
  const at::NoGradGuard no_grad;
  if (IsOnAccelerator(context)) {
    if (looks) NoteGradients(*context.optimizer);
    return absl::OkStatus();
  }
  const double loss = std::exchange(loss_, 0.0);
  const std::string name = looks ? FirstNonFinite(Collect(*context.optimizer, /*gradients=*/true)) : "";
  SSL_ASSIGN_OR_RETURN(const std::vector<bool> bad,
                       OnAnyRank({!std::isfinite(loss), !name.empty()}, context.communicator));
  if (bad[0]) return LossError(context, loss);
  return bad[1] ? GradientError(context, name, kBeforeStep) : absl::OkStatus();
}

bool CheckNanHook::LooksAfter(int64_t updates, const StepContext& context) const {
  return updates % weights_frequency_ == 0 || updates == context.state.max_iterations;
}

absl::Status CheckNanHook::OnUpdate(StepContext& context) {
  if (IsOnAccelerator(context) || !LooksAfter(context.state.iteration + 1, context)) return absl::OkStatus();
  const at::NoGradGuard no_grad;
  const std::string name = FirstNonFinite(Collect(*context.optimizer, /*gradients=*/false));
  SSL_ASSIGN_OR_RETURN(const std::vector<bool> bad, OnAnyRank({!name.empty()}, context.communicator));
  return bad[0] ? WeightError(context, name) : absl::OkStatus();
}

absl::Status CheckNanHook::OnStep(StepContext& context) {
  const bool looks = context.state.training && LooksAfter(context.state.iteration, context);
  if (!looks || !IsOnAccelerator(context)) return absl::OkStatus();
  const at::NoGradGuard no_grad;
  return ReadNotes(context);
}

absl::Status CheckNanHook::OnException(StepContext& context, const absl::Status& error) {
  has_failed_ = true;  // other ranks may be gone
  return absl::OkStatus();
}

absl::Status CheckNanHook::OnEnd(StepContext& context) {
  const bool has_notes = loss_was_bad_.defined() && !LooksAfter(context.state.iteration, context);
  if (has_failed_ || !has_notes) return absl::OkStatus();
  const at::NoGradGuard no_grad;
  return ReadNotes(context);
}

void CheckNanHook::NoteGradients(Optimizer& optimizer) {
  Named named = Collect(optimizer, /*gradients=*/true, /*whole=*/true);
  if (named.tensors.empty()) return;
  const Named weights = Collect(optimizer, /*gradients=*/false);
  for (size_t i = 0; i < named.tensors.size(); ++i) {
    if (!named.tensors[i].defined()) named.tensors[i] = at::zeros({}, weights.tensors[i].options());
  }
  Note(NonFiniteFlags(named.tensors), &gradient_was_bad_);
}

absl::Status CheckNanHook::ReadNotes(StepContext& context) {
  const Named weights = Collect(*context.optimizer, /*gradients=*/false);
  const int64_t count = static_cast<int64_t>(weights.names.size());
  const at::TensorOptions options = context.loss.options().dtype(at::kBool);
  WaitForDevice(context.loss.device(), &context.perf_stats);
  at::Tensor& loss = loss_was_bad_;
  at::Tensor& gradients = gradient_was_bad_;
  // Of loss, gradients and weights together: one read.
  const at::Tensor flags = at::cat({loss.defined() ? loss.view(1) : at::zeros({1}, options),
                                    gradients.defined() ? gradients : at::zeros({count}, options),
                                    count > 0 ? NonFiniteFlags(weights.tensors) : at::zeros({0}, options)})
                               .to(at::kCPU);
  for (at::Tensor* noted : {&loss, &gradients}) {
    if (noted->defined()) noted->zero_();
  }
  const bool bad_loss = flags.const_data_ptr<bool>()[0];
  const std::string gradient = FirstOf(weights.names, flags.narrow(0, 1, count));
  const std::string weight = FirstOf(weights.names, flags.narrow(0, 1 + count, count));
  SSL_ASSIGN_OR_RETURN(const std::vector<bool> bad,
                       OnAnyRank({bad_loss, !gradient.empty(), !weight.empty()}, context.communicator));
  const std::string loss_of_any =
      absl::StrCat("a loss of the last ", weights_frequency_, " updates is NaN or infinite");
  if (bad[0]) return NotFiniteError(context, loss_of_any, kLate);
  if (bad[1]) return GradientError(context, gradient, kLate);
  return bad[2] ? WeightError(context, weight) : absl::OkStatus();
}

void CheckNanOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("CHECK_NAN", &check_nan, Doc("stop when loss, gradients or weights are NaN or infinite").MayChange());
}

absl::Status RegisterCheckNanHook(Registries* registries) {
  return RegisterHook(registries, {"check_nan", "stops the run when a loss, gradient or weight is NaN or infinite"},
                      &MakeCheckNan);
}

}  // namespace ssl
