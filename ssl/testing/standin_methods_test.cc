// SPDX-License-Identifier: Apache-2.0
//
// Each method trains on a device as on the CPU, bit for bit, and its steps read nothing back, those of two ranks
// neither. Whole sessions from a configuration, with the hooks that every run has; the device is the stand-in of the
// tests (docs/devices.md).
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/node.h"
#include "ssl/core/batch.h"
#include "ssl/core/hook.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/testing/saved_tensors.h"
#include "ssl/testing/standin_device.h"
#include "ssl/testing/standin_transfers.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A trunk without kernels of its own for the CPU, and with random numbers in its steps.
constexpr char kCommon[] = R"(
DATA: {TRAIN: {DATA_LIMIT: 96, BATCHSIZE_PER_REPLICA: 16}}
MODEL:
  TRUNK:
    NAME: vision_transformer
    VISION_TRANSFORMERS: {IMAGE_SIZE: 16, PATCH_SIZE: 4, NUM_LAYERS: 2, NUM_HEADS: 2, HIDDEN_DIM: 16, MLP_DIM: 30,
                          QKV_BIAS: True, DROPOUT_RATE: 0.1, DROP_PATH_RATE: 0.3, CHECKPOINT_BLOCK: True}
OPTIMIZER: {param_schedulers: {lr: {name: cosine, update_interval: step, start_value: 0.1, end_value: 0.0}}}
)";

struct MethodConfig {
  std::string name;
  std::string config;
};

void PrintTo(const MethodConfig& method, std::ostream* out) { *out << method.name; }

std::string TwoViews(const std::string& collator) {
  return absl::StrCat("DATA: {TRAIN: {COLLATE_FUNCTION: ", collator,
                      ", TRANSFORMS: [{name: ImgReplicatePil, num_times: 2}, {name: RandomResizedCrop, size: 16},"
                      "{name: ToTensor}, {name: Normalize, mean: [0.286], std: [0.353]}]}}\n");
}

std::vector<MethodConfig> Methods() {
  return {{"Swav", R"(
DATA:
  TRAIN:
    COLLATE_FUNCTION: multicrop_collator
    TRANSFORMS:
      - {name: ImgPilToMultiCrop, total_num_crops: 3, num_crops: [2, 1], size_crops: [16, 8],
         crop_scales: [[0.4, 1.0], [0.15, 0.4]]}
      - {name: ToTensor}
      - {name: Normalize, mean: [0.286], std: [0.353]}
MODEL: {HEAD: {PARAMS: [[swav_head, {dims: [16, 32, 16], use_bn: True, num_clusters: [8]}]]}}
LOSS: {name: swav_loss, swav_loss: {queue: {queue_length: 32, start_iter: 2}}}
)"},
          {"Simclr", TwoViews("simclr_collator") + R"(
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 32], use_bn: True, use_relu: True, skip_last_layer_relu_bn: False}],
                        [mlp, {dims: [32, 16]}]]}}
LOSS: {name: simclr_info_nce_loss, simclr_info_nce_loss: {buffer_params: {embedding_dim: 16}}}
)"},
          {"Moco", TwoViews("moco_collator") + R"(
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 32], use_relu: True, skip_last_layer_relu_bn: False}],
                        [mlp, {dims: [32, 16]}]]}}
LOSS: {name: moco_loss, moco_loss: {embedding_dim: 16, queue_size: 64, momentum: 0.9}}
)"},
          {"BarlowTwins", TwoViews("simclr_collator") + R"(
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 32, 16], use_bn: True, use_relu: True, use_bias: False}]]}}
LOSS: {name: barlow_twins_loss, barlow_twins_loss: {embedding_dim: 16}}
)"},
          {"Supervised", R"(
DATA: {TRAIN: {TRANSFORMS: [{name: ToTensor}, {name: Normalize, mean: [0.286], std: [0.353]}]}}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [16, 4]}]]}}
LOSS: {name: cross_entropy_multiple_output_single_target}
METERS: {names: [accuracy_list_meter], accuracy_list_meter: {num_meters: 1, topk_values: [1]},
         enable_training_meter: True}
)"}};
}

// What copies a batch to the device.
TransferCounts UploadsOf(const Batch& batch) {
  TransferCounts uploads;
  const auto add = [&](const char* type, const at::Tensor& tensor) {
    std::ostringstream sizes;
    sizes << tensor.sizes();
    ++uploads[absl::StrCat("copy to the device of ", type, " ", sizes.str())];
  };
  for (const at::Tensor& view : batch.views) add("Byte", view);  // normalised there
  if (batch.targets.defined()) add("Long", batch.targets);
  return uploads;
}

using Reports = std::vector<std::pair<std::string, double>>;

