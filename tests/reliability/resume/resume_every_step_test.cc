// SPDX-License-Identifier: Apache-2.0
//
// A run that was interrupted after any of its steps is the run that was not: for every method, in every number format,
// with gradient accumulation, queues, frozen parameters and averaged models, across the ends of epochs, in one and two
// ranks. Compared are the bytes of the checkpoints: weights, optimizer, counters, queues, meters, averages.
//
// Each case trains once without interruption, saving at each step. Then it trains in sessions of one step, and again in
// sessions of three, each of which knows only what the one before has saved.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/core/method.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/methods/register_methods.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "tests/reliability/resume/random_images.h"
#include "tests/reliability/resume/tensor_files.h"

namespace ssl {
namespace {

constexpr char kBase[] = R"(
SEED_VALUE: 3
LOG_FREQUENCY: 1000
TEST_MODEL: False
CHECKPOINT: {CHECKPOINT_FREQUENCY: 1000, KEEP_LAST: 0}
DATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 4}}
MODEL: {TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.0625, STEM: small}}}
OPTIMIZER: {name: sgd, momentum: 0.9, param_schedulers: {lr: {name: cosine, start_value: 0.1, end_value: 0.0}}}
)";

// The queue begins within the run, prototypes are frozen before, gradients clipped and the model averaged.
constexpr char kSwav[] = R"(
LOSS: {name: swav_loss, swav_loss: {queue: {queue_length: 8, start_iter: 13}, temp_hard_assignment_iters: 5}}
HOOKS: {EMA_MODEL: {SAVE_EMA_MODEL: True, UPDATE_ITER: 3, WARMUP: 0.2}}
MODEL:
  HEAD: {PARAMS: [[swav_head, {dims: [32, 16, 8], num_clusters: [5]}]]}
  TEMP_FROZEN_PARAMS_ITER_MAP: [[heads.0.prototypes0.weight, 7]]
  GRAD_CLIP: {USE_GRAD_CLIP: True, NORM_TYPE: 2, MAX_NORM: 1.0}
)";
constexpr char kMoco[] = R"(
LOSS: {name: moco_loss, moco_loss: {embedding_dim: 8, queue_size: 16, momentum: 0.9}}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [32, 8]}]]}}
OPTIMIZER: {param_schedulers: {lr: {name: step, values: [0.1, 0.05, 0.01], update_interval: epoch}}}
)";
constexpr char kSimclr[] = R"(
LOSS:
  name: simclr_info_nce_loss
  simclr_info_nce_loss: {buffer_params: {embedding_dim: 8}}
  multicrop_simclr_info_nce_loss: {buffer_params: {embedding_dim: 8}}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [32, 8]}]]}}
OPTIMIZER: {name: lars}
)";
// Dropout, meters in train and test phases, also of the averaged model.
constexpr char kSupervised[] = R"(
TEST_MODEL: True
LOSS: {name: CrossEntropyLoss}
METERS: {names: [accuracy_list_meter], accuracy_list_meter: {topk_values: [1, 2]}}
HOOKS: {EMA_MODEL: {SAVE_EMA_MODEL: True, ENABLE_EMA_METERS: True}}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [32, 16, 3], use_relu: True, use_dropout: True}]]}}
OPTIMIZER: {name: adamw}
)";

constexpr char kBfloat16[] = "MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: bfloat16}}";
// The first updates overflow and are skipped, and the scale moves within the run.
constexpr char kFloat16[] = "MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: float16}}";
constexpr char kAccumulate[] = "OPTIMIZER: {grad_acc_steps: 3}";

// A configuration of several parts.
struct Case {
  std::string name;
  int64_t views;
  std::vector<std::string> parts;
  int64_t world_size = 1;
  int64_t epochs = 4;
};

void PrintTo(const Case& run, std::ostream* out) { *out << run.name; }

std::vector<Case> Cases() {
  return {
      {"Swav", 3, {kSwav}},
      {"SwavBfloat16", 3, {kSwav, kBfloat16}},
      {"SwavFloat16", 3, {kSwav, kFloat16}},
      {"SwavQueueFromTheStart", 3, {kSwav, kBfloat16, "LOSS: {swav_loss: {queue: {start_iter: 0}}}"}},
      {"SwavAccumulated", 3, {kSwav, kFloat16, kAccumulate}, 1, 13},
      {"SwavTwoRanks", 3, {kSwav, kBfloat16}, 2},
      {"Moco", 2, {kMoco}},
      {"MocoBfloat16", 2, {kMoco, kBfloat16}},
      {"MocoAccumulated", 2, {kMoco, kFloat16, kAccumulate}, 1, 13},
      {"MocoTwoRanks", 2, {kMoco}, 2},
      {"Simclr", 2, {kSimclr, kBfloat16}},
      {"SimclrTwoRanks", 2, {kSimclr}, 2},
      {"MulticropSimclr", 3, {kSimclr, "LOSS: {name: multicrop_simclr_info_nce_loss}"}},
      {"BarlowTwins", 2, {kSimclr, "LOSS: {name: barlow_twins_loss, barlow_twins_loss: {embedding_dim: 8}}"}},
      {"Supervised", 1, {kSupervised}},
      {"SupervisedFloat16", 1, {kSupervised, kFloat16}},
  };
}

Registries MakeRegistries() {
  Registries registries;
  EXPECT_OK(RegisterMethods(&registries));
  EXPECT_OK(RegisterHooks(&registries));
  return registries;
}

