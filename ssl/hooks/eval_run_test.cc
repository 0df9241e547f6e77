// SPDX-License-Identifier: Apache-2.0
//
// Whole runs that are evaluated while they train.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/hook.h"
#include "ssl/core/method.h"
#include "ssl/core/registries.h"
#include "ssl/core/session.h"
#include "ssl/core/step_context.h"
#include "ssl/data/image/image.h"
#include "ssl/data/image/png_encoder.h"
#include "ssl/distributed/communicator.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/hooks/configured_hooks.h"
#include "ssl/hooks/testing/tiny_run.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/io/safetensors.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What the state of rank 0 has outside the scope: bytes by name.
std::map<std::string, std::string> StateBesides(const TinyRunResult& run, const std::string& scope) {
  const auto content = ReadSafetensors(run.directory + "/checkpoints/step_10/state_rank0.safetensors");
  EXPECT_OK(content);
  std::map<std::string, std::string> state;
  if (!content.ok()) return state;
  for (const NamedTensor& named : content->tensors) {
    if (absl::StartsWith(named.name, scope)) continue;
    state[named.name] = std::string(static_cast<const char*>(named.tensor.const_data_ptr()), named.tensor.nbytes());
  }
  return state;
}

TEST(EvalRunTest, Training_IsBitwiseTheSame) {
  ASSERT_OK_AND_ASSIGN(const TinyRunResult plain, TrainTinyRun("{}"));
  ASSERT_OK_AND_ASSIGN(const TinyRunResult watched,
                       TrainTinyRun("HOOKS: {EVAL: {ONLINE_EVALUATION: True, ITER_FREQUENCY: 2, KNN_K: 5, LOSS: "
                                    "True}}"));
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_EQ(watched.state.at(file), plain.state.at(file)) << file;
  }
  EXPECT_EQ(StateBesides(watched, "hooks/eval/"), StateBesides(plain, "hooks/eval/"));
  EXPECT_EQ(watched.Values("Training/Loss"), plain.Values("Training/Loss"));
  EXPECT_THAT(plain.Values("Evaluation/knn_top_1"), IsEmpty());
  // Each once: iterations 2, 4, 5, where epoch 1 ends, 6, 8, and 10, where epoch 2 does.
  EXPECT_THAT(watched.Values("Evaluation/knn_top_1"), SizeIs(6));
  EXPECT_THAT(watched.Values("Evaluation/loss_mean"), SizeIs(6));
  for (const double value : watched.Values("Evaluation/linear_top_5")) EXPECT_EQ(value, 100.0) << "of 4 classes";
}

// Two equal views of each image, so that the loss of a batch is a number of the weights alone.
constexpr char kTestPhases[] =
    "TEST_MODEL: True\n"
    "DATA: {TEST: {DATA_LIMIT: 32, COLLATE_FUNCTION: multicrop_collator, "
    "TRANSFORMS: [{name: ImgReplicatePil, num_times: 2}, {name: ToTensor}]}}\n";

TEST(EvalRunTest, Loss_IsThatOfTestPhases) {
  ASSERT_OK_AND_ASSIGN(const TinyRunResult run,
                       TrainTinyRun(absl::StrCat(kTestPhases,
                                                 "HOOKS: {EVAL: {ONLINE_EVALUATION: True, KNN: False, LINEAR: False, "
                                                 "LOSS: True, LOSS_TRANSFORMS: test}}")));
  const std::vector<double> expected = run.Values("Testing/loss_mean");
  ASSERT_EQ(expected.size(), 2);
  EXPECT_THAT(run.Values("Evaluation/loss_mean"), testing::Pointwise(testing::DoubleNear(1e-6), expected));
  EXPECT_NE(expected[0], expected[1]);
}

