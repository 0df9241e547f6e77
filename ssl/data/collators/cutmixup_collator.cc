// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/collators/cutmixup_collator.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/reader.h"
#include "ssl/data/collators/cutmix.h"
#include "ssl/data/collators/view_rules.h"

namespace ssl {
namespace {

constexpr char kName[] = "cutmixup_collator";

struct CutMixUpOptions : public Options {
  std::string ssl_method;
  CutMixRule rule;
  std::string mode = "batch";
  double label_smoothing = 0.1;
  int64_t num_classes = 1000;

  void VisitFields(FieldVisitor& visitor) override {
    visitor.Field("ssl_method", &ssl_method,
                  Doc("The views that a method wants: 2 of one size for moco, 2 or more for simclr; empty: any.")
                      .OneOf({"", "moco", "simclr"}));
    visitor.Field("mixup_alpha", &rule.mixup_alpha, Doc("Of the beta distribution; 0: no mixup.").AtLeast(0));
    visitor.Field("cutmix_alpha", &rule.cutmix_alpha, Doc("Of the beta distribution; 0: no CutMix.").AtLeast(0));
    visitor.Field(
        "cutmix_minmax", &rule.min_max,
        Doc("Least and most side of CutMix's box, shares of the image's; empty: by cutmix_alpha.").Between(0, 1));
    visitor.Field("prob", &rule.probability, Doc("Probability of mixing.").Between(0, 1));
    visitor.Field("switch_prob", &rule.switch_probability, Doc("Of CutMix, where both are on.").Between(0, 1));
    visitor.Field("mode", &mode,
                  Doc("What has one draw: a batch, a pair of samples, a sample.").OneOf({"batch", "pair", "elem"}));
    visitor.Field("correct_lam", &rule.correct_share, Doc("Labels follow from the pixels that were taken."));
    visitor.Field("label_smoothing", &label_smoothing, Doc("Share of a label for all classes.").Between(0, 1));
    visitor.Field("num_classes", &num_classes, Doc("Columns of the targets.").Between(1, 1 << 20));
  }
};

// The views that a method reads.
ViewRule RuleOf(const std::string& ssl_method) {
  ViewRule rule;
  rule.name = absl::StrCat(kName, ssl_method.empty() ? "" : " with ssl_method ", ssl_method);
  if (ssl_method.empty()) return rule;
  const bool moco = ssl_method == "moco";
  rule.min_views = 2;
  if (moco) rule.max_views = 2;
  rule.one_size = true;
  rule.text = moco ? "2 views of one size" : "2 or more views of one size";
  return rule;
}

// Adds `share` of class `label`, smoothed, to the row `weights`.
void AddLabel(int64_t label, double share, double smoothing, absl::Span<float> weights) {
  const double everywhere = smoothing / static_cast<double>(weights.size());
  for (float& weight : weights) weight += static_cast<float>(share * everywhere);
  weights[label] += static_cast<float>(share * (1.0 - smoothing));
}

class CutMixUpCollator : public Collator {
 public:
  explicit CutMixUpCollator(CutMixUpOptions options)
      : options_(std::move(options)), views_(RuleOf(options_.ssl_method)) {}

  absl::Status Check(const Sample& first) const override {
    SSL_RETURN_IF_ERROR(CheckViews(views_, first));
    if (first.label_row.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("COLLATE_FUNCTION is ", kName, ", but a sample has labels for ",
                                                   first.label_row.size(), " classes, expected one class"));
  }

  TargetLayout Targets(const Sample& first) const override {
    if (first.num_views() > 1) return {TargetLayout::Kind::kNone, 0};
    return {TargetLayout::Kind::kWeights, options_.num_classes};
  }

  bool mixes_samples() const override { return true; }
  absl::Status CheckRows(int64_t rows) const override { return CheckEvenRows(kName, rows); }

