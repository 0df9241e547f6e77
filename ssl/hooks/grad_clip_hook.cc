// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/grad_clip_hook.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/parameter_shards.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr char kPreDefined[] = "pre_defined";
constexpr char kAverage[] = "average";
constexpr char kMovingAverage[] = "moving_average";

void Keep(const at::Tensor& value, at::Tensor* kept) {
  if (!kept->defined()) *kept = at::empty_like(value);
  kept->copy_(value);
}

absl::StatusOr<std::unique_ptr<Hook>> MakeGradClip(const GradClipOptions& options, const ConfigNode& params,
                                                   const BuildContext& context) {
  GradClipRule rule;
  SSL_ASSIGN_OR_RETURN(rule.norm_type, ParseNormType(options.norm_type, PlaceOf(params, "NORM_TYPE", context)));
  rule.max_norm = options.max_norm;
  return std::make_unique<GradClipHook>("grad_clip", rule);
}

absl::Status Wrong(const ConfigNode& params, const BuildContext& context, absl::string_view key,
                   absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(PlaceOf(params, key, context), " ", problem));
}

absl::StatusOr<GradClipMode> ParseMode(const GradClipperOptions& options, const ConfigNode& params,
                                       const BuildContext& context) {
  if (options.mode == kPreDefined) {
    if (options.max_norm > 0.0) return GradClipMode::kPreDefined;
    return Wrong(params, context, "max_norm", "is missing or 0, expected a number above 0 for mode pre_defined");
  }
  if (options.mode == kAverage) return GradClipMode::kAverage;
  if (options.mode != kMovingAverage) {
    return Wrong(params, context, "mode", "is missing, expected pre_defined, average or moving_average");
  }
  if (options.momentum < 0.0) {
    return Wrong(params, context, "momentum", "is missing, expected a number between 0 and 1 for mode moving_average");
  }
  // A limit that only keeps its first value has nothing else to correct it by, and at 0 nothing is trained.
  if (options.momentum == 1.0 && options.bias_correction) {
    return Wrong(params, context, "momentum", "is 1, expected a number below 1 with bias_correction");
  }
  if (options.momentum == 1.0 && options.max_norm == 0.0) {
    return Wrong(params, context, "momentum",
                 "is 1, which keeps the limit at max_norm, 0: nothing would be trained; expected "
                 "a number below 1, or a max_norm above 0");
  }
  return GradClipMode::kMovingAverage;
}

absl::StatusOr<std::unique_ptr<Hook>> MakeGradClipper(const GradClipperOptions& options, const ConfigNode& params,
                                                      const BuildContext& context) {
  GradClipRule rule;
  SSL_ASSIGN_OR_RETURN(rule.mode, ParseMode(options, params, context));
  SSL_ASSIGN_OR_RETURN(rule.norm_type, ParseNormType(options.norm_type, PlaceOf(params, "norm_type", context)));
  rule.max_norm = options.max_norm;
  rule.momentum = options.momentum;
  rule.tolerance = options.tolerance;
  rule.bias_correction = options.bias_correction;
  rule.display_freq = options.display_freq;
  return std::make_unique<GradClipHook>("grad_clipper", rule);
}

}  // namespace

void GradClipOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("USE_GRAD_CLIP", &use_grad_clip, Doc("clip gradients by their norm before each update"));
  visitor.Field("NORM_TYPE", &norm_type, Doc("p of the norm: a number above 0, or inf"));
  visitor.Field("MAX_NORM", &max_norm, Doc("largest norm of all gradients together").Above(0));
}

absl::string_view GradClipperOptions::section() const { return kHookList; }

void GradClipperOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("mode", &mode,
                Doc("how the limit comes about; required").OneOf({kPreDefined, kAverage, kMovingAverage}));
  visitor.Field("max_norm", &max_norm,
                Doc("the limit (pre_defined, required there), or its value before the first update").AtLeast(0));
  visitor.Field("norm_type", &norm_type, Doc("p of the norm: a number above 0, or inf"));
  visitor.Field("momentum", &momentum, Doc("moving_average, required there: what is kept of the limit").Between(0, 1));
  visitor.Field("tolerance", &tolerance, Doc("average, moving_average: factor of the norms").Above(0));
  visitor.Field("bias_correction", &bias_correction,
                Doc("average, moving_average: take the share of the first limit out (ours)"));
  visitor.Field("display_freq", &display_freq,
                Doc("updates between lines with the limit, -1 or 0 for none").AtLeast(-1));
}

absl::StatusOr<double> ParseNormType(absl::string_view text, absl::string_view place) {
  double norm_type = 0.0;
  if (absl::EqualsIgnoreCase(text, "inf")) return std::numeric_limits<double>::infinity();
  if (absl::SimpleAtod(text, &norm_type) && norm_type > 0.0) return norm_type;
  return absl::InvalidArgumentError(absl::StrCat(place, " is '", text, "', expected a number above 0, or inf"));
}

at::Tensor GradNorm(const std::vector<at::Tensor>& gradients, double norm_type) {
  const at::NoGradGuard no_grad;
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, norm_type)), norm_type);
}

void ClipToNorm(const std::vector<at::Tensor>& gradients, const at::Tensor& norm, const at::Tensor& limit) {
  constexpr double kEps = 1e-6;  // as torch
  const at::NoGradGuard no_grad;
  at::_foreach_mul_(gradients, (norm + kEps).reciprocal().mul_(limit.to(norm.scalar_type())).clamp_max(1.0));
}