// The first update shows it, not the end of an epoch.
TEST(EvalRunTest, DataThatTheMethodCannotUse_EndTheRunAtOnce) {
  const std::string eval =
      "HOOKS: {EVAL: {ONLINE_EVALUATION: True, KNN: False, LINEAR: False, LOSS: True, LOSS_TRANSFORMS: test, "
      "EPOCH_FREQUENCY: -1}}\n";
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, OpenTinyRun(eval));
  EXPECT_THAT(std::string(session->Train().status().message()),
              AllOf(HasSubstr("hook 'eval' (OnStep"), HasSubstr("config.DATA.TEST")));
  EXPECT_EQ(session->state().iteration, 1) << "views_loss asks for two views, and DATA.TEST has one";
}

class LabelledMethod : public Method {
 public:
  absl::Status ComputeLoss(StepContext&) override { return absl::OkStatus(); }
  bool needs_labels() const override { return true; }
};

// Without test phases nobody else asks for them.
TEST(EvalRunTest, LabelsThatTheLossNeeds_AreAskedForWhenTheHookIsMade) {
  const Registries registries = TinyRunRegistries();
  ASSERT_OK_AND_ASSIGN(
      const ConfigNode tree,
      ParseYaml("TEST_MODEL: False\n"
                "LOSS: {name: labelled}\n"
                "HOOKS: {EVAL: {ONLINE_EVALUATION: True, KNN: False, LINEAR: "
                "False, LOSS: True, LOSS_TRANSFORMS: test}}\n"
                "DATA: {TEST: {DATA_SOURCES: [synthetic], DATA_LIMIT: 8, TRANSFORMS: [{name: ToTensor}]}}\n",
                "test.yaml", nullptr));
  ASSERT_OK_AND_ASSIGN(const ConfigNode config, ResolveConfig(tree, registries));
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  LabelledMethod method;
  BuildContext context{config, registries, *communicator};
  context.method = &method;
  EXPECT_THAT(
      MakeConfiguredHooks(context).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("config.LOSS.name is labelled, which needs labels"),
                                                         HasSubstr("the data of the hook eval"))));
}

TEST(EvalRunTest, EarlyStop_UsesItsValues) {
  CapturedLog log;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                       OpenTinyRun("HOOKS: {EVAL: {ONLINE_EVALUATION: True, KNN: False}, EARLY_STOP: {METRIC: "
                                   "Evaluation/linear_top_5, MODE: max, PATIENCE: 1}}\nOPTIMIZER: {num_epochs: 9}"));
  ASSERT_OK(session->Train());
  EXPECT_EQ(session->state().train_phase_index, 1) << "100 percent at once, and no more in the second epoch";
}

TEST(EvalRunTest, TheBestCheckpoint_IsOneThatWasEvaluated) {
  ASSERT_OK_AND_ASSIGN(
      const TinyRunResult run,
      TrainTinyRun("HOOKS: {EVAL: {ONLINE_EVALUATION: True, EPOCH_FREQUENCY: -1, ITER_FREQUENCY: 4, KNN: False}, "
                   "BEST_CHECKPOINT: {METRICS: [Evaluation/linear_top_5]}}"));
  // Evaluated at 4, 8, 10, each with 100 percent of 4 classes, so that the first is the best; epochs end at 5 and 10.
  ASSERT_OK_AND_ASSIGN(const std::string best, PosixFileSystem().Read(run.directory + "/checkpoints/best.step"));
  EXPECT_EQ(best, "step_4\n");
}

// The best of all values is one within an epoch: the loss of the test samples falls.
TEST(EvalRunTest, TheBestCheckpoint_MayLieWithinAnEpoch) {
  ASSERT_OK_AND_ASSIGN(
      const TinyRunResult run,
      TrainTinyRun("HOOKS: {EVAL: {ONLINE_EVALUATION: True, ITER_FREQUENCY: 1, KNN: False, LINEAR: "
                   "False, LOSS: True}, BEST_CHECKPOINT: {METRICS: [Evaluation/loss_mean], MODE: max}}"));
  const std::vector<double> values = run.Values("Evaluation/loss_mean");
  ASSERT_EQ(values.size(), 10);
  const int64_t largest = std::max_element(values.begin(), values.end()) - values.begin() + 1;
  ASSERT_NE(largest % 5, 0) << "no end of an epoch, or the test shows nothing";
  ASSERT_OK_AND_ASSIGN(const std::string best, PosixFileSystem().Read(run.directory + "/checkpoints/best.step"));
  EXPECT_EQ(best, absl::StrCat("step_", largest, "\n"));
}