// Keeps the losses where they are, and what is reported at the end of phases.
class NotesHook : public Hook {
 public:
  absl::string_view name() const override { return "notes"; }
  HookStage stage() const override { return HookStage::kReport; }

  absl::Status OnLossAndMeter(StepContext& context) override {
    losses_->push_back(context.loss.detach().clone());
    batch_uploads_ = UploadsOf(*context.batch);
    return absl::OkStatus();
  }

  absl::Status OnPhaseEnd(StepContext& context) override {
    for (const MeterReport& report : context.meter_reports) {
      for (const MeterValue& value : report.values) {
        reports_.emplace_back(absl::StrCat(report.meter, " ", value.metric), value.value);
      }
    }
    return absl::OkStatus();
  }

  std::shared_ptr<std::vector<at::Tensor>> losses() const { return losses_; }
  const Reports& reports() const { return reports_; }
  // Of the last batch.
  const TransferCounts& batch_uploads() const { return batch_uploads_; }

 private:
  const std::shared_ptr<std::vector<at::Tensor>> losses_ = std::make_shared<std::vector<at::Tensor>>();
  Reports reports_;
  TransferCounts batch_uploads_;
};

constexpr int64_t kReportingSteps = 2;  // of train_logger, at the start
constexpr int64_t kQuietSteps = 5;      // before the last step of an epoch, which reports

struct Outcome {
  std::vector<at::Tensor> losses;  // on the host
  Reports reports;
  TransferCounts reads;          // of steps between reports
  TransferCounts uploads;        // of these steps
  TransferCounts batch_uploads;  // of a batch
};

// Of `steps` steps: the one before the first may have copied its batch, and the last one that of the next.
void ExpectUploadsOfBatches(const Outcome& outcome, int64_t steps) {
  for (const auto& [what, count] : outcome.uploads) {
    const auto of_batch = outcome.batch_uploads.find(what);
    ASSERT_NE(of_batch, outcome.batch_uploads.end()) << what << " is no tensor of a batch";
    EXPECT_GE(count, of_batch->second * (steps - 1)) << what;
    EXPECT_LE(count, of_batch->second * (steps + 1)) << what;
  }
  EXPECT_EQ(outcome.uploads.size(), outcome.batch_uploads.size());
}

absl::StatusOr<ConfigNode> WholeConfig(const std::vector<std::string>& config, const std::string& device,
                                       const std::string& directory) {
  std::vector<std::string> texts = {kCommon};
  texts.insert(texts.end(), config.begin(), config.end());
  SSL_ASSIGN_OR_RETURN(ConfigNode whole, TrainingConfig(texts));
  whole.SetPath("DATA.TEST", *whole.FindPath("DATA.TRAIN"));  // for those that test
  whole.SetPath("MACHINE.DEVICE", ConfigNode::FromString(device));
  whole.SetPath("CHECKPOINT.DIR", ConfigNode::FromString(directory));
  return whole;
}

// Trains to `last_iteration`, and saves.
absl::StatusOr<Outcome> Train(const std::vector<std::string>& config, const std::string& device, int64_t last_iteration,
                              const std::string& directory) {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterProgramParts(&registries));
  SSL_ASSIGN_OR_RETURN(const ConfigNode whole, WholeConfig(config, device, directory));
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(whole, registries, {}));
  auto notes = std::make_unique<NotesHook>();
  const NotesHook& noted = *notes;
  SSL_RETURN_IF_ERROR(session->AddHook(std::move(notes)));
  SSL_RETURN_IF_ERROR(session->Start());
  while (session->state().iteration < kReportingSteps) SSL_RETURN_IF_ERROR(session->Step().status());
  const TransferLog log;
  Outcome outcome;
  while (session->state().iteration < last_iteration) {
    SSL_RETURN_IF_ERROR(session->Step().status());
    if (session->state().iteration > kQuietSteps) continue;
    outcome.reads = log.reads();
    outcome.uploads = log.uploads();
    outcome.batch_uploads = noted.batch_uploads();
  }
  for (const at::Tensor& loss : *noted.losses()) outcome.losses.push_back(loss.to(at::kCPU));
  outcome.reports = noted.reports();
  SSL_RETURN_IF_ERROR(session->Finish());
  return outcome;
}

// Trains a rank on the device, and sets what all ranks read in steps between reports.
absl::Status TrainRank(const ConfigNode& config, const Registries& registries, Communicator& communicator,
                       TransferCounts* reads) {
  SessionOptions options;
  options.communicator = &communicator;
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(config, registries, std::move(options)));
  SSL_RETURN_IF_ERROR(session->Start());
  while (session->state().iteration < kReportingSteps) SSL_RETURN_IF_ERROR(session->Step().status());
  SSL_RETURN_IF_ERROR(communicator.Barrier());
  const TransferLog log;
  while (session->state().iteration < kQuietSteps) SSL_RETURN_IF_ERROR(session->Step().status());
  SSL_RETURN_IF_ERROR(communicator.Barrier());
  if (communicator.rank() == 0) *reads = log.reads();
  SSL_RETURN_IF_ERROR(communicator.Barrier());
  return session->Finish();
}