std::vector<PlannedAction> GradClipHook::Plan() const {
  std::vector<PlannedAction> plan = {{"clips gradients", {Cadence::Unit::kUpdate, 1, 1, 0, false}}};
  if (rule_.display_freq > 0) {
    plan.push_back({"shows the limit", {Cadence::Unit::kUpdate, rule_.display_freq, 1, 0, false}});
  }
  return plan;
}

absl::Status GradClipHook::OnStart(StepContext& context) {
  parameters_.clear();
  for (const NamedParameter& parameter : context.model.Parameters()) parameters_.push_back(parameter.value);
  return absl::OkStatus();
}

// What every rank has whole counts once, beside the shards of all ranks.
absl::StatusOr<at::Tensor> GradClipHook::NormOfAll(StepContext& context) const {
  const ParameterShards* const sharding = context.model.parameter_shards();
  if (sharding == nullptr) return GradNorm(gradients_, rule_.norm_type);
  std::vector<at::Tensor> shards;
  std::vector<at::Tensor> whole;
  for (const at::Tensor& parameter : parameters_) {
    if (parameter.grad().defined()) (sharding->IsShard(parameter) ? shards : whole).push_back(parameter.grad());
  }
  const at::Tensor own =
      shards.empty() ? at::full({}, 0.0, gradients_[0].options()) : GradNorm(shards, rule_.norm_type);
  SSL_ASSIGN_OR_RETURN(const at::Tensor of_shards, NormOverShards(own, rule_.norm_type, context.communicator));
  if (whole.empty()) return of_shards;
  return GradNorm({of_shards, GradNorm(whole, rule_.norm_type)}, rule_.norm_type);
}

GradClipHook::GradClipHook(std::string name, const GradClipRule& rule)
    : name_(std::move(name)),
      rule_(rule),
      limit_(at::full({}, rule.max_norm, at::kDouble)),
      updates_(at::full({}, 0.0, at::kDouble)) {}

at::Tensor GradClipHook::NextLimit(const at::Tensor& norm) {
  const at::NoGradGuard no_grad;
  if (rule_.mode == GradClipMode::kPreDefined) return at::full({}, rule_.max_norm, norm.options());
  limit_ = limit_.to(norm.device());
  updates_ = updates_.to(norm.device());
  const bool moves = rule_.mode == GradClipMode::kMovingAverage;
  const at::Tensor finite = at::isfinite(norm);
  const at::Tensor sample = norm.to(at::kDouble).mul(rule_.tolerance);
  const at::Tensor kept = moves ? at::full_like(updates_, rule_.momentum) : (updates_ + 1.0) / (updates_ + 2.0);
  limit_.copy_(at::where(finite, limit_ * kept + sample * (1.0 - kept), limit_));
  updates_.copy_(at::where(finite, updates_ + 1.0, updates_));
  if (!rule_.bias_correction) return limit_;
  const at::Tensor share = moves ? at::pow(rule_.momentum, updates_) : (updates_ + 1.0).reciprocal();
  // Before the first finite norm the first limit is all there is: nothing is clipped.
  return at::where(updates_ > 0.0, (limit_ - share * rule_.max_norm) / (1.0 - share),
                   at::full_like(limit_, std::numeric_limits<double>::infinity()));
}

std::string GradClipHook::MetricName(absl::string_view what) const {
  const bool is_named = instance_name() != name();
  return is_named ? absl::StrCat("Training/", instance_name(), "/", what) : absl::StrCat("Training/", what);
}

absl::Status GradClipHook::OnBackward(StepContext& context) {
  has_clipped_ = false;
  gradients_.clear();
  for (const at::Tensor& parameter : parameters_) {
    if (parameter.grad().defined()) gradients_.push_back(parameter.grad());
  }
  if (gradients_.empty()) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const at::Tensor norm, NormOfAll(context));
  const at::Tensor limit = NextLimit(norm);
  ClipToNorm(gradients_, norm, limit);
  Keep(norm, &last_norm_);
  Keep(limit, &last_limit_);
  has_clipped_ = true;
  gradients_.clear();
  return absl::OkStatus();
}

absl::Status GradClipHook::OnStep(StepContext& context) {
  if (!context.state.training || !has_clipped_) return absl::OkStatus();
  context.metrics.AddUnless(context.found_inf, MetricName("grad_norm"), last_norm_.clone());
  if (rule_.mode != GradClipMode::kPreDefined) {
    context.metrics.AddUnless(context.found_inf, MetricName("grad_norm_limit"), last_limit_.clone());
  }
  return Show(context, last_limit_);
}

absl::Status GradClipHook::Show(const StepContext& context, const at::Tensor& limit) const {
  const int64_t update = context.state.iteration;
  const bool due = rule_.display_freq > 0 && update % rule_.display_freq == 0 && context.communicator.rank() == 0;
  if (!due || SkipsUpdate(context.found_inf)) return absl::OkStatus();
  SSL_LOG(INFO) << instance_name() << ": update " << update << ", limit " << limit.item<double>();
  return absl::OkStatus();
}

void GradClipHook::VisitState(StateVisitor& visitor) {
  if (rule_.mode == GradClipMode::kPreDefined) return;
  visitor.Tensor("limit", limit_);
  visitor.Tensor("updates", updates_);
}

absl::Status RegisterGradClipHook(Registries* registries) {
  SSL_RETURN_IF_ERROR(
      RegisterHook(registries, {"grad_clip", "scales all gradients down to a largest common norm"}, &MakeGradClip));
  return RegisterHook(registries,
                      {"grad_clipper", "scales all gradients down to a common norm, given or that of the steps before"},
                      &MakeGradClipper);
}

}  // namespace ssl