TEST(EvalRunTest, EarlyStop_CountsEvaluationsWithinAnEpoch) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Session> session,
      OpenTinyRun("HOOKS: {EVAL: {ONLINE_EVALUATION: True, ITER_FREQUENCY: 2, KNN: False}, EARLY_STOP: "
                  "{METRIC: Evaluation/linear_top_5, MODE: max, PATIENCE: 3}}"));
  ASSERT_OK(session->Train());
  // 100 percent at once, at 2; then at 4, 5, where the first epoch ends, and 6.
  EXPECT_EQ(session->state().iteration, 6);
}

// A signal, just before the evaluation of an iteration, or before the process that goes on from it makes that up for
// it.
class SignalAtIteration : public Hook {
 public:
  SignalAtIteration(int64_t iteration, Session& session) : iteration_(iteration), session_(session) {}
  absl::string_view name() const override { return "signal"; }
  HookStage stage() const override { return HookStage::kTiming; }
  absl::Status OnStart(StepContext& context) override { return OnStep(context); }
  absl::Status OnStep(StepContext& context) override {
    if (context.state.iteration == iteration_) session_.RequestStop(kStopTerminate);
    return absl::OkStatus();
  }

 private:
  const int64_t iteration_;
  Session& session_;
};

struct MeasuredRun {
  std::vector<std::string> evaluations;  // lines of metrics.jsonl
  std::vector<std::string> files;
};

// What a run leaves whose processes are stopped at these iterations, each at one of them. It ends at iteration `end`.
MeasuredRun MeasuredByRun(std::vector<int64_t> stops, int64_t patience = 20, int64_t end = 10) {
  const std::string directory = MakeTempDir("measured");
  stops.push_back(-1);
  for (const int64_t stop : stops) {
    const auto session = OpenTinyRun(absl::StrCat("CHECKPOINT: {DIR: ", directory, R"(}
HOOKS:
  EVAL: {ONLINE_EVALUATION: True, ITER_FREQUENCY: 1, KNN_K: 5, LOSS: True}
  BEST_CHECKPOINT: {METRICS: [Evaluation/loss_mean], MODE: max}
  EARLY_STOP: {METRIC: Evaluation/linear_top_5, MODE: max, PATIENCE: )",
                                                  patience, "}\n"));
    EXPECT_OK(session);
    if (!session.ok()) return {};
    EXPECT_OK((*session)->AddHook(std::make_unique<SignalAtIteration>(stop, **session)));
    const absl::StatusOr<TrainOutcome> outcome = (*session)->Train();
    EXPECT_OK(outcome);
    EXPECT_TRUE(outcome.ok() && (*outcome == TrainOutcome::kStopped) == (stop >= 0));
  }
  MeasuredRun run;
  const std::string step = absl::StrCat("step_", end);
  for (const std::string& file : {std::string("FINISHED"), std::string("best.step"), step + "/model.safetensors",
                                  step + "/optimizer.safetensors", step + "/state_rank0.safetensors"}) {
    run.files.push_back(PosixFileSystem().Read(directory + "/checkpoints/" + file).value_or("no " + file));
  }
  const std::string lines = PosixFileSystem().Read(directory + "/metrics.jsonl").value_or("");
  run.evaluations = absl::StrSplit(lines, '\n', [](absl::string_view line) {
    return absl::StrContains(line, "Evaluation/") && !absl::StrContains(line, "Training/");
  });
  return run;
}

