// SPDX-License-Identifier: Apache-2.0
//
// A run goes on with another number of ranks: it has what was saved, to the bit, and learns what it would have learned.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/hook.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/core/step_context.h"
#include "ssl/distributed/communicator.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/testing/training_runs.h"

namespace ssl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int64_t kSamplesPerUpdate = 16;
constexpr int64_t kSaved = 4;
constexpr int64_t kCompared = 20;
constexpr int64_t kUpdates = kSaved + kCompared;  // one epoch
constexpr double kTolerance = 1e-5;               // of a loss, relative
constexpr double kLeastLearned = 10 * kTolerance;

// The rates of the cases are small because training magnifies what sums in another order round differently: a value
// about zero that ReLU lets through on one side alone changes a step's gradients as a whole, not in their last digits.
constexpr char kCommon[] = R"(
SEED_VALUE: 3
CHECKPOINT: {CHECKPOINT_FREQUENCY: 1000, KEEP_LAST: 0}
MODEL:
  SYNC_BN_CONFIG: {CONVERT_BN_TO_SYNC_BN: True, SYNC_BN_TYPE: pytorch}
  TRUNK: {NAME: resnet, RESNETS: {DEPTH: 18, WIDTH_MULTIPLIER: 0.0625, STEM: small}}
OPTIMIZER:
  num_epochs: 1
)";

constexpr char kNoLearning[] = R"(
OPTIMIZER: {param_schedulers: {lr: {name: cosine, start_value: 0.0, end_value: 0.0}}}
)";

struct Case {
  const char* name;
  int64_t views;
  const char* config;
};

void PrintTo(const Case& run, std::ostream* out) { *out << run.name; }

constexpr Case kCases[] = {
    {"SwavWithQueue", 3, R"(
LOSS: {name: swav_loss, swav_loss: {num_crops: 3, queue: {queue_length: 32, start_iter: 2}}}
MODEL: {HEAD: {PARAMS: [[swav_head, {dims: [32, 32, 16], use_bn: True, num_clusters: [8]}]]}}
OPTIMIZER: {param_schedulers: {lr: {name: cosine, start_value: 0.0000002, end_value: 0.00000002}}}
)"},
    {"SwavWithZero", 3, R"(
LOSS: {name: swav_loss, swav_loss: {num_crops: 3, queue: {queue_length: 32, start_iter: 2}}}
MODEL: {HEAD: {PARAMS: [[swav_head, {dims: [32, 32, 16], use_bn: True, num_clusters: [8]}]]}}
OPTIMIZER:
  use_zero: True
  use_larc: True  # makes the rate smaller
  param_schedulers: {lr: {name: cosine, start_value: 0.0001, end_value: 0.00001}}
)"},
    {"Supervised", 1, R"(
LOSS: {name: CrossEntropyLoss}
MODEL: {HEAD: {PARAMS: [[mlp, {dims: [32, 3]}]]}}
METERS: {names: [accuracy_list_meter], enable_training_meter: True}
OPTIMIZER: {param_schedulers: {lr: {name: cosine, start_value: 0.00001, end_value: 0.000001}}}
)"},
};

// Dealt out as DistributedSampler does: the ranks of a step together have the same samples, however many they are. Of
// large blocks, because noise is alike in all images: batch norm would divide what is left by next to nothing.
class DealtImages : public BatchSource {
 public:
  DealtImages(int64_t views, int64_t rank, int64_t ranks) : views_(views), rank_(rank), ranks_(ranks) {}

  int64_t batches_per_epoch() const override { return kUpdates; }
  int64_t dataset_size() const override { return kUpdates * kSamplesPerUpdate; }
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch) override {
    next_ = first_batch;
    return absl::OkStatus();
  }
  absl::StatusOr<const Batch*> Next() override {
    if (next_ == kUpdates) return nullptr;
    std::vector<int64_t> samples;
    for (int64_t i = rank_; i < kSamplesPerUpdate; i += ranks_) samples.push_back(next_ * kSamplesPerUpdate + i);
    ++next_;
    batch_.indices = at::tensor(samples);
    batch_.targets = batch_.indices.remainder(3);
    batch_.views.clear();
    for (int64_t view = 0; view < views_; ++view) {
      std::vector<at::Tensor> images;
      for (const int64_t sample : samples) {
        const at::Tensor blocks = at::randn({3, 4, 4}, at::detail::createCPUGenerator(sample * 10 + view));
        images.push_back(blocks.repeat_interleave(4, 1).repeat_interleave(4, 2));
      }
      batch_.views.push_back(at::stack(images));
    }
    return &batch_;
  }

 private:
  const int64_t views_;
  const int64_t rank_;
  const int64_t ranks_;
  int64_t next_ = 0;
  Batch batch_;
};

// Model and optimizer, by name.
using Tensors = std::map<std::string, at::Tensor>;

Tensors TensorsOf(StepContext& context) {
  Tensors tensors;
  for (Stateful* part : {static_cast<Stateful*>(&context.model), static_cast<Stateful*>(context.optimizer)}) {
    const absl::StatusOr<std::vector<NamedTensor>> state = CollectState(*part);
    EXPECT_OK(state);
    for (const NamedTensor& entry : *state) tensors[entry.name] = entry.tensor.detach().clone();
  }
  return tensors;
}

// What is the same on all ranks.
struct Record {
  std::map<int64_t, double> losses;        // the mean over the ranks of each step's, by iteration
  std::map<std::string, double> measured;  // what the meters say of the epoch
};

