// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/metric_printer_hook.h"

#include <cmath>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ssl/base/log.h"
#include "ssl/core/metric_history.h"
#include "ssl/hooks/process_memory.h"
#include "ssl/hooks/register_component.h"
#include "ssl/hooks/train_logger_hook.h"

namespace ssl {
namespace {

constexpr int64_t kEtaWindow = 1000;
constexpr int64_t kLossWindow = 200;
constexpr int64_t kDataWindow = 20;
constexpr double kBytesPerMegabyte = 1e6;

// "1:02:03" of whole seconds.
std::string FormatClock(double seconds) {
  const int64_t total = std::isfinite(seconds) ? static_cast<int64_t>(seconds) : 0;
  return absl::StrFormat("%d:%02d:%02d", total / 3600, total % 3600 / 60, total % 60);
}

bool IsShown(const std::string& name) {
  return absl::StrContains(absl::AsciiStrToLower(name), "loss") || absl::StrContains(name, "[metric]");
}

void AppendLosses(MetricStore& metrics, std::vector<std::string>* parts) {
  for (const std::string& name : metrics.Names()) {
    const MetricHistory* history = IsShown(name) ? metrics.History(name) : nullptr;
    if (history != nullptr) parts->push_back(absl::StrFormat("%s: %.4g", name, history->Median(kLossWindow)));
  }
}

void AppendTimes(StepContext& context, double seconds, std::vector<std::string>* parts) {
  parts->push_back(absl::StrFormat("time: %.4f s/iter", seconds));
  const MetricHistory* data = context.metrics.History(kDataSeconds);
  if (data != nullptr) parts->push_back(absl::StrFormat("data_time: %.4f s/iter", data->Mean(kDataWindow)));
  const int64_t samples = context.batch_size * context.batches_per_update * context.communicator.size();
  parts->push_back(absl::StrFormat("total_throughput: %.2f samples/s", static_cast<double>(samples) / seconds));
}

std::string FormatLine(StepContext& context) {
  const TrainState& state = context.state;
  const MetricHistory* times = context.metrics.History(kStepSeconds);
  const int64_t left = state.max_iterations - state.iteration;
  std::vector<std::string> parts;
  if (times != nullptr && left >= 0) {
    parts.push_back("eta: " + FormatClock(times->Median(kEtaWindow) * static_cast<double>(left)));
  }
  parts.push_back(absl::StrFormat("iteration: %d/%d", state.iteration, state.max_iterations));
  parts.push_back(absl::StrFormat("consumed_samples: %d", state.samples_seen));
  AppendLosses(context.metrics, &parts);
  if (times != nullptr) AppendTimes(context, times->GlobalMean(), &parts);
  if (context.optimizer != nullptr && !context.optimizer->groups().empty()) {
    parts.push_back(absl::StrFormat("lr: %.2e", context.optimizer->groups()[0].learning_rate));
  }
  parts.push_back(
      absl::StrFormat("max_mem: %.0fM", static_cast<double>(ReadProcessMemory().peak_bytes) / kBytesPerMegabyte));
  return absl::StrJoin(parts, "  ");
}

absl::StatusOr<std::unique_ptr<Hook>> MakeMetricPrinter(const MetricPrinterOptions& options, const ConfigNode& params,
                                                        const BuildContext& context) {
  return std::make_unique<MetricPrinterHook>(options.period);
}

}  // namespace

absl::string_view MetricPrinterOptions::section() const { return kHookList; }

void MetricPrinterOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("period", &period, Doc("iterations between lines").AtLeast(1));
}

std::vector<PlannedAction> MetricPrinterHook::Plan() const {
  return {{"prints a line", {Cadence::Unit::kUpdate, period_, 1, 0, true}}};
}

// Not collective: it reads what rank 0 itself has measured.
absl::Status MetricPrinterHook::OnStep(StepContext& context) {
  const TrainState& state = context.state;
  const bool due = state.iteration % period_ == 0 || state.iteration == state.max_iterations;
  if (state.training && due && context.communicator.rank() == 0) SSL_LOG(INFO) << FormatLine(context);
  return absl::OkStatus();
}

absl::Status RegisterMetricPrinterHook(Registries* registries) {
  constexpr int kRank = 1;  // after train_logger, whose times it shows
  return RegisterHook(registries, {"metric_printer", "progress line in LiBai's form", kRank}, &MakeMetricPrinter);
}

}  // namespace ssl
