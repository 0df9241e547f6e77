// SPDX-License-Identifier: Apache-2.0
//
// Collapse: the network gives every image nearly the same features, and the loss looks fine. HOOKS.COLLAPSE_MONITOR
// measures every FREQUENCY iterations, on the batch in progress,
//
//   Training/feature_spread    the standard deviation of the normalised features per dimension, times sqrt(D): 1 when
//                              they fill the sphere, 0 when all are one (arXiv 2011.10566, section 4.1)
//   Training/effective_rank    the dimensions that the features use, between 1 and D: the exponential of the entropy of
//                              their singular values (RankMe, arXiv 2210.02885)
//                              (both NaN for features that are not finite, which check_nan tells of)
//   Training/prototype_usage   of methods with scores [N, K]: the entropy of the prototypes that are the nearest to a
//                              sample, divided by that of even usage; between 0 and 1
//
// and warns when one stays low, or when the loss stays at ln K, which is that of even scores. Stage kObserve.
#ifndef SSL_HOOKS_COLLAPSE_MONITOR_HOOK_H_
#define SSL_HOOKS_COLLAPSE_MONITOR_HOOK_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/component.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/step_context.h"

namespace ssl {

struct CollapseMonitorOptions : public ComponentOptions {
  bool monitors = false;
  int64_t frequency = 100;

  absl::string_view section() const override { return "HOOKS.COLLAPSE_MONITOR"; }
  bool enabled() const override { return monitors; }
  void VisitFields(FieldVisitor& visitor) override;
};

// features: [N, D], N at least 2. At most the first 1,024 rows count. NaN for what is not finite. May throw LibTorch
// exceptions.
double FeatureSpread(const at::Tensor& features);
double EffectiveRank(const at::Tensor& features);

// scores: [N, K], K at least 2. Even usage of min(N, K) prototypes is 1.
double PrototypeUsage(const at::Tensor& scores);

class CollapseMonitorHook : public Hook {
 public:
  explicit CollapseMonitorHook(const CollapseMonitorOptions& options) : options_(options) {}

  absl::string_view name() const override { return "collapse_monitor"; }
  HookStage stage() const override { return HookStage::kObserve; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  std::vector<PlannedAction> Plan() const override;

  // Reads outputs[0] as features when it is [N, D], and outputs[1] as scores when it is [N, K] with as many rows.
  absl::Status OnLossAndMeter(StepContext& context) override;

 private:
  // A value that is wrong in several looks in a row is warned about once, until it has been right again.
  struct Watch {
    int looks = 0;
  };
  void Look(bool wrong, const std::string& message, Watch* watch) const;

  const CollapseMonitorOptions options_;
  Watch spread_;
  Watch rank_;
  Watch usage_;
  Watch loss_;
};

absl::Status RegisterCollapseMonitorHook(Registries* registries);

}  // namespace ssl

#endif  // SSL_HOOKS_COLLAPSE_MONITOR_HOOK_H_