  absl::Status Collate(const CollateContext& context, BatchRows* batch) const override {
    std::vector<Mixture> mixtures(batch->rows);
    for (size_t v = 0; v < batch->views.size(); ++v) {
      Draw(context, *batch, static_cast<int>(v), absl::MakeSpan(mixtures));
      MixWithFlipped(batch->views[v], mixtures);
    }
    return batch->target_weights == nullptr ? absl::OkStatus() : WriteTargets(mixtures, batch);
  }

 private:
  void Draw(const CollateContext& context, const BatchRows& batch, int v, absl::Span<Mixture> mixtures) const {
    const BatchRows::View& view = batch.views[v];
    const auto draw = [&](size_t row) {
      CounterRandom random = context.Random(batch, static_cast<int64_t>(row), v);
      return DrawMixture(options_.rule, view.height, view.width, random);
    };
    if (options_.mode == "batch") {
      std::fill(mixtures.begin(), mixtures.end(), draw(0));
      return;
    }
    const bool pairs = options_.mode == "pair";
    for (size_t a = 0; a < mixtures.size() / 2; ++a) {
      const size_t b = mixtures.size() - 1 - a;
      mixtures[a] = draw(a);
      mixtures[b] = pairs ? mixtures[a] : draw(b);
    }
  }

  absl::Status WriteTargets(const std::vector<Mixture>& mixtures, BatchRows* batch) const {
    SSL_RETURN_IF_ERROR(CheckLabels(*batch));
    for (int64_t row = 0; row < batch->rows; ++row) {
      float* first = batch->target_weights + row * options_.num_classes;
      const absl::Span<float> weights(first, static_cast<size_t>(options_.num_classes));
      std::fill(weights.begin(), weights.end(), 0.0f);
      const double own = mixtures[row].own_share;
      AddLabel(batch->labels[row], own, options_.label_smoothing, weights);
      AddLabel(batch->labels[batch->rows - 1 - row], 1.0 - own, options_.label_smoothing, weights);
    }
    return absl::OkStatus();
  }

  absl::Status CheckLabels(const BatchRows& batch) const {
    for (int64_t row = 0; row < batch.rows; ++row) {
      if (batch.labels[row] >= 0 && batch.labels[row] < options_.num_classes) continue;
      return absl::InvalidArgumentError(absl::StrCat("sample ", batch.indices[row], " has label ", batch.labels[row],
                                                     ", expected 0 to ", options_.num_classes - 1,
                                                     ", as num_classes of ", kName, " is ", options_.num_classes));
    }
    return absl::OkStatus();
  }

  const CutMixUpOptions options_;
  const ViewRule views_;
};

absl::Status CheckOptions(const CutMixUpOptions& options, const ConfigNode& params, absl::string_view path) {
  const std::vector<double>& min_max = options.rule.min_max;
  if (!min_max.empty() && (min_max.size() != 2 || min_max[0] > min_max[1])) {
    return absl::InvalidArgumentError(absl::StrCat(params.Find("cutmix_minmax")->location().ToString(), ": ", path,
                                                   ".cutmix_minmax is [", absl::StrJoin(min_max, ", "),
                                                   "], expected two numbers that do not fall, or none"));
  }
  if (options.rule.mixup_alpha > 0.0 || options.rule.cutmix_alpha > 0.0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(params.location().ToString(), ": ", path,
                                                 ": mixup_alpha and cutmix_alpha are 0, expected one above 0, or "
                                                 "cutmix_minmax; without mixing, default_collate"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Collator>> MakeCutMixUpCollator(const ConfigNode& params, absl::string_view path) {
  CutMixUpOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(params, path, UnknownKeys::kError, &options));
  if (!options.rule.min_max.empty()) options.rule.cutmix_alpha = 1.0;  // decides whether and when, as in timm
  SSL_RETURN_IF_ERROR(CheckOptions(options, params, path));
  return std::make_unique<CutMixUpCollator>(std::move(options));
}

std::unique_ptr<Options> MakeCutMixUpCollatorOptions() { return std::make_unique<CutMixUpOptions>(); }

}  // namespace ssl
