// SPDX-License-Identifier: Apache-2.0
//
// Training in three real processes: all end with the same weights, and a run that was interrupted is, to the bit, the
// run that was not. With three, the order in which gradients are added shows in their last bits.
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/core/model_replicas.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/gloo_communicator.h"
#include "ssl/distributed/testing/process_world.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/methods/register_methods.h"
#include "ssl/testing/status_matchers.h"
#include "tests/reliability/resume/random_images.h"

namespace ssl {
namespace {

constexpr int64_t kRanks = 3;
constexpr int64_t kUpdates = 7;
constexpr int64_t kInterruption = 4;

// Several buckets, of a MiB each.
constexpr char kBase[] = R"(
SEED_VALUE: 3
LOG_FREQUENCY: 1000
TEST_MODEL: False
CHECKPOINT: {CHECKPOINT_FREQUENCY: 1000, KEEP_LAST: 0}
DATA: {DDP_BUCKET_CAP_MB: 1, TRAIN: {BATCHSIZE_PER_REPLICA: 4}}
DISTRIBUTED: {NUM_PROC_PER_NODE: 3}
MODEL: {TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.25, STEM: small}}}
OPTIMIZER:
  name: sgd
  momentum: 0.9
  num_epochs: 4
  param_schedulers: {lr: {name: cosine, start_value: 0.1, end_value: 0.0}}
)";

struct Case {
  const char* name;
  int64_t views;
  const char* config;
};

void PrintTo(const Case& run, std::ostream* out) { *out << run.name; }

constexpr Case kCases[] = {
    {"Swav", 3, R"(
LOSS: {name: swav_loss, swav_loss: {num_crops: 3, queue: {queue_length: 12, start_iter: 2}, temp_hard_assignment_iters: 2}}
MODEL: {HEAD: {PARAMS: [[swav_head, {dims: [128, 16, 8], num_clusters: [5]}]]}}
)"},
    {"Moco", 2, R"(
LOSS: {name: moco_loss, moco_loss: {embedding_dim: 8, queue_size: 24, momentum: 0.9}}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [128, 8]}]]}}
)"},
    {"Simclr", 2, R"(
LOSS: {name: simclr_info_nce_loss, simclr_info_nce_loss: {buffer_params: {embedding_dim: 8}}}
MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: float16}, HEAD: {PARAMS: [[mlp, {dims: [128, 8]}]]}}
)"},
    {"Supervised", 1, R"(
LOSS: {name: CrossEntropyLoss}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [128, 3]}]]}}
OPTIMIZER: {grad_acc_steps: 2, num_epochs: 8}
)"},
};

absl::StatusOr<ConfigNode> ConfigOf(const Case& run, const std::string& directory) {
  SSL_ASSIGN_OR_RETURN(ConfigNode config, ParseYaml(kBase, "base.yaml", nullptr));
  SSL_ASSIGN_OR_RETURN(const ConfigNode part, ParseYaml(run.config, "case.yaml", nullptr));
  MergeInto(&config, part);
  config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(directory));
  return config;
}

// Trains from what `directory` holds to `iteration`, and saves. The hash of the model, running statistics included.
absl::StatusOr<uint32_t> TrainTo(int64_t iteration, const Case& run, const std::string& directory,
                                 Communicator& communicator) {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterMethods(&registries));
  SSL_RETURN_IF_ERROR(RegisterHooks(&registries));
  SSL_ASSIGN_OR_RETURN(const ConfigNode config, ConfigOf(run, directory));
  SessionOptions options;
  options.communicator = &communicator;
  options.train_source = std::make_unique<RandomImages>(run.views, communicator.rank(), communicator.size());
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(config, registries, std::move(options)));
  SSL_RETURN_IF_ERROR(session->Start());
  while (session->state().iteration < iteration) SSL_RETURN_IF_ERROR(session->Step().status());
  SSL_RETURN_IF_ERROR(CheckParametersAreEqual(session->model(), communicator));
  SSL_RETURN_IF_ERROR(session->Finish());
  return HashState(session->model());
}

class ProcessesResumeTest : public ::testing::TestWithParam<Case> {};

TEST_P(ProcessesResumeTest, InterruptedRun_IsTheOneThatWasNot) {
  EXPECT_OK(ProcessWorld(kRanks).RunWithOptions([](const GlooOptions& options) -> absl::Status {
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator, MakeGlooCommunicator(options));
    const std::string straight = options.rendezvous.file + ".straight";
    const std::string interrupted = options.rendezvous.file + ".interrupted";
    SSL_ASSIGN_OR_RETURN(const uint32_t expected, TrainTo(kUpdates, GetParam(), straight, *communicator));
    SSL_ASSIGN_OR_RETURN(const uint32_t halfway, TrainTo(kInterruption, GetParam(), interrupted, *communicator));
    EXPECT_NE(halfway, expected);
    SSL_ASSIGN_OR_RETURN(const uint32_t resumed, TrainTo(kUpdates, GetParam(), interrupted, *communicator));
    EXPECT_EQ(resumed, expected);
    return absl::OkStatus();
  }));
}

INSTANTIATE_TEST_SUITE_P(Methods, ProcessesResumeTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ssl
