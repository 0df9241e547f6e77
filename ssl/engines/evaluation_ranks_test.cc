// SPDX-License-Identifier: Apache-2.0
//
// Evaluations by several ranks, as threads: what they find and leave is what one rank does, and a stop or a full disk
// of one of them is one of all.
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/model.h"
#include "ssl/distributed/testing/thread_communicator.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/feature_files.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/file_system.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPredictions[] = "extract_label_predictions";

// Tells of each batch that its heads or its stages see.
class WatchedModel : public MatrixModel {
 public:
  explicit WatchedModel(std::function<void()> on_batch) : on_batch_(std::move(on_batch)) {}
  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
    on_batch_();
    return MatrixModel::Forward(views);
  }
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) override {
    on_batch_();
    return MatrixModel::Features(images, requests);
  }

 private:
  const std::function<void()> on_batch_;
};

class EvaluationRanksTest : public MatrixRun {
 protected:
  struct Rank {
    StopToken stop;
    ConfigNode results = ConfigNode::Map();
    FileSystem* file_system = &PosixFileSystem();
    absl::StatusOr<EngineReport> report = absl::UnknownError("has not run");
  };

  void SetUp() override {
    MatrixRun::SetUp();
    ASSERT_OK(registries_.models.Register("watched", [this](const ConfigNode&, const BuildContext& context) {
      const int64_t rank = context.communicator.rank();
      const auto on_batch = [this, rank] {
        if (rank == stopped_rank_) ranks_[rank].stop.Request(kStopTerminate);
      };
      return absl::StatusOr<std::unique_ptr<Model>>(std::make_unique<WatchedModel>(on_batch));
    }));
    Set("MODEL.BASE_MODEL_NAME", "watched");
    Set("DATA.TEST.DATA_LIMIT", "19");  // some of them twice, so that all ranks have equally many
    Set("NEAREST_NEIGHBOR.SAVE_PREDICTIONS", "True");
    Set("EXTRACT_FEATURES.LAYERS", "[all]");
    SaveRandomCheckpoint();
  }

  // By as many ranks as ranks_ has.
  void RunOnRanks(const std::string& name) {
    const auto size = static_cast<int64_t>(ranks_.size());
    EXPECT_OK(ThreadWorld(size, absl::Seconds(60)).Run([&](Communicator& communicator) {
      Rank& rank = ranks_[communicator.rank()];
      EngineContext context = {config_,           registries_, communicator, rank.stop,
                               *rank.file_system, directory_,  rank.results};
      absl::StatusOr<std::unique_ptr<Engine>> engine =
          registries_.engines.Make(name, config_, MakeBuildContext(context, /*seed=*/3));
      rank.report = engine.ok() ? (*engine)->Run(context) : engine.status();
      return absl::OkStatus();
    }));
  }

  void RunOnNewRanks(const std::string& name, size_t count) {
    ranks_ = std::vector<Rank>(count);
    RunOnRanks(name);
    for (const Rank& rank : ranks_) EXPECT_OK(rank.report.status()) << name << " on " << count;
  }

  bool Exists(const std::string& file) const { return PosixFileSystem().Exists(absl::StrCat(directory_, "/", file)); }
  std::string Read(const std::string& file) const {
    return PosixFileSystem().Read(absl::StrCat(directory_, "/", file)).value_or("cannot be read");
  }

  std::vector<Rank> ranks_ = std::vector<Rank>(2);
  int stopped_rank_ = -1;
};

TEST_F(EvaluationRanksTest, TablesAndResults_AreThoseOfOneRank) {
  for (const char* engine : {"knn", "linear_eval", kPredictions}) {
    RunOnNewRanks(engine, 1);
    ASSERT_OK(ranks_[0].report.status());
    const ConfigNode results = ranks_[0].results;
    // A table of files may follow: of several ranks, each tells its own.
    const std::string summary = ranks_[0].report->summary;
    const std::string table = summary.substr(0, summary.find("file "));
    EXPECT_THAT(table, HasSubstr("%"));
    for (const size_t count : {2, 4}) {
      RunOnNewRanks(engine, count);
      for (const Rank& rank : ranks_) {
        ASSERT_OK(rank.report.status());
        EXPECT_TRUE(rank.results == results) << engine << " on " << count;
        EXPECT_EQ(rank.report->summary.substr(0, table.size()), table) << "on " << count;
      }
    }
  }
}

TEST_F(EvaluationRanksTest, TablesOfFiles_CountThoseOfAllRanks) {
  for (const char* engine : {"extract_features", kPredictions}) {
    RunOnNewRanks(engine, 1);
    EXPECT_THAT(ranks_[0].report->summary, Not(HasSubstr("ranks")));
    RunOnNewRanks(engine, 4);
    EXPECT_THAT(ranks_[0].report->summary,
                AllOf(HasSubstr(" files of 4 ranks"), HasSubstr("test: 19 samples in 20 rows"), HasSubstr("_inds")));
  }
}

