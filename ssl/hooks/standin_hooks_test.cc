// SPDX-License-Identifier: Apache-2.0
//
// A run with each registered hook leaves on a device what it leaves on the CPU, bit for bit, and updates in which the
// hook has nothing to tell read nothing back. Whole sessions; the device is the stand-in of the tests
// (docs/devices.md).
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/core/metrics.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/testing/saved_tensors.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

// Two epochs of four updates, each with a test phase; a trunk without kernels of its own for the CPU.
constexpr char kRun[] = R"(
TEST_MODEL: True
DATA:
  TRAIN:
    DATA_LIMIT: 64
    BATCHSIZE_PER_REPLICA: 16
    TRANSFORMS: [{name: ToTensor}, {name: Normalize, mean: [0.286], std: [0.353]}]
  TEST:
    SPLIT: test
    DATA_SOURCES: [synthetic]
    LABEL_SOURCES: [synthetic]
    DATA_LIMIT: 32
    DEFAULT_GRAY_IMG_SIZE: 16
    RANDOM_SYNTHETIC_LABELS: 4
    BATCHSIZE_PER_REPLICA: 16
    TRANSFORMS: [{name: ToTensor}, {name: Normalize, mean: [0.286], std: [0.353]}]
MODEL:
  TRUNK:
    NAME: vision_transformer
    VISION_TRANSFORMERS: {IMAGE_SIZE: 16, PATCH_SIZE: 4, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 16, MLP_DIM: 30,
                          QKV_BIAS: True, DROPOUT_RATE: 0.1, DROP_PATH_RATE: 0.3}
  HEAD: {PARAMS: [[mlp, {dims: [16, 4]}]]}
LOSS: {name: cross_entropy_multiple_output_single_target}
METERS: {names: [accuracy_list_meter], enable_training_meter: True}
OPTIMIZER: {num_epochs: 2, param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.1,
                                                   end_value: 0.0}}}
)";

constexpr int64_t kUpdates = 8;

// In these, none of the hooks below has anything to tell: every fourth, the first two and the last do.
const std::set<int64_t>& QuietUpdates() {
  static const auto* const updates = new std::set<int64_t>{6, 7};
  return *updates;
}

struct HookCase {
  std::string hook;
  std::string arguments;
};

void PrintTo(const HookCase& hook_case, std::ostream* out) { *out << hook_case.hook << " " << hook_case.arguments; }

// Each registered hook, acting as often as it may without coming at the quiet updates.
std::vector<HookCase> Cases() {
  return {
      {"best_checkpoint", "{METRICS: [Testing/loss_mean]}"},
      {"broken_images", "{}"},
      {"check_nan", "{}"},
      {"check_replicas", "{freq: 4}"},
      {"checkpoint", "{CHECKPOINT_ITER_FREQUENCY: 4}"},
      {"collapse_monitor", "{FREQUENCY: 4}"},
      {"crop_images", "{freq: 4}"},
      {"early_stop", "{METRIC: Testing/loss_mean}"},
      {"ema", "{ENABLE_EMA_METERS: True, WARMUP: 0.2, DECAY: 0.5}"},
      {"eval", "{ITER_FREQUENCY: 4, KNN_K: 4, LINEAR_EPOCHS: 2, LOSS: True}"},
      {"freeze_parameters", "{TEMP_FROZEN_PARAMS_ITER_MAP: [[heads.0.clf.0.weight, 3]]}"},
      {"grad_clip", "{MAX_NORM: 0.1}"},
      {"grad_clip", "{MAX_NORM: 0.1, NORM_TYPE: inf}"},
      {"grad_clipper", "{mode: pre_defined, max_norm: 0.1}"},
      {"grad_clipper", "{mode: average}"},
      {"grad_clipper", "{mode: moving_average, momentum: 0.9}"},
      {"gradient_collector", "{freq: 4}"},
      {"gradient_collector", "{freq: 4, measure: histogram}"},
      {"gradient_collector", "{freq: 4, grad_type: output}"},
      {"gradient_collector", "{freq: 4, grad_type: input}"},
      {"memory_checkpoint", "{}"},
      {"memory_empty", "{freq: 4}"},
      {"memory_summary", "{LOG_ITERATION_NUM: 3}"},
      {"metric_printer", "{period: 4}"},
      {"model_complexity", "{INPUT_SHAPE: [3, 16, 16]}"},
      {"model_output_mask", "{}"},
      {"perf_stats", "{PERF_STAT_FREQUENCY: 4}"},
      {"phase_metrics", "{}"},
      {"profiler", "{START_ITERATION: 2, NUM_ITERATIONS: 2}"},
      {"reload", "{group: 2}"},
      {"schedule_monitor", "{}"},
      {"straggler", "{FREQUENCY: 4}"},
      {"system_stats", "{FREQUENCY: 4}"},
      {"train_logger", "{}"},
  };
}

