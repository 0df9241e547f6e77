// SPDX-License-Identifier: Apache-2.0
//
// A run of four virtual ranks is the same run on one, two and four processes, bit by bit, and goes on with other
// numbers of processes than it began with.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/distributed/virtual_world.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/methods/register_methods.h"
#include "ssl/testing/status_matchers.h"
#include "tests/reliability/resume/random_images.h"
#include "tests/reliability/resume/tensor_files.h"

namespace ssl {
namespace {

constexpr int64_t kRanks = 4;
constexpr int64_t kUpdates = 10;

constexpr char kBase[] = R"(
SEED_VALUE: 3
LOG_FREQUENCY: 1000
TEST_MODEL: False
CHECKPOINT: {CHECKPOINT_FREQUENCY: 1000}
DATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 4}}
DISTRIBUTED: {NUM_PROC_PER_NODE: 4}
MODEL: {TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.0625, STEM: small}}}
HOOKS: {EMA_MODEL: {SAVE_EMA_MODEL: True}}
OPTIMIZER:
  name: sgd
  momentum: 0.9
  num_epochs: 1
  param_schedulers: {lr: {name: cosine, start_value: 0.1, end_value: 0.0}}
)";
// Assignments and queue over all ranks.
constexpr char kSwav[] = R"(
LOSS: {name: swav_loss, swav_loss: {num_crops: 3, queue: {queue_length: 16, start_iter: 3}}}
MODEL: {HEAD: {PARAMS: [[swav_head, {dims: [32, 16, 8], num_clusters: [5]}]]}}
)";
// Dropout draws from the generator of the process.
constexpr char kDropout[] = R"(
LOSS: {name: CrossEntropyLoss}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [32, 16, 3], use_relu: True, use_dropout: True}]]}}
)";

ConfigNode Parse(const std::string& text) {
  std::vector<std::string> warnings;
  absl::StatusOr<ConfigNode> config = ParseYaml(text, "case.yaml", &warnings);
  EXPECT_OK(config);
  return config.ok() ? *config : ConfigNode();
}

// The same on all processes of a test.
std::string Directory(const std::string& name) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string path =
      absl::StrCat(std::getenv("TEST_TMPDIR"), "/", test->test_suite_name(), "_", test->name(), "/", name);
  std::replace(path.begin(), path.end(), ':', '_');
  return path;
}

// Makes `updates` updates of the run in `directory`, or all that are left with -1.
absl::Status Train(const std::string& method, const std::string& directory, int64_t updates, Communicator& processes) {
  const int64_t views = method == kSwav ? 3 : 1;
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterMethods(&registries));
  SSL_RETURN_IF_ERROR(RegisterHooks(&registries));
  ConfigNode config = Parse(kBase);
  MergeInto(&config, Parse(method));
  config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(directory));
  return VirtualWorld(kRanks, processes).Run([&](Communicator& communicator) -> absl::Status {
    SessionOptions options;
    options.communicator = &communicator;
    options.train_source = std::make_unique<RandomImages>(views, communicator.rank(), kRanks);
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                         Session::Create(config, registries, std::move(options)));
    SSL_RETURN_IF_ERROR(session->Start());
    const int64_t end = session->state().iteration + updates;
    for (bool more = true; more && (updates < 0 || session->state().iteration < end);) {
      SSL_ASSIGN_OR_RETURN(more, session->Step());
    }
    return session->Finish();
  });
}

void ExpectTheRunOfOneProcess(const std::string& method, const std::string& directory) {
  const std::string alone = Directory("alone");
  EXPECT_OK(Train(method, alone, -1, *MakeLocalCommunicator()));
  const auto expected = TensorFiles(alone, kUpdates);
  const auto found = TensorFiles(directory, kUpdates);
  EXPECT_EQ(expected.size(), 2 + kRanks) << "model, optimizer and a state for each virtual rank";
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].first, expected[i].first);
    EXPECT_TRUE(found[i].second == expected[i].second) << found[i].first << " differs";
  }
}

using Param = std::tuple<std::string, int64_t>;  // method, processes

class VirtualRanksTest : public ::testing::TestWithParam<Param> {};

TEST_P(VirtualRanksTest, EndAsInOneProcess) {
  const auto& [method, num_processes] = GetParam();
  EXPECT_OK(ProcessWorld(num_processes).Run([&, method = method](Communicator& processes) -> absl::Status {
    const std::string directory = Directory("many");
    SSL_RETURN_IF_ERROR(Train(method, directory, -1, processes));
    if (processes.rank() == 0) ExpectTheRunOfOneProcess(method, directory);
    return absl::OkStatus();
  }));
}

INSTANTIATE_TEST_SUITE_P(Methods, VirtualRanksTest,
                         ::testing::Combine(::testing::Values(kSwav, kDropout), ::testing::Values(2, 4)),
                         [](const ::testing::TestParamInfo<Param>& info) {
                           return absl::StrCat(std::get<0>(info.param) == kSwav ? "Swav" : "Dropout", "On",
                                               std::get<1>(info.param), "Processes");
                         });

TEST(VirtualRanksTest, GoOnWithOtherNumbersOfProcesses) {
  EXPECT_OK(ProcessWorld(2).Run([](Communicator& processes) -> absl::Status {
    const std::string directory = Directory("changing");
    SSL_RETURN_IF_ERROR(Train(kSwav, directory, 3, processes));
    SSL_RETURN_IF_ERROR(processes.Barrier());
    if (processes.rank() == 0) SSL_RETURN_IF_ERROR(Train(kSwav, directory, 4, *MakeLocalCommunicator()));
    SSL_RETURN_IF_ERROR(processes.Barrier());
    SSL_RETURN_IF_ERROR(Train(kSwav, directory, -1, processes));
    if (processes.rank() == 0) ExpectTheRunOfOneProcess(kSwav, directory);
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
