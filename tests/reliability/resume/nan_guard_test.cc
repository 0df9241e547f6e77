// SPDX-License-Identifier: Apache-2.0
//
// Numbers that are not finite, put into a run at ten places, each in three of its steps: the run ends with an error on
// every rank, and what is saved is what the undisturbed run has saved before that step, to the bit.
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/io/file_system.h"
#include "ssl/methods/swav/swav.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "tests/reliability/resume/random_images.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kRanks = 2;
constexpr int64_t kSteps = 12;

constexpr char kConfig[] = R"(
SEED_VALUE: 3
LOG_FREQUENCY: 1000
TEST_MODEL: False
CHECKPOINT: {CHECKPOINT_ITER_FREQUENCY: 1, KEEP_LAST: 0}
DATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 4}}
DISTRIBUTED: {NUM_PROC_PER_NODE: 2}
HOOKS: {EMA_MODEL: {SAVE_EMA_MODEL: True, WARMUP: 0.0}}
LOSS: {name: swav_loss, swav_loss: {num_crops: 2, queue: {queue_length: 16, start_iter: 0}}}
MODEL:
  HEAD: {PARAMS: [[swav_head, {dims: [32, 16, 8], num_clusters: [5]}]]}
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.0625, STEM: small}}
OPTIMIZER:
  name: sgd
  momentum: 0.9
  num_epochs: 2
  param_schedulers: {lr: {name: cosine, start_value: 0.1, end_value: 0.0}}
)";

// Sets the first value.
void Fill(at::Tensor tensor, float value) {
  const at::NoGradGuard no_grad;
  while (tensor.dim() > 0) tensor = tensor.select(0, 0);  // a view, whatever the layout in memory
  tensor.fill_(value);
}

// The model's state of that name's end.
at::Tensor StateOf(Model& model, const std::string& suffix) {
  const absl::StatusOr<std::vector<NamedTensor>> state = CollectState(model);
  for (const NamedTensor& entry : *state) {
    if (absl::EndsWith(entry.name, suffix)) return entry.tensor;
  }
  return at::Tensor();
}

// Where a value is put: by a hook at `event`, before all others or after those that change the model. Ranks below
// `first_rank` stay as they are.
struct Place {
  const char* name;
  const char* event;
  HookStage stage;
  int64_t first_rank;
  std::function<void(StepContext& context)> spoil;
};

void PrintTo(const Place& place, std::ostream* out) { *out << place.name; }

std::vector<Place> Places() {
  const auto gradient = [](StepContext& context) { return context.optimizer->groups()[0].parameters[3].grad(); };
  return {
      {"InputNan", "OnForward", HookStage::kTiming, 0, nullptr},
      {"InputInfinityOnOneRank", "OnForward", HookStage::kTiming, 1, nullptr},
      {"LossNan", "OnLossAndMeter", HookStage::kTiming, 0, [](StepContext& c) { c.loss = c.loss.mul(kNan); }},
      {"LossInfinityOnOneRank", "OnLossAndMeter", HookStage::kTiming, 1,
       [](StepContext& c) { c.loss = c.loss.add(kInfinity); }},
      {"GradientNan", "OnBackward", HookStage::kTiming, 0, [gradient](StepContext& c) { Fill(gradient(c), kNan); }},
      {"GradientInfinityOnOneRank", "OnBackward", HookStage::kTiming, 1,
       [gradient](StepContext& c) { Fill(gradient(c), -kInfinity); }},
      {"QueueNan", "OnForward", HookStage::kObserve, 0,
       [](StepContext& c) {
         c.outputs[0] = c.outputs[0].clone();
         Fill(c.outputs[0], kNan);
       }},
      {"BatchStatisticsInfinity", "OnUpdate", HookStage::kMutate, 0,
       [](StepContext& c) { Fill(StateOf(c.model, "running_var"), kInfinity); }},
      {"WeightInfinity", "OnUpdate", HookStage::kMutate, 0,
       [](StepContext& c) { Fill(c.optimizer->groups()[0].parameters[3], kInfinity); }},
      {"AverageNan", "OnUpdate", HookStage::kMutate, 0,
       [](StepContext& c) { Fill(StateOf(c.model, "running_mean"), kNan); }},
  };
}

// Spoils one step.
class SpoilingHook : public Hook {
 public:
  SpoilingHook(Place place, int64_t iteration) : place_(std::move(place)), iteration_(iteration) {}
  absl::string_view name() const override { return "spoiling"; }
  HookStage stage() const override { return place_.stage; }
  absl::Status OnForward(StepContext& context) override { return At("OnForward", context); }
  absl::Status OnLossAndMeter(StepContext& context) override { return At("OnLossAndMeter", context); }
  absl::Status OnBackward(StepContext& context) override { return At("OnBackward", context); }
  absl::Status OnUpdate(StepContext& context) override { return At("OnUpdate", context); }
  // The averaged model alone keeps what was put into the model's statistics for it.
  absl::Status OnStep(StepContext& context) override {
    const bool here = std::string(place_.name) == "AverageNan" && context.state.iteration == iteration_ + 1;
    if (here) Fill(StateOf(context.model, "running_mean"), 0.0F);
    return absl::OkStatus();
  }

