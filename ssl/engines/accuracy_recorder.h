// SPDX-License-Identifier: Apache-2.0
//
// A hook that remembers the accuracies of every test phase, for a table at the end. Resumed runs keep theirs.
#ifndef SSL_ENGINES_ACCURACY_RECORDER_H_
#define SSL_ENGINES_ACCURACY_RECORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ssl/core/hook.h"

namespace ssl {

// Reads the accuracy_list_meter, its first output, with the smallest k and the largest.
class AccuracyRecorder : public Hook {
 public:
  absl::string_view name() const override { return "accuracy_recorder"; }
  HookStage stage() const override { return HookStage::kObserve; }
  WithinUpdate within_update() const override { return WithinUpdate::kObserves; }
  // DataLoss when a checkpoint has given lists of unequal length.
  absl::Status OnStart(StepContext& context) override;
  // FailedPrecondition when a test phase has no such meter.
  absl::Status OnPhaseEnd(StepContext& context) override;
  void VisitState(StateVisitor& visitor) override;

  // One element for each test phase; fractions in [0, 1].
  const std::vector<int64_t>& epochs() const { return epochs_; }  // trained before it
  const std::vector<double>& top1() const { return top1_; }
  const std::vector<double>& top5() const { return top5_; }

  // "epoch  top-1  top-5", one line each.
  std::string Table() const;

 private:
  std::vector<int64_t> epochs_;
  std::vector<double> top1_;
  std::vector<double> top5_;
};

}  // namespace ssl

#endif  // SSL_ENGINES_ACCURACY_RECORDER_H_