TEST(EvalRunTest, StopWhereAnEvaluationIsDue_IsMadeUpForByTheNextProcess) {
  const MeasuredRun whole = MeasuredByRun({});
  EXPECT_THAT(whole.evaluations, SizeIs(8)) << "those of epochs stand in the reports of these";
  for (const std::vector<int64_t>& stops : {std::vector<int64_t>{1, 1, 7}, std::vector<int64_t>{3}}) {
    const MeasuredRun stopped = MeasuredByRun(stops);
    EXPECT_EQ(stopped.evaluations, whole.evaluations) << stops.size() << " stops";
    EXPECT_TRUE(stopped.files == whole.files) << stops.size() << " stops, best " << stopped.files.at(1);
  }
}

// 100 percent at once, and no more at 2.
TEST(EvalRunTest, EvaluationThatIsMadeUpFor_MayEndTheRun) {
  const MeasuredRun whole = MeasuredByRun({}, /*patience=*/1, /*end=*/2);
  EXPECT_THAT(whole.files.at(0), HasSubstr("step_2\nearly_stop: "));
  const MeasuredRun stopped = MeasuredByRun({2}, 1, 2);
  EXPECT_EQ(stopped.evaluations, whole.evaluations);
  EXPECT_TRUE(stopped.files == whole.files) << "step_2 of the stop knew of an evaluation that was owed";
}

// A signal, just before the evaluation at the end of an epoch.
class SignalHook : public Hook {
 public:
  SignalHook(int64_t epoch, Session& session) : epoch_(epoch), session_(session) {}
  absl::string_view name() const override { return "signal"; }
  HookStage stage() const override { return HookStage::kTiming; }
  absl::Status OnPhaseEnd(StepContext& context) override {
    if (context.state.train_phase_index == epoch_) session_.RequestStop(kStopTerminate);
    return absl::OkStatus();
  }

 private:
  const int64_t epoch_;
  Session& session_;
};

// What a run leaves that is stopped in the evaluation of `stop_in`, an epoch, and goes on; -1: it is not stopped.
std::vector<std::string> LeftByRun(int64_t stop_in) {
  const std::string directory = MakeTempDir("evaluated");
  for (const int64_t epoch : {stop_in, int64_t{-1}}) {
    const auto session = OpenTinyRun("CHECKPOINT: {DIR: " + directory + R"(}
HOOKS:
  EVAL: {ONLINE_EVALUATION: True, KNN_K: 5}
  BEST_CHECKPOINT: {METRICS: [Evaluation/linear_top_5]}
  EARLY_STOP: {METRIC: Evaluation/linear_top_5, MODE: max, PATIENCE: 9}
)");
    EXPECT_OK(session);
    if (!session.ok()) return {};
    EXPECT_OK((*session)->AddHook(std::make_unique<SignalHook>(epoch, **session)));
    const absl::StatusOr<TrainOutcome> outcome = (*session)->Train();
    EXPECT_OK(outcome);
    EXPECT_TRUE(outcome.ok() && (*outcome == TrainOutcome::kStopped) == (epoch >= 0));
  }
  std::vector<std::string> files;
  for (const char* file : {"metrics.json", "checkpoints/best.step", "checkpoints/step_10/state_rank0.safetensors"}) {
    files.push_back(PosixFileSystem().Read(directory + "/" + file).value_or(absl::StrCat("no ", file)));
  }
  return files;
}

TEST(EvalRunTest, StopInAnEvaluation_LeavesWhatARunWithoutItLeaves) {
  const std::vector<std::string> whole = LeftByRun(-1);
  EXPECT_THAT(whole.at(0), HasSubstr("linear"));
  EXPECT_EQ(LeftByRun(0), whole) << "between two epochs";
  EXPECT_EQ(LeftByRun(1), whole) << "step_10 of the stop knew of no end";
}