 private:
  absl::Status At(absl::string_view event, StepContext& context) {
    const bool here = event == place_.event && context.communicator.rank() >= place_.first_rank;
    if (here && place_.spoil != nullptr && context.state.iteration == iteration_) place_.spoil(context);
    return absl::OkStatus();
  }

  const Place place_;
  const int64_t iteration_;
};

// Images of which one batch has a pixel that is not finite.
class SpoiltImages : public RandomImages {
 public:
  SpoiltImages(int64_t rank, int64_t at, float value) : RandomImages(2, rank, kRanks), left_(at), value_(value) {}
  absl::StatusOr<const Batch*> Next() override {
    SSL_ASSIGN_OR_RETURN(const Batch* batch, RandomImages::Next());
    if (left_-- == 0) Fill(batch->views[0], value_);
    return batch;
  }

 private:
  int64_t left_;
  const float value_;
};

std::unique_ptr<BatchSource> SourceFor(const Place& place, int64_t iteration, int64_t rank) {
  if (place.spoil != nullptr || rank < place.first_rank) return std::make_unique<RandomImages>(2, rank, kRanks);
  const bool nan = absl::StrContains(place.name, "Nan");
  return std::make_unique<SpoiltImages>(rank, iteration, nan ? kNan : kInfinity);
}

// The error of each rank.
std::vector<absl::Status> TrainIn(const std::string& directory, const Place& place, int64_t iteration) {
  std::vector<std::string> warnings;
  ConfigNode config = *ParseYaml(kConfig, "case.yaml", &warnings);
  config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(directory));
  Registries registries;
  EXPECT_OK(RegisterSwav(&registries));
  EXPECT_OK(RegisterHooks(&registries));
  std::vector<absl::Status> ended(kRanks);
  EXPECT_OK(ThreadWorld(kRanks, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
    SessionOptions options;
    options.communicator = &communicator;
    options.train_source = SourceFor(place, iteration, communicator.rank());
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(config, registries, std::move(options)));
    SSL_RETURN_IF_ERROR(session->AddHook(std::make_unique<SpoilingHook>(place, iteration)));
    for (int64_t step = 0; step < kSteps; ++step) {
      const absl::Status status = session->Step().status();
      if (!status.ok()) break;
    }
    ended[communicator.rank()] = session->Finish();
    return absl::OkStatus();
  }));
  return ended;
}

// Name and bytes of every file with tensors that a run has saved.
std::vector<std::pair<std::string, std::string>> SavedFiles(const std::string& directory, int64_t steps) {
  std::vector<std::pair<std::string, std::string>> files;
  const std::string checkpoints = absl::StrCat(directory, "/checkpoints");
  if (!PosixFileSystem().Exists(checkpoints)) return files;
  for (int64_t step = 1; step <= steps; ++step) {
    const std::string path = absl::StrCat(checkpoints, "/step_", step);
    if (!PosixFileSystem().Exists(path)) continue;
    const absl::StatusOr<std::vector<std::string>> names = PosixFileSystem().List(path);
    EXPECT_OK(names);
    for (const std::string& name : names.value_or(std::vector<std::string>())) {
      if (!absl::EndsWith(name, ".safetensors")) continue;
      files.emplace_back(absl::StrCat(step, "/", name), *PosixFileSystem().Read(absl::StrCat(path, "/", name)));
    }
  }
  return files;
}

const std::string& UndisturbedRun() {
  static const std::string* const directory = [] {
    auto* made = new std::string(MakeTempDir("undisturbed"));
    const Place nowhere = {"Nowhere", "", HookStage::kTiming, kRanks, nullptr};
    EXPECT_THAT(TrainIn(*made, nowhere, 0), ElementsAre(absl::OkStatus(), absl::OkStatus()));
    return made;
  }();
  return *directory;
}

class NanGuardTest : public ::testing::TestWithParam<std::tuple<Place, int64_t>> {};

TEST_P(NanGuardTest, EndsTheRun_AndTheCheckpointsAreThoseBefore) {
  const auto& [place, iteration] = GetParam();
  const std::string directory = MakeTempDir("spoilt");

  const std::vector<absl::Status> ended = TrainIn(directory, place, iteration);

  for (const absl::Status& status : ended) EXPECT_FALSE(status.ok());
  const auto saved = SavedFiles(directory, kSteps);
  const auto expected = SavedFiles(UndisturbedRun(), iteration);
  ASSERT_EQ(saved.size(), static_cast<size_t>(4 * iteration)) << "model, optimizer and two ranks of each step";
  for (size_t i = 0; i < saved.size(); ++i) {
    EXPECT_EQ(saved[i].first, expected[i].first);
    EXPECT_TRUE(saved[i].second == expected[i].second) << saved[i].first;
  }
}

INSTANTIATE_TEST_SUITE_P(TenPlacesThreeSteps, NanGuardTest,
                         ::testing::Combine(::testing::ValuesIn(Places()), ::testing::Values<int64_t>(0, 4, 9)),
                         [](const ::testing::TestParamInfo<std::tuple<Place, int64_t>>& info) {
                           return absl::StrCat(std::get<0>(info.param).name, "Step", std::get<1>(info.param));
                         });

}  // namespace
}  // namespace ssl