absl::StatusOr<TransferCounts> ReadsOfTwoRanks(std::vector<std::string> config) {
  config.push_back("{DATA: {TRAIN: {DATA_LIMIT: 192}}, DISTRIBUTED: {NUM_PROC_PER_NODE: 2}}");
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterProgramParts(&registries));
  SSL_ASSIGN_OR_RETURN(const ConfigNode whole, WholeConfig(config, "gpu", ""));
  TransferCounts reads;
  SSL_RETURN_IF_ERROR(ThreadWorld(2, absl::Seconds(120)).Run([&](Communicator& communicator) {
    return TrainRank(whole, registries, communicator, &reads);
  }));
  return reads;
}

void ExpectSameCheckpoint(const std::string& found, const std::string& expected, int64_t iteration) {
  const std::vector<std::string> files = {"model.safetensors", "optimizer.safetensors", "state_rank0.safetensors"};
  ExpectEqual(Saved(found, iteration, files), Saved(expected, iteration, files));
}

void ExpectSameLosses(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].item<double>(), expected[i].item<double>()) << "step " << i;
  }
}

constexpr int64_t kSteps = 8;  // SwAV's queue starts with the third, an epoch with the seventh

void ExpectSameReports(const std::vector<std::string>& config, const std::string& directory, size_t least) {
  ASSERT_OK_AND_ASSIGN(const Outcome expected, Train(config, "cpu", kSteps, directory + "/cpu"));
  ASSERT_OK_AND_ASSIGN(const Outcome found, Train(config, "gpu", kSteps, directory + "/device"));
  EXPECT_EQ(found.reports, expected.reports);
  EXPECT_THAT(expected.reports, SizeIs(Ge(least)));
}

void ExpectSameRuns(const std::vector<std::string>& config, const std::string& directory) {
  ASSERT_OK_AND_ASSIGN(const Outcome expected, Train(config, "cpu", kSteps, directory + "/cpu"));
  ASSERT_OK_AND_ASSIGN(const Outcome found, Train(config, "gpu", kSteps, directory + "/device"));
  EXPECT_THAT(found.reads, IsEmpty());
  ExpectUploadsOfBatches(found, kQuietSteps - kReportingSteps);
  ExpectSameLosses(found.losses, expected.losses);
  EXPECT_NE(expected.losses.front().item<double>(), expected.losses.back().item<double>());
  ExpectSameCheckpoint(directory + "/device", directory + "/cpu", kSteps);
}

// The first updates overflow and are skipped, until the scale is low enough.
constexpr char kFloat16[] = "MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: float16}}";
// All of them overflow.
constexpr char kOverflows[] = "MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: float16, AMP_ARGS: {loss_scale: 1e30}}}";

void ExpectToGoOn(const std::vector<std::string>& config, const std::string& directory) {
  EXPECT_OK(Train(config, "cpu", kSteps, directory + "/whole"));
  for (const auto& [first, second] : {std::pair{"cpu", "gpu"}, std::pair{"gpu", "cpu"}}) {
    SCOPED_TRACE(absl::StrCat(first, ", then ", second));
    const std::string interrupted = absl::StrCat(directory, "/", first);
    EXPECT_OK(Train(config, first, 4, interrupted));
    EXPECT_OK(Train(config, second, kSteps, interrupted));
    ExpectSameCheckpoint(interrupted, directory + "/whole", kSteps);
  }
}

class StandinDeviceMethods : public testing::TestWithParam<MethodConfig> {
 protected:
  static void SetUpTestSuite() { StandinDevice::Install(); }

  const std::string directory_ = MakeTempDir("standin_device");
};

TEST_P(StandinDeviceMethods, TrainsAsOnTheCpuAndReadsNothing) { ExpectSameRuns({GetParam().config}, directory_); }

TEST_P(StandinDeviceMethods, InMixedPrecision_TrainsAsOnTheCpuAndReadsNothing) {
  ExpectSameRuns({GetParam().config, "MODEL: {AMP_PARAMS: {USE_AMP: True, AMP_DTYPE: bfloat16}}"}, directory_);
}

TEST_P(StandinDeviceMethods, WithALossScale_TrainsAsOnTheCpuAndReadsNothing) {
  ExpectSameRuns({GetParam().config, kFloat16}, directory_);
}

TEST_P(StandinDeviceMethods, WhereGradientsOverflow_TrainsAsOnTheCpuAndReadsNothing) {
  ExpectSameRuns({GetParam().config, kOverflows}, directory_);
}

