// SPDX-License-Identifier: Apache-2.0
//
// A complete tiny training run without any plug-in: a linear model that learns to give two noisy views of a sample
// the same output. Every part is a real, small implementation; a run takes microseconds per step.
//
//   Registries registries;
//   ASSERT_OK(RegisterFakes(&registries));
//   ASSERT_OK_AND_ASSIGN(auto session, Session::Create(FakeConfig(dir), registries, {}));
#ifndef SSL_CORE_TESTING_FAKES_H_
#define SSL_CORE_TESTING_FAKES_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ssl/config/node.h"
#include "ssl/core/batch.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/hook.h"
#include "ssl/core/metrics.h"
#include "ssl/core/registries.h"

namespace ssl {

// `samples` images of 1x4x4 in two views, in an order that depends on the epoch; batches of `batch_size`.
// Each rank sees its own share.
class FakeSource : public BatchSource {
 public:
  FakeSource(int64_t samples, int64_t batch_size, int64_t rank, int64_t world_size);

  int64_t batches_per_epoch() const override;
  int64_t dataset_size() const override { return samples_; }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override;
  absl::StatusOr<const Batch*> Next() override;

 private:
  const int64_t samples_;
  const int64_t batch_size_;
  const int64_t rank_;
  const int64_t world_size_;
  int64_t epoch_ = 0;
  int64_t next_ = 0;
  Batch batch_;
};

// Registers: data set type "generic_ssl" (40 samples), model "multi_input_output_model", loss "swav_loss", meter
// "counting_meter", optimizer "sgd" (with momentum), schedules "linear" and "linear_by_epoch" (0.02 -> 0), grouping
// "default".
absl::Status RegisterFakes(Registries* registries);

// Two epochs of 10 steps, batch size 4, checkpoints in `run_directory`.
ConfigNode FakeConfig(const std::string& run_directory);

// Writes "<hook>.<event>@<iteration>" to a list, and can be told to act at an event.
class RecordingHook : public Hook {
 public:
  using Action = std::function<absl::Status(StepContext&)>;

  RecordingHook(std::string name, HookStage stage, std::vector<std::string>* events)
      : name_(std::move(name)), stage_(stage), events_(events) {}

  // Calls `action` at each `event`, such as "OnStep".
  void At(std::string event, Action action) {
    event_ = std::move(event);
    action_ = std::move(action);
  }

  absl::string_view name() const override { return name_; }
  HookStage stage() const override { return stage_; }
  absl::Status OnStart(StepContext& context) override { return Record("OnStart", context); }
  absl::Status OnPhaseStart(StepContext& context) override { return Record("OnPhaseStart", context); }
  absl::Status OnForward(StepContext& context) override { return Record("OnForward", context); }
  absl::Status OnLossAndMeter(StepContext& context) override { return Record("OnLossAndMeter", context); }
  absl::Status OnBackward(StepContext& context) override { return Record("OnBackward", context); }
  absl::Status OnUpdate(StepContext& context) override { return Record("OnUpdate", context); }
  absl::Status OnStep(StepContext& context) override { return Record("OnStep", context); }
  absl::Status OnPhaseEnd(StepContext& context) override { return Record("OnPhaseEnd", context); }
  absl::Status OnEnd(StepContext& context) override { return Record("OnEnd", context); }
  absl::Status OnException(StepContext& context, const absl::Status& error) override {
    return Record("OnException", context);
  }

 private:
  absl::Status Record(const std::string& event, StepContext& context);

  std::string name_;
  HookStage stage_;
  std::vector<std::string>* events_;
  std::string event_;
  Action action_;
};

// Keeps all reports.
class MemorySink : public MetricSink {
 public:
  explicit MemorySink(std::vector<MetricReport>* reports) : reports_(reports) {}
  absl::Status Write(const MetricReport& report) override {
    reports_->push_back(report);
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }

 private:
  std::vector<MetricReport>* reports_;
};

}  // namespace ssl

#endif  // SSL_CORE_TESTING_FAKES_H_