ConfigNode Parse(const std::string& text) {
  std::vector<std::string> warnings;
  absl::StatusOr<ConfigNode> config = ParseYaml(text, "case.yaml", &warnings);
  EXPECT_OK(config);
  return config.ok() ? *config : ConfigNode();
}

class ResumeEveryStepTest : public ::testing::TestWithParam<Case> {
 protected:
  ConfigNode Config(const std::string& directory, int64_t save_every) const {
    const Case& run = GetParam();
    ConfigNode config = Parse(kBase);
    for (const std::string& part : run.parts) MergeInto(&config, Parse(part));
    config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(directory));
    config.SetPath("CHECKPOINT.CHECKPOINT_ITER_FREQUENCY", ConfigNode::FromInt(save_every));
    config.SetPath("OPTIMIZER.num_epochs", ConfigNode::FromInt(run.epochs));
    config.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", ConfigNode::FromInt(run.world_size));
    for (const char* loss : {"swav_loss", "multicrop_simclr_info_nce_loss"}) {
      config.SetPath(absl::StrCat("LOSS.", loss, ".num_crops"), ConfigNode::FromInt(run.views));
    }
    return config;
  }

  // Whether `step` is the last of an epoch: then the checkpoint of a session that stops there is made anew by the one
  // that goes on, and tells the epoch's end.
  bool EndsEpoch(int64_t step, int64_t total) const { return step > 0 && step % (total / GetParam().epochs) == 0; }

  // One session on each rank that makes `steps` updates, or all with -1. Returns the iteration at which it ends.
  int64_t RunSession(const ConfigNode& config, int64_t steps) const {
    const Case& run = GetParam();
    int64_t ended_at = -1;
    EXPECT_OK(ThreadWorld(run.world_size, absl::Seconds(60)).Run([&](Communicator& communicator) -> absl::Status {
      SessionOptions options;
      options.communicator = &communicator;
      options.train_source = std::make_unique<RandomImages>(run.views, communicator.rank(), run.world_size);
      options.test_source = std::make_unique<RandomImages>(run.views, communicator.rank(), run.world_size);
      SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(config, registries_, std::move(options)));
      SSL_RETURN_IF_ERROR(session->Start());
      const TrainState& state = session->state();
      // Stops behind the update of the last step: of an epoch's last one, before its end is told.
      const int64_t end = steps < 0 ? -1 : std::min(state.iteration + steps, state.max_iterations);
      for (bool more = true; more && state.iteration != end;) {
        SSL_ASSIGN_OR_RETURN(more, session->Step());
      }
      SSL_RETURN_IF_ERROR(session->Finish());
      if (communicator.rank() == 0) ended_at = state.iteration;
      return absl::OkStatus();
    }));
    return ended_at;
  }

  const Registries registries_ = MakeRegistries();
};

void ExpectEqualCheckpoints(const std::string& directory, const std::string& expected_directory, int64_t step) {
  const auto expected = TensorFiles(expected_directory, step);
  const auto found = TensorFiles(directory, step);
  ASSERT_EQ(found.size(), expected.size());
  ASSERT_GE(found.size(), 3u);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].first, expected[i].first);
    EXPECT_TRUE(found[i].second == expected[i].second) << found[i].first << " of step " << step << " differs";
  }
}

TEST_P(ResumeEveryStepTest, IsTheUninterruptedRun) {
  const std::string whole = MakeTempDir("whole");
  const int64_t total = RunSession(Config(whole, 1), -1);
  ASSERT_GE(total, 39);
  for (const int64_t stride : {1, 3}) {
    const std::string parts = MakeTempDir("parts");
    const ConfigNode config = Config(parts, -1);
    for (int64_t step = 0; step < total;) {
      const int64_t next = std::min(step + stride, total);
      ASSERT_EQ(RunSession(config, stride), next) << "a session must go on where the one before stopped";
      if (EndsEpoch(step, total)) ExpectEqualCheckpoints(parts, whole, step);
      if (!EndsEpoch(next, total)) ExpectEqualCheckpoints(parts, whole, next);
      if (HasFailure()) return;
      step = next;
    }
    ASSERT_EQ(RunSession(config, -1), total);
    ExpectEqualCheckpoints(parts, whole, total);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryMethod, ResumeEveryStepTest, ::testing::ValuesIn(Cases()),
                         [](const ::testing::TestParamInfo<Case>& info) { return info.param.name; });

// Losses over labels remember nothing; every other method has a case above.
TEST(ResumeEveryStepCoverage, EveryMethodThatRemembersSomething_HasACase) {
  const Registries registries = MakeRegistries();
  std::set<std::string> covered;
  for (const Case& run : Cases()) {
    ConfigNode config = Parse(kBase);
    for (const std::string& part : run.parts) MergeInto(&config, Parse(part));
    covered.insert(config.FindPath("LOSS.name")->text());
  }
  const ConfigNode config = registries.options.Defaults();
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  for (const std::string& name : registries.methods.Names()) {
    if (covered.count(name) > 0) continue;
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Method> method,
                         registries.methods.Make(name, config.Section(absl::StrCat("LOSS.", name)),
                                                 {config, registries, *communicator, 0, ""}));
    ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*method));
    EXPECT_TRUE(state.empty()) << name << " has state, such as " << state[0].name << ", and no case in this test";
    EXPECT_TRUE(method->MakeHooks().empty()) << name << " has hooks and no case in this test";
  }
}

}  // namespace
}  // namespace ssl