class KeepingSink : public MetricSink {
 public:
  explicit KeepingSink(std::vector<MetricReport>* reports) : reports_(*reports) {}
  absl::Status Write(const MetricReport& report) override {
    reports_.push_back(report);
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }

 private:
  std::vector<MetricReport>& reports_;
};

struct Outcome {
  std::vector<MetricReport> reports;
  std::map<std::string, at::Tensor> saved;
  TransferCounts reads;  // of quiet updates
};

absl::StatusOr<Outcome> Train(const HookCase& hook_case, const std::string& device) {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterProgramParts(&registries));
  const std::string hooks = absl::StrCat("hooks: [{type: ", hook_case.hook, ", kwargs: ", hook_case.arguments, "}]");
  SSL_ASSIGN_OR_RETURN(ConfigNode config, TrainingConfig({kRun, hooks}));
  const std::string directory = MakeTempDir("standin_hooks");
  config.SetPath("MACHINE.DEVICE", ConfigNode::FromString(device));
  config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(directory));
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(config, registries, {}));
  Outcome outcome;
  session->metrics().AddSink(std::make_unique<KeepingSink>(&outcome.reports));
  SSL_RETURN_IF_ERROR(session->Start());
  bool goes_on = true;
  while (goes_on) {
    const int64_t before = session->state().iteration;
    const TransferLog log;
    SSL_ASSIGN_OR_RETURN(goes_on, session->Step());
    const int64_t update = session->state().iteration;
    if (update == before || QuietUpdates().count(update) == 0) continue;
    for (const auto& [what, count] : log.reads()) outcome.reads[what] += count;
  }
  SSL_RETURN_IF_ERROR(session->Finish());
  EXPECT_EQ(session->state().iteration, kUpdates);
  outcome.saved = Saved(directory, kUpdates, {"model.safetensors", "optimizer.safetensors", "state_rank0.safetensors"});
  return outcome;
}

// What a machine's clock and memory say differs from run to run.
bool IsOfTheRun(const std::string& metric) {
  for (const char* const prefix : {"Training/", "Testing/", "Evaluation/", "Loss/", "Learning", "Collapse/"}) {
    if (absl::StartsWith(metric, prefix)) return true;
  }
  return false;
}

std::map<std::string, double> Values(const std::vector<MetricReport>& reports) {
  std::map<std::string, double> values;
  for (size_t i = 0; i < reports.size(); ++i) {
    for (const auto& [name, value] : reports[i].values) {
      if (IsOfTheRun(name)) values[absl::StrCat(i, " ", name)] = value;
    }
  }
  return values;
}

std::map<std::string, std::string> Images(const std::vector<MetricReport>& reports) {
  std::map<std::string, std::string> images;
  for (size_t i = 0; i < reports.size(); ++i) {
    for (const auto& [name, image] : reports[i].images) images[absl::StrCat(i, " ", name)] = image.pixels;
  }
  return images;
}

class StandinHooksTest : public ::testing::TestWithParam<HookCase> {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }
};

TEST_P(StandinHooksTest, LeaveTheRunOfTheCpu_AndAreQuiet) {
  ASSERT_OK_AND_ASSIGN(const Outcome expected, Train(GetParam(), "cpu"));
  ASSERT_OK_AND_ASSIGN(const Outcome found, Train(GetParam(), "gpu"));
  EXPECT_THAT(found.reads, IsEmpty());
  ExpectEqual(found.saved, expected.saved);
  EXPECT_EQ(Values(found.reports), Values(expected.reports));
  EXPECT_FALSE(Values(expected.reports).empty());
  EXPECT_TRUE(Images(found.reports) == Images(expected.reports));
}

std::string NameOf(const ::testing::TestParamInfo<HookCase>& info) {
  return absl::StrCat(info.param.hook, "_", info.index);
}

INSTANTIATE_TEST_SUITE_P(Each, StandinHooksTest, ::testing::ValuesIn(Cases()), &NameOf);

TEST(StandinHookCases, HaveEachRegisteredHook) {
  Registries registries;
  ASSERT_OK(RegisterProgramParts(&registries));
  // They draw maps, which this trunk has none of: not run on a device (docs/devices.md).
  std::set<std::string> tested = {"feature_vis", "grad_cam"};
  for (const HookCase& hook_case : Cases()) tested.insert(hook_case.hook);
  for (const std::string& name : registries.hooks.Names()) EXPECT_THAT(tested, Contains(name)) << "add a case above";
}

}  // namespace
}  // namespace ssl
