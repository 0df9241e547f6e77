// SPDX-License-Identifier: Apache-2.0
//
// What reports the progress of a run, together: train_logger, metric_printer, phase_metrics and the sinks, as the list
// config.hooks names them in other programs' words.
#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/merge.h"
#include "ssl/config/yaml.h"
#include "ssl/core/session.h"
#include "ssl/core/testing/fakes.h"
#include "ssl/hooks/register_hooks.h"
#include "ssl/io/file_system.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class MetricHooksTest : public ::testing::Test {
 protected:
  MetricHooksTest() {
    EXPECT_OK(RegisterHooks(&registries_));
    EXPECT_OK(RegisterFakes(&registries_));
  }

  // A run of the fakes, 10 iterations an epoch, with `yaml` over their configuration.
  absl::Status Train(const std::string& yaml, const std::function<void(ConfigNode&)>& change = nullptr) {
    std::vector<std::string> warnings;
    ConfigNode config = FakeConfig(directory_);
    SSL_ASSIGN_OR_RETURN(const ConfigNode changes, ParseYaml(yaml, "test.yaml", &warnings));
    MergeInto(&config, changes);
    if (change != nullptr) change(config);
    SSL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(config, registries_, {}));
    return session->Train().status();
  }

  std::vector<nlohmann::json> Lines() {
    std::vector<nlohmann::json> lines;
    const std::string text = PosixFileSystem().Read(directory_ + "/metrics.jsonl").value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      lines.push_back(nlohmann::json::parse(line.begin(), line.end()));
    }
    return lines;
  }

  std::vector<int64_t> IterationsWith(const std::string& metric) {
    std::vector<int64_t> iterations;
    for (const nlohmann::json& line : Lines()) {
      if (line.contains(metric)) iterations.push_back(line["iteration"].get<int64_t>());
    }
    return iterations;
  }

  Registries registries_;
  const std::string directory_ = MakeTempDir("run");
};

// detectron2's test_engine.py: 50 iterations, a writer's period of 20 and an evaluation at the end. There the lines of
// the file have 19, 39, 49 and 50; here iterations are those done, and the first two of a process report as well.
TEST_F(MetricHooksTest, WritersOfLiBai_WriteEveryPeriodAndTheFinalEvaluation) {
  CapturedLog log;
  ASSERT_OK(
      Train("OPTIMIZER: {num_epochs: 5}\nTEST_MODEL: True\nTEST_EVERY_NUM_EPOCH: 5\n"
            "hooks: [{type: PeriodicWriter}, {type: CommonMetricPrinter}, {type: JSONWriter}]"));

  EXPECT_THAT(IterationsWith("Training/Loss"), ElementsAre(1, 2, 20, 40, 50));
  EXPECT_THAT(IterationsWith("Testing/loss_mean"), ElementsAre(10, 50)) << "the first epoch is tested, too";
  EXPECT_TRUE(Lines().back().contains("Testing/loss_mean"));
  std::vector<std::string> printed;
  for (const std::string& line : log.lines) {
    if (absl::StrContains(line, "total_throughput")) printed.push_back(line);
  }
  EXPECT_THAT(printed, ElementsAre(HasSubstr("  iteration: 20/50  consumed_samples: 80  "),
                                   HasSubstr("  iteration: 40/50  consumed_samples: 160  "),
                                   AllOf(HasSubstr("eta: 0:00:00  iteration: 50/50"), HasSubstr("  Training/Loss: "))));
}

// Two evaluations within one period of the writer: LiBai loses the first, and the last of a run.
TEST_F(MetricHooksTest, EachEvaluation_HasALine) {
  ASSERT_OK(Train("OPTIMIZER: {num_epochs: 3}\nTEST_MODEL: True\nTEST_EVERY_NUM_EPOCH: 1\nLOG_FREQUENCY: 1000"));
  EXPECT_THAT(IterationsWith("Testing/loss_mean"), ElementsAre(10, 20, 30));
}

TEST_F(MetricHooksTest, TrainValLogger_HasItsDocumentedDefaults) {
  ASSERT_OK(Train("hooks: [{type: train_val_logger}]"));

  EXPECT_THAT(IterationsWith("Training/Loss"), SizeIs(20)) << "freq is 1";
  EXPECT_THAT(IterationsWith("Speed/step_seconds"), SizeIs(19)) << "skip_first_k is 1";
  EXPECT_THAT(*PosixFileSystem().List(directory_ + "/log"), ElementsAre(HasSubstr("events.out.tfevents.")));
}

// Its entry says nothing about the period, so that the configuration's own key counts, also where that is our default.
TEST_F(MetricHooksTest, TrainValLogger_FollowsTheSectionsKeys) {
  ASSERT_OK(Train("LOG_FREQUENCY: 10\nhooks: [{type: train_val_logger}]"));
  EXPECT_THAT(IterationsWith("Training/Loss"), ElementsAre(1, 2, 10, 20));
}