// What this rank begins with, what it has after each step, and on rank 0 what the meters say.
class Recorder : public Hook {
 public:
  Recorder(Record* record, Tensors* begun, Tensors* ended) : record_(record), begun_(begun), ended_(ended) {}
  absl::string_view name() const override { return "recorder"; }
  HookStage stage() const override { return HookStage::kObserve; }
  absl::Status OnStart(StepContext& context) override {
    *begun_ = TensorsOf(context);
    return absl::OkStatus();
  }
  absl::Status OnStep(StepContext& context) override {
    *ended_ = TensorsOf(context);
    return absl::OkStatus();
  }
  absl::Status OnPhaseEnd(StepContext& context) override {
    if (context.communicator.rank() != 0) return absl::OkStatus();
    for (const MeterReport& report : context.meter_reports) {
      for (const MeterValue& value : report.values) {
        record_->measured[absl::StrCat(report.meter, "/", value.metric)] = value.value;
      }
    }
    return absl::OkStatus();
  }

 private:
  Record* const record_;
  Tensors* const begun_;
  Tensors* const ended_;
};

class OtherRanksTest : public ::testing::TestWithParam<Case> {
 protected:
  // Trains from what `directory` holds to `iteration`, and saves.
  void TrainTo(int64_t iteration, int64_t ranks, const std::string& directory) {
    SCOPED_TRACE(absl::StrCat(ranks, " ranks to iteration ", iteration));
    std::vector<Tensors> begun(ranks);
    std::vector<Tensors> ended(ranks);
    TrainingRun run;
    run.ranks = ranks;
    run.samples_per_update = kSamplesPerUpdate;
    run.config = {kCommon, GetParam().config, rate_};
    run.directory = directory;
    run.last_iteration = iteration == kUpdates ? -1 : iteration;
    run.make_source = [](const Communicator& communicator) {
      return std::make_unique<DealtImages>(GetParam().views, communicator.rank(), communicator.size());
    };
    run.prepare = [&](Session& session, const Communicator& communicator) {
      const int64_t rank = communicator.rank();
      return session.AddHook(std::make_unique<Recorder>(&record_, &begun[rank], &ended[rank]));
    };
    ASSERT_OK_AND_ASSIGN(const std::vector<RankTrace> traces, Train(run));
    int64_t trained = traces[0].first_iteration;
    for (const double loss : MeanLosses(traces)) record_.losses[++trained] = loss;
    const Tensors found = Together(begun);
    if (!saved_.empty()) ExpectEqual(found, saved_);
    saved_ = Together(ended);
  }

  // All ranks have equal values of a name that several have.
  static Tensors Together(const std::vector<Tensors>& ranks) {
    Tensors all;
    for (const Tensors& of_rank : ranks) {
      for (const auto& [name, tensor] : of_rank) {
        const auto [entry, is_new] = all.emplace(name, tensor);
        EXPECT_TRUE(is_new || entry->second.equal(tensor)) << name;
      }
    }
    return all;
  }

  static void ExpectEqual(const Tensors& found, const Tensors& expected) {
    EXPECT_EQ(found.size(), expected.size());
    for (const auto& [name, tensor] : expected) {
      ASSERT_EQ(found.count(name), 1u) << name;
      EXPECT_TRUE(found.at(name).equal(tensor)) << name;
    }
  }

  void ExpectRecord(const Record& expected) {
    ASSERT_EQ(record_.losses.size(), expected.losses.size());
    for (const auto& [iteration, loss] : expected.losses) {
      EXPECT_NEAR(record_.losses[iteration], loss, kTolerance * std::abs(loss)) << "iteration " << iteration;
    }
    EXPECT_FALSE(expected.measured.empty());
    ASSERT_EQ(record_.measured.size(), expected.measured.size());
    for (const auto& [name, value] : expected.measured) {
      EXPECT_NEAR(record_.measured[name], value, kTolerance * std::abs(value)) << name;
    }
  }

  Record record_;
  Tensors saved_;
  std::string rate_ = "{}";  // YAML over the case's
};

// Otherwise the tests below could not fail.
TEST_P(OtherRanksTest, Training_ChangesLossesByFarMoreThanTheBound) {
  TrainTo(kUpdates, 1, MakeTempDir("learns"));
  const Record learned = std::exchange(record_, {});
  saved_.clear();
  rate_ = kNoLearning;
  TrainTo(kUpdates, 1, MakeTempDir("stays"));
  double largest = 0.0;
  for (const auto& [iteration, loss] : record_.losses) {
    largest = std::max(largest, std::abs(learned.losses.at(iteration) - loss) / loss);
  }
  EXPECT_GE(largest, kLeastLearned);
}

TEST_P(OtherRanksTest, FourTwoOneAndFourAgain_LearnWhatFourLearn) {
  const std::string straight = MakeTempDir("straight");
  const std::string chain = MakeTempDir("chain");
  TrainTo(kUpdates, 4, straight);
  const Record expected = std::exchange(record_, {});
  saved_.clear();
  TrainTo(kSaved, 4, chain);
  const CapturedLog log;
  TrainTo(kSaved + 5, 2, chain);
  EXPECT_THAT(log.lines, Contains(HasSubstr("saved by 4 ranks, and goes on with 2: ")));
  TrainTo(kSaved + 12, 1, chain);
  TrainTo(kUpdates, 4, chain);
  ExpectRecord(expected);
}

TEST_P(OtherRanksTest, TwentyStepsOfOneRank_AreThoseOfFour) {
  const std::string straight = MakeTempDir("straight");
  const std::string other = MakeTempDir("other");
  TrainTo(kUpdates, 4, straight);
  const Record expected = std::exchange(record_, {});
  saved_.clear();
  TrainTo(kSaved, 4, other);
  TrainTo(kUpdates, 1, other);
  ExpectRecord(expected);
}

INSTANTIATE_TEST_SUITE_P(Runs, OtherRanksTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ssl