TEST_F(EvaluationRanksTest, ExtractedFeatures_AreThoseOfOneRank) {
  const std::string features = absl::StrCat(directory_, "/features");
  RunOnNewRanks("extract_features", 1);
  const ConfigNode results = ranks_[0].results;
  ASSERT_OK_AND_ASSIGN(const FeatureSet alone, LoadFeatures(features, "test", "all", PosixFileSystem()));
  for (const size_t count : {2, 4}) {
    RunOnNewRanks("extract_features", count);
    for (const Rank& rank : ranks_) EXPECT_TRUE(rank.results == results) << count;
    ASSERT_OK_AND_ASSIGN(const FeatureSet shared, LoadFeatures(features, "test", "all", PosixFileSystem()));
    EXPECT_TRUE(at::allclose(shared.features[0], alone.features[0])) << count;
    EXPECT_TRUE(at::equal(shared.labels, alone.labels)) << count;
    EXPECT_TRUE(at::equal(shared.indices, alone.indices)) << count;
  }
}

TEST_F(EvaluationRanksTest, Knn_RankZeroAloneWritesPredictions) {
  RunOnNewRanks("knn", 1);
  const std::string alone = Read("kNN_all_output_predictions.npy");
  ranks_ = std::vector<Rank>(2);
  FaultFileSystem counted(PosixFileSystem(), directory_);
  ranks_[1].file_system = &counted;
  RunOnRanks("knn");
  for (const Rank& rank : ranks_) EXPECT_OK(rank.report.status());
  EXPECT_EQ(Read("kNN_all_output_predictions.npy"), alone);
  EXPECT_EQ(counted.calls(), 0);
}

TEST_F(EvaluationRanksTest, AStopOfOneRank_IsOneOfAll) {
  for (const char* engine : {"knn", "linear_eval", "extract_features", kPredictions}) {
    ranks_ = std::vector<Rank>(2);
    stopped_rank_ = 1;
    RunOnRanks(engine);
    for (const Rank& rank : ranks_) {
      ASSERT_OK(rank.report.status());
      EXPECT_TRUE(rank.report->stopped) << engine;
      EXPECT_TRUE(rank.results.entries().empty()) << engine;
    }
  }
  for (const char* file : {"rank0_test_heads_predictions.npy", "kNN_all_output_predictions.npy"}) {
    EXPECT_FALSE(Exists(file)) << file;
  }
  EXPECT_THAT(PosixFileSystem().List(absl::StrCat(directory_, "/features")).value(), ElementsAre(".features.lock"));
}

// What a stop or a failure finds where one rank computes by itself, after the others have all they need of it.
TEST_F(EvaluationRanksTest, AStopBetweenLayers_IsOneOfAll) {
  for (const char* section : {"NEAREST_NEIGHBOR", "LINEAR_EVAL"}) {
    Set(absl::StrCat(section, ".LAYERS"), "[]");
    Set(absl::StrCat(section, ".BASELINES"), "[raw_pixels]");
  }
  for (const char* engine : {"knn", "linear_eval"}) {
    ranks_ = std::vector<Rank>(2);
    stopped_rank_ = 1;
    RunOnRanks(engine);
    for (const Rank& rank : ranks_) {
      ASSERT_OK(rank.report.status());
      EXPECT_TRUE(rank.report->stopped) << engine;
    }
  }
}

TEST_F(EvaluationRanksTest, AFullDiskOfOneRank_EndsAll_AndLeavesTheEarlierFiles) {
  const std::pair<const char*, int> kWriters[] = {{kPredictions, 1}, {"extract_features", 1}, {"knn", 0}};
  for (const auto& [engine, writer] : kWriters) {
    RunOnNewRanks(engine, 2);
    ASSERT_OK_AND_ASSIGN(const std::vector<std::string> before, PosixFileSystem().List(directory_));
    FaultFileSystem full(PosixFileSystem(), directory_);
    full.FailCall(1, ENOSPC, FaultFileSystem::Repeat::kFromThenOn);
    ranks_ = std::vector<Rank>(2);
    ranks_[writer].file_system = &full;
    RunOnRanks(engine);
    EXPECT_THAT(ranks_[writer].report.status(), StatusIs(absl::StatusCode::kResourceExhausted)) << engine;
    EXPECT_THAT(ranks_[1 - writer].report.status(),
                StatusIs(absl::StatusCode::kAborted, HasSubstr(absl::StrCat("failed on rank ", writer, " (on "))))
        << engine;
    EXPECT_EQ(PosixFileSystem().List(directory_).value(), before) << engine;
  }
}

// A copy of the data that lacks files on one host.
TEST_F(EvaluationRanksTest, UnequalData_AreNamedWithRankAndHost) {
  ConfigNode fewer = config_;
  fewer.SetPath("DATA.TRAIN.DATA_LIMIT", ConfigNode::FromInt(58));
  EXPECT_OK(ThreadWorld(2, absl::Seconds(60)).Run([&](Communicator& communicator) {
    Rank& rank = ranks_[communicator.rank()];
    const ConfigNode& config = communicator.rank() == 1 ? fewer : config_;
    EngineContext context = {config, registries_, communicator, rank.stop, *rank.file_system, directory_, rank.results};
    for (const char* engine : {"knn", "linear_eval", "extract_features", kPredictions, "full_tune"}) {
      absl::StatusOr<std::unique_ptr<Engine>> made =
          registries_.engines.Make(engine, config, MakeBuildContext(context, /*seed=*/3));
      EXPECT_THAT(made.ok() ? (*made)->Run(context).status() : made.status(),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("config.DATA.TRAIN is not the same data set on all ranks: rank 1 (on ")))
          << engine;
    }
    return absl::OkStatus();
  }));
}

}  // namespace
}  // namespace ssl