// A folder of classes with four images each, of which the first `broken` of each class are empty files.
std::string FolderOfClasses(const std::vector<std::string>& classes, int broken) {
  const std::string directory = MakeTempDir("classes");
  for (const std::string& name : classes) {
    EXPECT_OK(PosixFileSystem().CreateDirectories(absl::StrCat(directory, "/", name)));
    for (int i = 0; i < 4; ++i) {
      Image image;
      std::fill_n(image.Allocate(20, 20, 3), 20 * 20 * 3, static_cast<uint8_t>(10 * i + name[0]));
      const std::string bytes = i < broken ? "" : EncodePng(image).value_or("");
      EXPECT_OK(WriteFileAtomically(PosixFileSystem(), absl::StrCat(directory, "/", name, "/", i, ".png"), bytes));
    }
  }
  return directory;
}

// As the engines of the same names do. The test has a class less, so that its labels are renumbered on their way.
TEST(EvalRunTest, ImagesThatCannotBeRead_AreNoSamples) {
  const std::string data = absl::StrCat(
      "DATA: {TRAIN: {DATA_SOURCES: [disk_folder], MAX_BROKEN_FRACTION: 1.0, DATA_LIMIT: -1, DATA_PATHS: [",
      FolderOfClasses({"a", "b", "c"}, /*broken=*/2), "]}, TEST: {DATA_SOURCES: [disk_folder], DATA_LIMIT: -1, ",
      "MAX_BROKEN_FRACTION: 1.0, DATA_PATHS: [", FolderOfClasses({"b", "c"}, /*broken=*/1), "]}}\n");
  const CapturedLog log;
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<Session> session,
      OpenTinyRun(absl::StrCat(data, "HOOKS: {EVAL: {ONLINE_EVALUATION: True, LINEAR: False, KNN_K: 1}}")));
  ASSERT_OK(session->Train());
  EXPECT_THAT(log.lines, Contains(AllOf(HasSubstr("eval: iteration"), HasSubstr(" of 6 samples (left out, as they "
                                                                                "cannot be read: 6 images of train, 2 "
                                                                                "images of test)"))));
}

TEST(EvalRunTest, DataThatDoNotFit_AreNamedBeforeTheFirstStep) {
  const auto start = [](const std::string& overrides) {
    const auto session = OpenTinyRun(overrides);
    return session.ok() ? (*session)->Start() : session.status();
  };
  EXPECT_THAT(start("HOOKS: {EVAL: {ONLINE_EVALUATION: True}}\nDATA: {TEST: {COLLATE_FUNCTION: multicrop_collator, "
                    "TRANSFORMS: [{name: ImgPilToMultiCrop, total_num_crops: 2, num_crops: [2], size_crops: [8], "
                    "crop_scales: [[0.3, 1.0]]}, {name: ToTensor}]}}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("hook 'eval' (OnStart"), HasSubstr("2 views, expected 1"))));
  EXPECT_THAT(start("HOOKS: {EVAL: {ONLINE_EVALUATION: True, FEATURES: res6}}"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("config.HOOKS.EVAL.FEATURES is 'res6'")));
  EXPECT_THAT(start("hooks: [{type: eval, kwargs: {FEATURES: res6}}]"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("config.hooks.0.kwargs.FEATURES is 'res6'")));
  EXPECT_THAT(start("HOOKS: {EVAL: {ONLINE_EVALUATION: True, NUM_TEST_SAMPLES: 1}}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:1: config.HOOKS.EVAL.NUM_TEST_SAMPLES is 1, expected at least 2")));
  EXPECT_THAT(start("HOOKS: {EVAL: {ONLINE_EVALUATION: True, KNN: False, LINEAR: False}}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.HOOKS.EVAL.KNN is false, and so are")));
  EXPECT_THAT(start("HOOKS: {EVAL: {ONLINE_EVALUATION: True}}\nDATA: {TEST: {DATA_SOURCES: []}}"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("config.DATA.TEST.DATA_SOURCES"), HasSubstr("the data of the hook eval"))));
}

}  // namespace
}  // namespace ssl