TEST_F(MetricHooksTest, TrainValLogger_FollowsAKeyThatTheHostHasSet) {
  ASSERT_OK(Train("hooks: [{type: train_val_logger}]",
                  [](ConfigNode& config) { config.SetPath("LOG_FREQUENCY", ConfigNode::FromInt(20)); }));
  EXPECT_THAT(IterationsWith("Training/Loss"), ElementsAre(1, 2, 20));
}

TEST_F(MetricHooksTest, TrainValLogger_DoesWhatItsKwargsSay) {
  ASSERT_OK(Train("hooks: [{type: train_val_logger, kwargs: {freq: 4, skip_first_k: 7, logdir: a/b}}]"));

  EXPECT_THAT(IterationsWith("Training/Loss"), ElementsAre(1, 2, 4, 8, 12, 16, 20));
  EXPECT_THAT(IterationsWith("Speed/step_seconds"), ElementsAre(8, 12, 16, 20));
  EXPECT_THAT(*PosixFileSystem().List(directory_ + "/a/b"), SizeIs(1));
}

// One in each folder, and so one moment once.
TEST_F(MetricHooksTest, WritersOfOneFolder_AreOne) {
  ASSERT_OK(
      Train("hooks: [{type: TensorboardXWriter}, {type: train_val_logger, kwargs: {logdir: ./tb_logs}}, "
            "{type: memory_analysis, kwargs: {logdir: tb_logs/, summary_writer: tensorboard}}]"));
  EXPECT_THAT(*PosixFileSystem().List(directory_ + "/tb_logs"), SizeIs(1));
}

TEST_F(MetricHooksTest, MemoryAnalysis_HasTheWriterThatItAsksFor) {
  ASSERT_OK(Train("hooks: [{type: memory_analysis, kwargs: {freq: 5, logdir: memory, summary_writer: tensorboard}}]"));
  EXPECT_THAT(IterationsWith("System/memory_used_gb"), ElementsAre(10, 20)) << "a report comes every 10 iterations";
  const std::vector<std::string> files = *PosixFileSystem().List(directory_ + "/memory");
  ASSERT_THAT(files, ElementsAre(HasSubstr("events.out.tfevents.")));
  EXPECT_THAT(*PosixFileSystem().Read(directory_ + "/memory/" + files[0]), HasSubstr("System/memory_used_gb"));
}

TEST_F(MetricHooksTest, MemoryAnalysisAndTheLogger_ShareTheFolderThatBothHaveByDefault) {
  ASSERT_OK(Train("hooks: [{type: memory_analysis}, {type: train_val_logger}]"));
  EXPECT_THAT(*PosixFileSystem().List(directory_ + "/log"), SizeIs(1));
}

TEST_F(MetricHooksTest, PaviIsRefusedWithTheWayOut) {
  EXPECT_THAT(Train("hooks:\n  - {type: train_val_logger, kwargs: {summary_writer: pavi}}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.yaml:2: config.hooks.0.kwargs.SUMMARY_WRITER is 'pavi', a service inside"),
                             HasSubstr("expected tensorboard"))));
  EXPECT_THAT(Train("hooks: [{type: train_val_logger, kwargs: {summary_writer: wandb}}]"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("SUMMARY_WRITER is 'wandb', expected")));
}

TEST_F(MetricHooksTest, LogdirOutsideTheRun_IsRefused) {
  for (const std::string logdir : {"/tmp/log", "../log", "a/../../log", "''"}) {
    EXPECT_THAT(Train("hooks: [{type: train_val_logger, kwargs: {logdir: " + logdir + "}}]"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected a directory inside the run's")))
        << logdir;
  }
}

TEST_F(MetricHooksTest, SinkOfTheList_IsTurnedOnOnce) {
  ASSERT_OK(Train("hooks: [{type: TensorboardXWriter}, {type: jsonl}]"));
  EXPECT_THAT(*PosixFileSystem().List(directory_ + "/tb_logs"), SizeIs(1));
  EXPECT_THAT(IterationsWith("Training/Loss"), ElementsAre(1, 2, 10, 20));
}

TEST_F(MetricHooksTest, SinkOfTheList_TakesNoNameAndNoUnknownKey) {
  EXPECT_THAT(Train("hooks:\n  - {type: JSONWriter, name: second}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("test.yaml:2: config.hooks.0.name is 'second'"), HasSubstr("a second jsonl"))));
  EXPECT_THAT(Train("hooks:\n  - {type: TensorboardXWriter, kwargs: {folder: x}}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("unknown key 'config.hooks.0.kwargs.folder'")));
}

}  // namespace
}  // namespace ssl
