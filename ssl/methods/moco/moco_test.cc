// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/moco.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/config/testing/parsed.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/method.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/distributed/preview_communicator.h"
#include "ssl/io/file_system.h"
#include "ssl/models/layers.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kBatch = 4;

Registries MocoRegistries() {
  Registries registries;
  EXPECT_OK(RegisterMoco(&registries));
  return registries;
}

TEST(Moco, OneCall_RegistersTheMethodAndWhatItBuildsOn) {
  Registries registries = MocoRegistries();
  EXPECT_TRUE(registries.methods.Has("moco_loss"));
  EXPECT_TRUE(registries.models.Has("multi_input_output_model"));
  EXPECT_TRUE(registries.heads.Has("mlp"));
  EXPECT_TRUE(registries.optimizers.Has("sgd"));
  EXPECT_OK(RegisterMoco(&registries)) << "a second call changes nothing";
}

TEST(Moco, Defaults_AreVissls) {
  const ConfigNode defaults = MocoRegistries().options.Defaults();
  const ConfigNode& loss = *defaults.FindPath("LOSS.moco_loss");
  EXPECT_EQ(loss.Find("embedding_dim")->text(), "128");
  EXPECT_EQ(loss.Find("queue_size")->text(), "65536");
  EXPECT_EQ(loss.Find("momentum")->text(), "0.999");
  EXPECT_EQ(loss.Find("temperature")->text(), "0.2");
}

absl::Status MakeMethod(const std::string& params, const std::string& config_text, int64_t ranks = 1) {
  const Registries registries = MocoRegistries();
  const std::unique_ptr<Communicator> communicator = MakePreviewCommunicator(ranks);
  const ConfigNode config = Parsed(config_text);
  return registries.methods.Make("moco_loss", Parsed(params), {config, registries, *communicator, 0, ""}).status();
}

TEST(Moco, EveryWrongValue_IsReportedWithItsLine) {
  const absl::Status status =
      MakeMethod("temperature: 0\nqueue_size: 0\nmomentum: 1.5\nembedding_dim: x\n", "MODEL: {}");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("f.yaml:1: config.LOSS.moco_loss.")));
  EXPECT_THAT(status.message(), HasSubstr("f.yaml:2"));
  EXPECT_THAT(status.message(), HasSubstr("f.yaml:3"));
  EXPECT_THAT(status.message(), HasSubstr("f.yaml:4: config.LOSS.moco_loss.embedding_dim is 'x'"));
}

TEST(Moco, ErrorsOfTheKeyEncoder_AreThoseOfTheModel) {
  EXPECT_THAT(MakeMethod("{}", "MODEL: {BASE_MODEL_NAME: unknown}"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no model is named 'unknown'")));
}

TEST(Moco, StatisticsOfEachRanksOwnImages_AreWarnedOf) {
  const auto warnings_of = [](const std::string& group, int64_t ranks) {
    const CapturedLog log;
    const std::string model = absl::StrCat(
        "{TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.0625, STEM: small}}, "
        "HEAD: {PARAMS: [[mlp, {dims: [32, 8]}]]}, "
        "SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True, GROUP_SIZE: ",
        group, "}}");
    EXPECT_OK(MakeMethod("{}", absl::StrCat("{MODEL: ", model, "}"), ranks));
    return log.warnings;
  };
  EXPECT_THAT(warnings_of("1", 4), ElementsAre(HasSubstr("config.MODEL.SYNC_BN_CONFIG.GROUP_SIZE is 1")));
  EXPECT_THAT(warnings_of("1", 1), IsEmpty());
  EXPECT_THAT(warnings_of("2", 4), IsEmpty());
  EXPECT_THAT(warnings_of("0", 4), IsEmpty());
}

// Two random views; batch b of epoch e is the same in every run.
class RandomViews : public BatchSource {
 public:
  int64_t batches_per_epoch() const override { return 2; }
  int64_t dataset_size() const override { return 2 * kBatch; }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override {
    epoch_ = epoch;
    next_ = first_batch;
    return absl::OkStatus();
  }
  absl::StatusOr<const Batch*> Next() override {
    if (next_ == batches_per_epoch()) return nullptr;
    at::Generator generator = MakeGenerator(10 * epoch_ + next_);
    batch_.views = {at::rand({kBatch, 3, 16, 16}, generator), at::rand({kBatch, 3, 16, 16}, generator)};
    batch_.indices = at::arange(kBatch);
    ++next_;
    return &batch_;
  }

 private:
  int64_t epoch_ = 0;
  int64_t next_ = 0;
  Batch batch_;
};

constexpr char kRun[] = R"(
SEED_VALUE: 3
TEST_MODEL: False
LOSS: {name: moco_loss, moco_loss: {embedding_dim: 8, queue_size: 8, momentum: 0.9}}
MODEL:
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.0625, STEM: small}}
  HEAD: {PARAMS: [[mlp, {dims: [32, 8]}]]}
DATA: {TRAIN: {BATCHSIZE_PER_REPLICA: 4}}
OPTIMIZER:
  {name: sgd, momentum: 0.9, num_epochs: 2, param_schedulers: {lr: {name: cosine, start_value: 0.1, end_value: 0.0}}}
)";

absl::StatusOr<std::unique_ptr<Session>> MakeSession(const std::string& directory) {
  ConfigNode config = Parsed(kRun);
  config.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(directory));
  SessionOptions options;
  options.train_source = std::make_unique<RandomViews>();
  return Session::Create(config, MocoRegistries(), std::move(options));
}

// The parts of the checkpoint of iteration 4.
std::vector<NamedTensor> FinalState(const std::string& directory) {
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  CheckpointStoreOptions options;
  options.directory = absl::StrCat(directory, "/checkpoints");
  const CheckpointStore store(options, PosixFileSystem(), *communicator);
  std::vector<NamedTensor> state;
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state_rank0.safetensors"}) {
    const absl::StatusOr<std::vector<NamedTensor>> part = store.Load(4, file);
    EXPECT_OK(part);
    if (part.ok()) state.insert(state.end(), part->begin(), part->end());
  }
  return state;
}

TEST(Moco, InterruptedRun_GoesOnBitwise) {
  const std::string whole = MakeTempDir("whole");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> uninterrupted, MakeSession(whole));
  ASSERT_OK(uninterrupted->Train());

  const std::string parts = MakeTempDir("parts");
  for (const int64_t stop_at : {1, 2, 3}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, MakeSession(parts));
    ASSERT_OK(session->Step());
    ASSERT_EQ(session->state().iteration, stop_at);
    ASSERT_OK(session->Finish());
  }
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> last, MakeSession(parts));
  ASSERT_OK(last->Train());

  const std::vector<NamedTensor> expected = FinalState(whole);
  const std::vector<NamedTensor> resumed = FinalState(parts);
  ASSERT_EQ(resumed.size(), expected.size());
  int64_t of_method = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(resumed[i].name, expected[i].name);
    EXPECT_TRUE(at::equal(resumed[i].tensor, expected[i].tensor)) << expected[i].name;
    if (expected[i].name.rfind("method/", 0) == 0) ++of_method;
  }
  EXPECT_GT(of_method, 2) << "the key encoder and the queue are part of the state";
}

}  // namespace
}  // namespace ssl