TEST_P(StandinDeviceMethods, TwoRanks_ReadNothing) {
  for (const char* const precision : {"{}", kFloat16}) {
    ASSERT_OK_AND_ASSIGN(const TransferCounts reads, ReadsOfTwoRanks({GetParam().config, precision}));
    EXPECT_THAT(reads, IsEmpty()) << precision;
  }
}

TEST_P(StandinDeviceMethods, PhasesReportAsOnTheCpu) {
  ExpectSameReports({GetParam().config, "TEST_MODEL: True"}, directory_, /*least=*/2);  // of a train and a test phase
}

TEST_P(StandinDeviceMethods, CheckpointOfOneDevice_GoesOnOnTheOther) { ExpectToGoOn({GetParam().config}, directory_); }

// What clips, and what reports at its own times, stand between the scale and the update.
TEST(StandinDeviceLossScale, EachOptimizer_TrainsAsOnTheCpuAndReadsNothing) {
  StandinDevice::Install();
  constexpr char kHooks[] = R"(
MODEL: {GRAD_CLIP: {USE_GRAD_CLIP: True, MAX_NORM: 0.5}}
hooks: [{type: grad_clipper, kwargs: {mode: average, max_norm: 1.0}}, {type: gradient_collector, kwargs: {freq: 3}}]
)";
  for (const char* const optimizer :
       {"{name: sgd, use_larc: True}", "{name: sgd, momentum: 0.0}", "{name: lars}", "{name: adam, amsgrad: True}",
        "{name: adamw}", "{param_schedulers: {momentum: {name: multistep, values: [0.0, 0.9], milestones: [1]}}}"}) {
    for (const char* const precision : {kFloat16, kOverflows}) {
      SCOPED_TRACE(absl::StrCat(optimizer, ", ", precision));
      ExpectSameRuns({Methods().back().config, precision, kHooks, absl::StrCat("OPTIMIZER: ", optimizer)},
                     MakeTempDir("standin_device"));
    }
  }
}

TEST(StandinDeviceLossScale, CheckpointOfOneDevice_GoesOnOnTheOther) {
  StandinDevice::Install();
  ExpectToGoOn({Methods().back().config, kFloat16}, MakeTempDir("standin_device"));
  ExpectToGoOn({Methods().back().config, kOverflows}, MakeTempDir("standin_device"));
}

TEST(StandinDeviceLossScale, FormatOfTheOtherDevice_IsRefusedBeforeAnythingIsRestored) {
  StandinDevice::Install();
  const std::string directory = MakeTempDir("standin_device");
  const std::string method = Methods().back().config;
  constexpr char kByDevice[] = "MODEL: {AMP_PARAMS: {USE_AMP: True}}";
  EXPECT_OK(Train({method, kByDevice}, "gpu", 4, directory));
  EXPECT_THAT(Train({method, kByDevice}, "cpu", kSteps, directory).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("set config.MODEL.AMP_PARAMS.AMP_DTYPE=float16 to go on in the same format")));
  EXPECT_OK(Train({method, kFloat16}, "cpu", kSteps, directory));
}

// The count stays on the device: it is looked at with the reports, and before a save.
TEST(StandinDeviceLossScale, TooManySkippedUpdates_EndTheRunAtAReportOrASave) {
  StandinDevice::Install();
  const std::string directory = MakeTempDir("standin_device");
  for (const auto& [frequency, skipped] : {std::pair{4, 4}, std::pair{1000, 5}}) {
    const std::vector<std::string> config = {Methods().back().config, kOverflows,
                                             "MODEL: {AMP_PARAMS: {MAX_SKIPPED_UPDATES: 3}}",
                                             absl::StrCat("LOG_FREQUENCY: ", frequency)};
    EXPECT_THAT(Train(config, "gpu", /*last_iteration=*/5, directory).status(),
                StatusIs(absl::StatusCode::kOutOfRange,
                         AllOf(HasSubstr(absl::StrCat("overflowed in ", skipped, " updates in a row")),
                               HasSubstr("since iteration 0; the loss scale is 1e+30"))));
    EXPECT_FALSE(std::filesystem::exists(directory + "/checkpoints/step_5"));
  }
}

TEST(StandinDeviceEvaluation, WithinARun_ReportsAsOnTheCpu) {
  StandinDevice::Install();
  const std::vector<std::string> config = {Methods().back().config,
                                           "HOOKS: {EVAL: {ONLINE_EVALUATION: True, LINEAR: True, LOSS: True}}"};
  // Loss and accuracy of training; top-1 and top-5 of both classifiers, and the loss on test images.
  ExpectSameReports(config, MakeTempDir("standin_device"), /*least=*/7);
}

INSTANTIATE_TEST_SUITE_P(All, StandinDeviceMethods, testing::ValuesIn(Methods()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ssl
