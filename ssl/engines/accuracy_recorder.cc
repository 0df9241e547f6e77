// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/accuracy_recorder.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "ssl/core/step_context.h"

namespace ssl {

// Whoever reads one list goes through the others by its length.
absl::Status AccuracyRecorder::OnStart(StepContext& context) {
  if (top1_.size() == epochs_.size() && top5_.size() == epochs_.size()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrFormat("accuracy_recorder: the checkpoint has %d epochs, %d top-1 and %d top-5 accuracies, expected as "
                      "many of each",
                      epochs_.size(), top1_.size(), top5_.size()));
}

absl::Status AccuracyRecorder::OnPhaseEnd(StepContext& context) {
  if (context.state.training) return absl::OkStatus();
  for (const MeterReport& report : context.meter_reports) {
    if (report.meter != "accuracy_list_meter" || report.values.empty()) continue;
    // Of one output, a larger k is never less accurate.
    const std::string& output = report.values.front().output;
    double lowest = 100.0;
    double highest = 0.0;
    for (const MeterValue& value : report.values) {
      if (value.output != output) continue;
      lowest = std::min(lowest, value.value);
      highest = std::max(highest, value.value);
    }
    epochs_.push_back(context.state.train_phase_index + 1);
    top1_.push_back(lowest / 100.0);
    top5_.push_back(highest / 100.0);
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError("a test phase ended without a report of accuracy_list_meter");
}

void AccuracyRecorder::VisitState(StateVisitor& visitor) {
  visitor.Ints("epochs", epochs_);
  visitor.Doubles("top1", top1_);
  visitor.Doubles("top5", top5_);
}

std::string AccuracyRecorder::Table() const {
  std::string table = absl::StrFormat("%-6s %8s %8s   (test)\n", "epoch", "top-1", "top-5");
  for (size_t i = 0; i < epochs_.size(); ++i) {
    absl::StrAppendFormat(&table, "%-6d %7.2f%% %7.2f%%\n", epochs_[i], 100 * top1_[i], 100 * top5_[i]);
  }
  return table;
}

}  // namespace ssl
