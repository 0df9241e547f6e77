// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/testing/sharded_run.h"

#include <ATen/ops/equal.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/core/hook.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/io/safetensors.h"
#include "ssl/methods/register_methods.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

constexpr char kBase[] = R"(
SEED_VALUE: 5
LOG_FREQUENCY: 1000
TEST_MODEL: False
DATA:
  NUM_DATALOADER_WORKERS: 1
  TRAIN:
    DATA_SOURCES: [synthetic]
    LABEL_SOURCES: [synthetic]
    DATASET_NAMES: [synthetic]
    DATA_LIMIT: 80
    DEFAULT_GRAY_IMG_SIZE: 16
    RANDOM_SYNTHETIC_LABELS: 4
    DROP_LAST: True
OPTIMIZER: {momentum: 0.9, num_epochs: 4}
)";

class LossHook : public Hook {
 public:
  explicit LossHook(Losses* losses) : losses_(*losses) {}
  absl::string_view name() const override { return "losses"; }
  HookStage stage() const override { return HookStage::kReport; }
  absl::Status OnLossAndMeter(StepContext& context) override {
    losses_.push_back(context.loss.item<double>());
    return absl::OkStatus();
  }

 private:
  Losses& losses_;
};

ConfigNode ConfigOf(const Run& run) {
  ConfigNode config = *ParseYaml(kBase, "base.yaml", nullptr);
  MergeInto(&config, *ParseYaml(run.method, "method.yaml", nullptr));
  MergeInto(&config, *ParseYaml(run.changes, "changes.yaml", nullptr));
  config.SetPath("DISTRIBUTED.NUM_PROC_PER_NODE", ConfigNode::FromInt(run.ranks));
  config.SetPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA", ConfigNode::FromInt(16 / run.ranks));
  config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(run.directory));
  return config;
}

absl::Status TrainRank(const Run& run, const Registries& registries, Communicator& communicator, Losses* losses) {
  SessionOptions options;
  options.communicator = &communicator;
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                       Session::Create(ConfigOf(run), registries, std::move(options)));
  SSL_RETURN_IF_ERROR(session->AddHook(std::make_unique<LossHook>(losses)));
  bool goes_on = true;
  while (goes_on && session->state().iteration < run.steps) {
    SSL_ASSIGN_OR_RETURN(goes_on, session->Step());
  }
  return session->Finish();
}

}  // namespace

absl::Status Train(const Run& run, std::vector<Losses>* losses) {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterMethods(&registries));
  SSL_RETURN_IF_ERROR(RegisterData(&registries));
  if (run.add_parts != nullptr) SSL_RETURN_IF_ERROR(run.add_parts(&registries));
  losses->assign(static_cast<size_t>(run.ranks), {});
  return ThreadWorld(run.ranks, absl::Seconds(120)).Run([&](Communicator& communicator) {
    return TrainRank(run, registries, communicator, &(*losses)[static_cast<size_t>(communicator.rank())]);
  });
}

std::vector<Losses> TrainedOn(const Run& run) {
  std::vector<Losses> losses;
  EXPECT_OK(Train(run, &losses));
  return losses;
}

void ExpectSameLosses(const std::vector<Losses>& actual, const std::vector<Losses>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t rank = 0; rank < expected.size(); ++rank) {
    ASSERT_EQ(actual[rank].size(), expected[rank].size());
    for (size_t step = 0; step < expected[rank].size(); ++step) {
      EXPECT_NEAR(actual[rank][step], expected[rank][step], 1e-6 * expected[rank][step])
          << "rank " << rank << ", step " << step;
    }
  }
}

std::map<std::string, at::Tensor> Saved(const std::string& directory, int64_t step,
                                        const std::vector<std::string>& files) {
  std::map<std::string, at::Tensor> tensors;
  for (const std::string& file : files) {
    const auto read = ReadSafetensors(absl::StrCat(directory, "/checkpoints/step_", step, "/", file));
    EXPECT_OK(read.status());
    for (const NamedTensor& entry : read->tensors) tensors[absl::StrCat(file, ":", entry.name)] = entry.tensor;
  }
  return tensors;
}

void ExpectEqual(const std::map<std::string, at::Tensor>& actual, const std::map<std::string, at::Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_EQ(actual.count(name), 1u) << name;
    EXPECT_TRUE(at::equal(actual.at(name), tensor)) << name;
  }
}

}  // namespace ssl
