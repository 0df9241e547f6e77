// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/collapse_monitor_hook.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_eigvalsh.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ssl/base/log.h"
#include "ssl/core/autocast.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr int64_t kMostRows = 1024;
constexpr double kEps = 1e-12;
// Looks in a row that make a warning: one batch may be odd.
constexpr int kLooks = 3;
constexpr double kLowSpread = 0.1;
constexpr double kLowRank = 2.0;
constexpr double kLowUsage = 0.2;
constexpr double kSameLoss = 0.005;  // of ln K

constexpr char kFeatureAdvice[] =
    "a lower learning rate (config.OPTIMIZER.param_schedulers.lr) or a longer warm-up helps; so does looking at the "
    "views: they must differ within an image";
constexpr char kPrototypeAdvice[] =
    "a smaller epsilon of the loss (0.03), prototypes that are frozen longer "
    "(config.MODEL.TEMP_FROZEN_PARAMS_ITER_MAP), "
    "a queue that starts later, or a lower learning rate help";

at::Tensor Rows(const at::Tensor& features) {
  return features.detach().narrow(0, 0, std::min(features.size(0), kMostRows)).to(at::kFloat);
}

// exp of the entropy of `weights`, which need not add up to 1.
double ExponentialOfEntropy(const at::Tensor& weights) {
  const at::Tensor shares = weights / weights.sum().clamp_min(kEps);
  const double entropy = -(shares * (shares + kEps).log()).sum().item<double>();
  return std::exp(std::max(0.0, entropy));
}

absl::StatusOr<std::unique_ptr<Hook>> MakeCollapseMonitor(const CollapseMonitorOptions& options,
                                                          const ConfigNode& params, const BuildContext& context) {
  return std::make_unique<CollapseMonitorHook>(options);
}

}  // namespace

void CollapseMonitorOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field(
      "MONITOR_COLLAPSE", &monitors,
      Doc("measure whether features and prototypes stay diverse, and warn when they do not (ours)").MayChange());
  visitor.Field("FREQUENCY", &frequency, Doc("iterations between two looks (ours)").AtLeast(1).MayChange());
}

double FeatureSpread(const at::Tensor& features) {
  const at::Tensor rows = Rows(features);
  const at::Tensor directions = rows / rows.norm(2, 1, /*keepdim=*/true).clamp_min(kEps);
  return directions.std(0).mean().item<double>() * std::sqrt(static_cast<double>(rows.size(1)));
}

double EffectiveRank(const at::Tensor& features) {
  const at::Tensor rows = Rows(features).to(at::kDouble);
  // The decomposition throws for what is not finite. All ranks report the name, so that it has a value.
  if (!at::isfinite(rows).all().item<bool>()) return std::numeric_limits<double>::quiet_NaN();
  // The smaller of the two products with the same singular values.
  const at::Tensor product = rows.size(0) < rows.size(1) ? at::matmul(rows, rows.t()) : at::matmul(rows.t(), rows);
  return ExponentialOfEntropy(at::linalg_eigvalsh(product).clamp_min(0.0).sqrt());
}

double PrototypeUsage(const at::Tensor& scores) {
  const at::Tensor counts = at::bincount(scores.detach().argmax(1), {}, scores.size(1)).to(at::kDouble);
  const auto most = static_cast<double>(std::min(scores.size(0), scores.size(1)));
  return most > 1.0 ? std::log(ExponentialOfEntropy(counts)) / std::log(most) : 1.0;
}

void CollapseMonitorHook::Look(bool wrong, const std::string& message, Watch* watch) const {
  watch->looks = wrong ? watch->looks + 1 : 0;
  if (watch->looks == kLooks) SSL_LOG(WARNING) << instance_name() << ": " << message;
}

std::vector<PlannedAction> CollapseMonitorHook::Plan() const {
  return {{"measures features and prototypes", {Cadence::Unit::kUpdate, options_.frequency, 1, 0, false}}};
}

absl::Status CollapseMonitorHook::OnLossAndMeter(StepContext& context) {
  const int64_t update = context.state.iteration + 1;  // the one that this batch is of
  const bool due = context.state.training && update % options_.frequency == 0 && context.batch_in_update == 0 &&
                   !context.outputs.empty();
  if (!due) return absl::OkStatus();
  const at::NoGradGuard no_grad;
  const AutocastScope full_precision(Autocast::kOff);
  const at::Tensor& features = context.outputs[0];
  if (features.dim() != 2 || features.size(0) < 2) return absl::OkStatus();
  const double spread = FeatureSpread(features);
  const double rank = EffectiveRank(features);
  context.metrics.Add("Training/feature_spread", spread);
  context.metrics.Add("Training/effective_rank", rank);
  const std::string at = absl::StrCat(" at iteration ", update, "; ");
  Look(
      spread < kLowSpread,
      absl::StrFormat("the features of all images are nearly one: feature_spread %.3f%s%s", spread, at, kFeatureAdvice),
      &spread_);
  Look(rank < kLowRank,
       absl::StrFormat("features use %.1f of %d dimensions%s%s", rank, features.size(1), at, kFeatureAdvice), &rank_);
  const bool has_scores = context.outputs.size() > 1 && context.outputs[1].dim() == 2 &&
                          context.outputs[1].size(0) == features.size(0) && context.outputs[1].size(1) > 1;
  if (!has_scores) return absl::OkStatus();
  const double usage = PrototypeUsage(context.outputs[1]);
  context.metrics.Add("Training/prototype_usage", usage);
  Look(usage < kLowUsage,
       absl::StrFormat("few prototypes are the nearest of any sample: prototype_usage %.3f%s%s", usage, at,
                       kPrototypeAdvice),
       &usage_);
  const double even = std::log(static_cast<double>(context.outputs[1].size(1)));
  const double loss = context.loss.defined() ? context.loss.item<double>() : 0.0;
  Look(std::abs(loss - even) < kSameLoss * even,
       absl::StrFormat("the loss stays at %.3f, that of even scores for %d prototypes%s%s", loss,
                       context.outputs[1].size(1), at, kPrototypeAdvice),
       &loss_);
  return absl::OkStatus();
}

absl::Status RegisterCollapseMonitorHook(Registries* registries) {
  return RegisterHook(registries, {"collapse_monitor", "measures whether features and prototypes stay diverse"},
                      &MakeCollapseMonitor);
}

}  // namespace ssl
