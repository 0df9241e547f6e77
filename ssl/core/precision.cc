// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/precision.h"

#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

constexpr char kFloat16[] = "float16";
constexpr char kBFloat16[] = "bfloat16";
constexpr char kDynamic[] = "dynamic";

absl::StatusOr<double> ConstantLossScale(const AmpArguments& arguments, const ConfigNode& node) {
  const ConfigNode& scale = arguments.loss_scale;
  if (scale.is_null() || scale.text() == kDynamic) return arguments.opt_level == "O3" ? 1.0 : 0.0;
  const absl::StatusOr<double> value = scale.AsDouble();
  if (value.ok() && *value > 0.0) return value;
  return absl::InvalidArgumentError(absl::StrCat(node.location().ToString(),
                                                 ": config.MODEL.AMP_PARAMS.AMP_ARGS.loss_scale is ", scale.Describe(),
                                                 ", expected 'dynamic' or a number above 0"));
}

}  // namespace

void AmpArguments::VisitFields(FieldVisitor& visitor) {
  visitor.Field("opt_level", &opt_level,
                Doc("apex: O0 is float32, the others autocast").OneOf({"O0", "O1", "O2", "O3"}));
  visitor.Field("loss_scale", &loss_scale, Doc("with float16: dynamic, or a constant"));
  visitor.Field("keep_batchnorm_fp32", &keep_batchnorm_fp32, Doc("no effect: normalisation is always float32"));
  visitor.Field("master_weights", &master_weights, Doc("no effect: parameters are always float32"));
}

void AmpOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("USE_AMP", &use_amp, Doc("mixed precision"));
  visitor.Field("AMP_TYPE", &type, Doc("whose meaning AMP_ARGS has").OneOf({"apex", "pytorch"}));
  visitor.Field("AMP_DTYPE", &dtype,
                Doc("short format; empty: bfloat16 on cpu, float16 on gpu (ours)").OneOf({"", kBFloat16, kFloat16}));
  visitor.Field(
      "MAX_SKIPPED_UPDATES", &max_skipped_updates,
      Doc("updates in a row that overflowing float16 gradients may skip before the run ends in an error (ours)")
          .AtLeast(1)
          .MayChange());
  visitor.Section("AMP_ARGS", &arguments, Doc("arguments of apex"));
}

std::string DefaultAmpDtype(absl::string_view device) { return device == "gpu" ? kFloat16 : kBFloat16; }

absl::StatusOr<Precision> PrecisionOf(const AmpOptions& options, const std::string& device, const ConfigNode& node) {
  Precision precision;
  const bool is_float32 = options.type == "apex" && options.arguments.opt_level == "O0";
  if (!options.use_amp || is_float32) return precision;
  const bool is_half = (options.dtype.empty() ? DefaultAmpDtype(device) : options.dtype) == kFloat16;
  precision.autocast = is_half ? Autocast::kFloat16 : Autocast::kBFloat16;
  if (!is_half) return precision;
  precision.scales_loss = true;
  precision.max_skipped_updates = options.max_skipped_updates;
  const absl::StatusOr<double> scale = ConstantLossScale(options.arguments, node);
  if (!scale.ok()) return scale.status();
  precision.loss_scale = *scale;
  return precision;
}

}  // namespace ssl
