// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/check_nan_hook.h"

#include <ATen/ops/isfinite.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"

namespace ssl {
namespace {

constexpr absl::string_view kHints =
    "look at the learning rate (lower it or warm it up), the loss's temperature and epsilon, mixed precision, and the "
    "input images";

absl::Status NotFiniteError(const StepContext& context, double loss) {
  const std::string value =
      std::isfinite(loss) ? absl::StrCat(loss, " here and not finite on another rank") : absl::StrCat(loss);
  return absl::OutOfRangeError(absl::StrCat(
      "loss is ", value, " at iteration ", context.state.iteration, " (epoch ", context.state.train_phase_index,
      "), expected a finite number; the weights are those before this step; ", kHints));
}

}  // namespace

absl::Status CheckNanHook::OnLossAndMeter(StepContext& context) {
  const at::Tensor loss = context.loss.detach();
  at::Tensor not_finite = at::isfinite(loss).logical_not().to(at::kFloat).reshape({1});
  SSL_RETURN_IF_ERROR(context.communicator.AllReduce(not_finite, ReduceOp::kMax));
  if (not_finite.item<float>() == 0.0F) return absl::OkStatus();
  return NotFiniteError(context, loss.item<double>());
}

}  // namespace ssl
