// SPDX-License-Identifier: Apache-2.0
//
// knn and linear_eval from a configuration to their figures, on synthetic images and a network of one matrix.
#include <ATen/core/Tensor.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/core/run_progress.h"
#include "ssl/data/datasets/synthetic_dataset.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/feature_files.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/file_system.h"
#include "ssl/io/npy.h"
#include "ssl/io/testing/fault_file_system.h"
#include "ssl/meters/linear_probe.h"
#include "ssl/testing/captured_log.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class EvaluationEnginesTest : public MatrixRun {};

TEST_F(EvaluationEnginesTest, Knn_HasOneRowForEachSubject) {
  SaveRandomCheckpoint();
  Set("NEAREST_NEIGHBOR.BASELINES", "[raw_pixels, untrained]");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("knn"));
  EXPECT_THAT(report.summary, HasSubstr("(cosine kNN, k=5, T=0.07, all, 20 test images)\nraw pixels "));
  EXPECT_THAT(report.summary, HasSubstr("untrained network "));
  for (const char* subject : {"raw_pixels", "untrained", "trained"}) {
    EXPECT_GT(Result(absl::StrCat("knn.", subject)), 0.0) << subject;
  }
  EXPECT_EQ(Result("knn.k"), 5);
}

TEST_F(EvaluationEnginesTest, Knn_OnARunWithIndicesAsLabels_TakesTheLabelsOfTheData) {
  SaveRandomCheckpoint();
  ASSERT_OK(Run("knn").status());
  const double with_labels = Result("knn.trained");
  Set("DATA.TRAIN.LABEL_TYPE", "sample_index");
  results_ = ConfigNode::Map();
  ASSERT_OK(Run("knn").status());
  EXPECT_EQ(Result("knn.trained"), with_labels);
}

TEST_F(EvaluationEnginesTest, Knn_OnExtractedFiles_GivesTheSame) {
  SaveRandomCheckpoint();
  ASSERT_OK(Run("knn").status());
  const double on_data = Result("knn.trained");
  Set("EXTRACT_FEATURES.LAYERS", "[all]");
  ASSERT_OK(Run("extract_features").status());
  ASSERT_OK(PosixFileSystem().RemoveAll(directory_ + "/checkpoints"));
  Set("NEAREST_NEIGHBOR.FEATURES.PATH", directory_ + "/features");
  results_ = ConfigNode::Map();
  ASSERT_OK(Run("knn").status());
  EXPECT_EQ(Result("knn.trained"), on_data);
}

TEST_F(EvaluationEnginesTest, Knn_SeveralK_AndLayersByThemselves) {
  SaveRandomCheckpoint();
  Set("EXTRACT_FEATURES.LAYERS", "[half, all]");
  ASSERT_OK(Run("extract_features").status());
  Set("NEAREST_NEIGHBOR.FEATURES.PATH", directory_ + "/features");
  Set("NEAREST_NEIGHBOR.LAYERS", "[]");
  Set("NEAREST_NEIGHBOR.TOPK", "[3, 7]");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("knn"));
  EXPECT_THAT(report.summary, HasSubstr("half   k=7"));
  const ConfigNode all = results_;
  for (const auto& [key, layer, k] : {std::tuple("all", "[all]", "3"), std::tuple("all_k7", "[all]", "7"),
                                      std::tuple("half", "[half]", "3"), std::tuple("half_k7", "[half]", "7")}) {
    Set("NEAREST_NEIGHBOR.LAYERS", layer);
    Set("NEAREST_NEIGHBOR.TOPK", k);
    ASSERT_OK(Run("knn").status());
    EXPECT_EQ(all.FindPath(absl::StrCat("knn.trained.", key))->AsDouble().value(), Result("knn.trained")) << key;
  }
}

TEST_F(EvaluationEnginesTest, Knn_SavesPredictionsOnRequestOnly) {
  SaveRandomCheckpoint();
  ASSERT_OK(Run("knn").status());
  EXPECT_FALSE(PosixFileSystem().Exists(directory_ + "/kNN_all_output_predictions.npy"));
  Set("NEAREST_NEIGHBOR.SAVE_PREDICTIONS", "True");
  ASSERT_OK(Run("knn").status());
  const std::string prefix = directory_ + "/kNN_all_output_";
  ASSERT_OK_AND_ASSIGN(const NpyArray predictions, ReadNpy(prefix + "predictions.npy"));
  EXPECT_EQ(predictions.shape, (std::vector<int64_t>{20, 4}));
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> classes, NpyInts(predictions));
  ASSERT_OK_AND_ASSIGN(const NpyArray targets_file, ReadNpy(prefix + "targets.npy"));
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> targets, NpyInts(targets_file));
  double hits = 0;
  for (size_t i = 0; i < targets.size(); ++i) hits += classes[4 * i] == targets[i];
  EXPECT_DOUBLE_EQ(Result("knn.trained"), hits / 20.0);
  EXPECT_OK(ReadNpy(prefix + "image_indices.npy").status());
}

TEST_F(EvaluationEnginesTest, Knn_WrongSettings_AreNamed) {
  Set("NEAREST_NEIGHBOR.TOPK", "[5, none]");
  EXPECT_THAT(Run("knn").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("override.yaml:1: config.NEAREST_NEIGHBOR.TOPK is a list, expected a number")));
  Set("NEAREST_NEIGHBOR.TOPK", "5");
  for (const char* sigma : {"0", "-1", "warm", "[0.1]"}) {
    Set("NEAREST_NEIGHBOR.SIGMA", sigma);
    EXPECT_THAT(Run("knn").status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                              HasSubstr("override.yaml:1: config.NEAREST_NEIGHBOR.SIGMA is ")))
        << sigma;
  }
  Set("NEAREST_NEIGHBOR.SIGMA", "auto");
  Set("NEAREST_NEIGHBOR.L2_NORM_FEATS", "2");
  EXPECT_THAT(Run("knn").status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("L2_NORM_FEATS is '2', expected True or False, or auto")));
  Set("NEAREST_NEIGHBOR.L2_NORM_FEATS", "True");
  Set("NEAREST_NEIGHBOR.BASELINES", "[raw_pixel]");
  EXPECT_THAT(Run("knn").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("did you mean 'raw_pixels'?")));
}

TEST_F(EvaluationEnginesTest, Knn_WithoutSettings_TakesTwentyByCosine) {
  SaveRandomCheckpoint();
  Set("NEAREST_NEIGHBOR", "{LAYERS: [all]}");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("knn"));
  EXPECT_THAT(report.summary, HasSubstr("(cosine kNN, k=20, T=0.07, all, 20 test images)"));
  EXPECT_THAT(report.summary, Not(HasSubstr("untrained"))) << "the evaluation is described: no baselines unless named";
  const double chosen = Result("knn.trained");
  Set("NEAREST_NEIGHBOR", "{LAYERS: [all], TOPK: 20, SIGMA: 0.07, L2_NORM_FEATS: True}");
  ASSERT_OK(Run("knn").status());
  EXPECT_EQ(Result("knn.trained"), chosen);
}

TEST_F(EvaluationEnginesTest, Knn_OnFewSamples_TakesAllOfThem) {
  SaveRandomCheckpoint();
  Set("DATA.TRAIN.DATA_LIMIT", "12");
  Set("NEAREST_NEIGHBOR", "{LAYERS: [all]}");
  ASSERT_OK(Run("knn").status());
  EXPECT_EQ(Result("knn.k"), 12);
}

TEST_F(EvaluationEnginesTest, Knn_OfVisslsSettings_IsVissls) {
  SaveRandomCheckpoint();
  Set("NEAREST_NEIGHBOR", "{LAYERS: [all], TOPK: 30, SIGMA: 0.1, L2_NORM_FEATS: False}");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("knn"));
  EXPECT_THAT(report.summary, HasSubstr("(dot product kNN, k=30, T=0.1, all, 20 test images)"));
}

TEST_F(EvaluationEnginesTest, Evaluation_WithoutADescription_FollowsFromTraining) {
  config_.SetPath("DATA.TEST", *registries_.options.Defaults().FindPath("DATA.TEST"));
  Set("DATA.TRAIN.TRANSFORMS",
      "[{name: ImgPilToMultiCrop, total_num_crops: 3, num_crops: [2, 1], size_crops: [8, 4]}, {name: ToTensor}]");
  Set("DATA.TRAIN.COLLATE_FUNCTION", "multicrop_collator");
  SaveRandomCheckpoint();
  ASSERT_OK_AND_ASSIGN(const EngineReport knn, Run("knn"));
  for (const char* subject : {"raw_pixels", "untrained", "trained"}) {
    EXPECT_GT(Result(absl::StrCat("knn.", subject)), 0.0) << subject;
  }
  EXPECT_OK(Run("linear_eval").status());
  EXPECT_OK(Run("extract_features").status());
  EXPECT_EQ(Result("extract_features.train_samples"), 60);
  EXPECT_EQ(Result("extract_features.test_samples"), 60) << "the synthetic data set's size is DATA_LIMIT";
}

TEST_F(EvaluationEnginesTest, Evaluation_SaysWhatItChoseAndWhichKeysSayOtherwise) {
  Set("NEAREST_NEIGHBOR", "{LAYERS: [all]}");
  config_.SetPath("DATA.TEST", *registries_.options.Defaults().FindPath("DATA.TEST"));
  Set("DATA.TRAIN.TRANSFORMS", "[{name: RandomCrop, size: 8}, {name: ToTensor}]");
  SaveRandomCheckpoint();
  const CapturedLog log;
  ASSERT_OK(Run("knn").status());
  ASSERT_OK(Run("extract_features").status());
  for (const char* said :
       {"the test set is the part SPLIT: test", "config.DATA.TEST.DATA_PATHS", "Resize 8, CenterCrop 8, ToTensor",
        "config.DATA.TEST.TRANSFORMS", "TOPK 20, SIGMA 0.07, L2_NORM_FEATS True", "config.NEAREST_NEIGHBOR",
        "features of all; config.EXTRACT_FEATURES.LAYERS"}) {
    EXPECT_THAT(log.Text(), HasSubstr(said));
  }
}

TEST_F(EvaluationEnginesTest, DescribedEvaluation_ChoosesNothing) {
  SaveRandomCheckpoint();
  Set("NEAREST_NEIGHBOR.SIGMA", "0.1");
  const CapturedLog log;
  ASSERT_OK(Run("knn").status());
  EXPECT_THAT(log.Text(), Not(HasSubstr("evaluation:")));
}

TEST_F(EvaluationEnginesTest, Evaluation_FindsMistakesBeforeTheFirstFeature) {
  Set("NEAREST_NEIGHBOR.BASELINES", "[raw_pixels, untrained]");
  EXPECT_THAT(Run("knn").status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no trained weights")));
  SaveRandomCheckpoint();
  Set("NEAREST_NEIGHBOR.LAYERS", "[res9]");
  EXPECT_THAT(Run("knn").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("override.yaml:1: config.NEAREST_NEIGHBOR.LAYERS has 'res9', expected "
                                 "stages of the network: half, all, heads")));
  Set("NEAREST_NEIGHBOR.LAYERS", "[all]");
  EXPECT_EQ(feature_calls_, 0);
  Set("NEAREST_NEIGHBOR.TOPK", "[5, 61]");
  EXPECT_THAT(Run("knn").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("override.yaml:1: config.NEAREST_NEIGHBOR.TOPK is 61, expected at most 60")));
  Set("NEAREST_NEIGHBOR.TOPK", "5");
  Set("DATA.TEST.RANDOM_SYNTHETIC_LABELS", "6");
  EXPECT_THAT(Run("knn").status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(": 4, 5 (2)")));
  Set("DATA.TEST.DATA_SOURCES", "[]");
  Set("DATA.TRAIN.DATA_SOURCES", "[]");
  EXPECT_THAT(Run("knn").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.DATA.TRAIN.DATA_SOURCES is []")));
  EXPECT_EQ(feature_calls_, 0);
}

TEST_F(EvaluationEnginesTest, StoppedEvaluation_HasNoResults) {
  SaveRandomCheckpoint();
  Set("NEAREST_NEIGHBOR.BASELINES", "[untrained]");
  Set("NEAREST_NEIGHBOR.SAVE_PREDICTIONS", "True");
  for (const char* engine : {"knn", "linear_eval"}) {
    // In the features of the trained network, after those of a baseline: its own are complete by then.
    Restart();
    stop_at_call_ = 9;
    Set("LINEAR_EVAL.BASELINES", "[untrained]");
    ASSERT_OK_AND_ASSIGN(const EngineReport report, Run(engine));
    EXPECT_TRUE(report.stopped) << engine;
    EXPECT_THAT(report.summary, HasSubstr("nothing is written")) << engine;
    EXPECT_TRUE(results_.entries().empty()) << engine;
    EXPECT_FALSE(PosixFileSystem().Exists(directory_ + "/kNN_all_output_predictions.npy"));
  }
}

// RunIsBuilding tells the handler of signals: the first one ends the process there (ssl/tools/signals.h).
TEST_F(EvaluationEnginesTest, DataAreOpened_WhereAStopEndsAtOnce) {
  SaveRandomCheckpoint();
  RunProgress progress;
  std::vector<std::string> phases;
  ASSERT_OK(registries_.datasets.Register("watched", [&](const ConfigNode& split, const BuildContext& context) {
    phases.push_back(progress.phase);
    return MakeSyntheticDataset(split, context);
  }));
  Set("DATA.TRAIN.DATA_SOURCES", "[watched]");
  Set("DATA.TEST.DATA_SOURCES", "[watched]");
  for (const char* engine : {"knn", "linear_eval", "extract_features", "extract_label_predictions"}) {
    phases.clear();
    progress.phase = "evaluating";
    ASSERT_OK(Run(engine, &progress).status()) << engine;
    EXPECT_THAT(phases, ElementsAre("building", "building")) << engine;
    EXPECT_EQ(progress.phase, "evaluating") << engine;
  }
  // A signal that came while the phase was still another one.
  phases.clear();
  stop_->Request(kStopTerminate);
  for (const char* engine : {"knn", "linear_eval", "extract_features", "extract_label_predictions", "full_tune"}) {
    ASSERT_OK_AND_ASSIGN(const EngineReport report, Run(engine, &progress));
    EXPECT_TRUE(report.stopped) << engine;
  }
  EXPECT_THAT(phases, IsEmpty());
}

// A host's own: what lies in `folder` is found below "store:" and nowhere else.
class StoreFileSystem : public FaultFileSystem {
 public:
  explicit StoreFileSystem(std::string folder)
      : FaultFileSystem(PosixFileSystem(), folder), folder_(std::move(folder)) {}
  absl::StatusOr<MappedFile> Map(const std::string& path) override { return FaultFileSystem::Map(Real(path)); }
  absl::StatusOr<std::string> Read(const std::string& path) override { return FaultFileSystem::Read(Real(path)); }
  bool Exists(const std::string& path) override { return FaultFileSystem::Exists(Real(path)); }
  bool IsDirectory(const std::string& path) override { return FaultFileSystem::IsDirectory(Real(path)); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    return FaultFileSystem::List(Real(path));
  }

 private:
  std::string Real(const std::string& path) const { return absl::StrReplaceAll(path, {{"store:", folder_ + "/"}}); }
  const std::string folder_;
};

TEST_F(EvaluationEnginesTest, ExtractedFiles_AreReadThroughTheRunsFileSystem) {
  SaveRandomCheckpoint();
  Set("EXTRACT_FEATURES.LAYERS", "[all]");
  ASSERT_OK(Run("extract_features").status());
  StoreFileSystem store(directory_);
  file_system_ = &store;
  Set("NEAREST_NEIGHBOR.FEATURES.PATH", "'store:features'");
  EXPECT_OK(Run("knn").status());
}

TEST_F(EvaluationEnginesTest, WeightsThatAreNotFinite_AreNamed) {
  SaveCheckpoint(NAN);
  for (const char* engine : {"knn", "linear_eval", "extract_features", "extract_label_predictions"}) {
    EXPECT_THAT(
        Run(engine).status(),
        StatusIs(absl::StatusCode::kDataLoss,
                 HasSubstr("step_7/model.safetensors: holds infinite values or NaN: trunk.weight (256 of 256 values)")))
        << engine;
  }
}

TEST_F(EvaluationEnginesTest, FeaturesThatAreNotFinite_AreNamed) {
  SaveCheckpoint(3e38);  // each weight is finite, their sum is not
  EXPECT_THAT(Run("knn").status(), StatusIs(absl::StatusCode::kOutOfRange,
                                            HasSubstr("trained network, features of TRAIN: layer 'all' of sample 0")));
}

TEST_F(EvaluationEnginesTest, Evaluation_WritesNothingIntoTheRunDirectory) {
  SaveRandomCheckpoint();
  Set("NEAREST_NEIGHBOR.BASELINES", "[raw_pixels, untrained]");
  FaultFileSystem files(PosixFileSystem(), directory_);
  file_system_ = &files;
  ASSERT_OK(Run("knn").status());
  ASSERT_OK(Run("linear_eval").status());
  EXPECT_EQ(files.calls(), 0);
}

TEST_F(EvaluationEnginesTest, ExtractedFiles_AreComparedByTheNamesOfTheirClasses) {
  SaveRandomCheckpoint();
  Set("EXTRACT_FEATURES.LAYERS", "[all]");
  ASSERT_OK(Run("extract_features").status());
  const std::string features = directory_ + "/features";
  Set("NEAREST_NEIGHBOR.FEATURES.PATH", features);
  ASSERT_OK(Run("knn").status());
  const double right = Result("knn.trained");
  // The same targets mean other classes of the training set.
  ASSERT_OK(WriteClassNames(features, "train", {"ant", "bee", "cat", "dog"}, PosixFileSystem()));
  ASSERT_OK(WriteClassNames(features, "test", {"bee", "cat", "dog", "ant"}, PosixFileSystem()));
  ASSERT_OK(Run("knn").status());
  EXPECT_NE(Result("knn.trained"), right);
  ASSERT_OK(WriteClassNames(features, "test", {"bee", "yak", "dog", "ant"}, PosixFileSystem()));
  EXPECT_THAT(Run("knn").status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(": yak (1)")));
  ASSERT_OK(WriteClassNames(features, "test", {"ant", "bee", "cat", "dog"}, PosixFileSystem()));
  ASSERT_OK(Run("knn").status());
  EXPECT_EQ(Result("knn.trained"), right);
}

TEST_F(EvaluationEnginesTest, LinearEval_ReportsRatesAndResults) {
  SaveRandomCheckpoint();
  Set("LINEAR_EVAL.BASELINES", "[raw_pixels]");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("linear_eval"));
  EXPECT_THAT(report.summary, HasSubstr("raw pixels           pixels             0.01 "));
  EXPECT_THAT(report.summary, HasSubstr("trained network      all                0.01 "));
  EXPECT_THAT(report.summary, Not(HasSubstr("untrained")));
  EXPECT_GT(Result("linear_eval.raw_pixels"), 0.25) << "stripes of four directions: chance is a quarter";

  Set("EXTRACT_FEATURES.LAYERS", "[all]");
  ASSERT_OK(Run("extract_features").status());
  const std::string features = directory_ + "/features";
  ASSERT_OK_AND_ASSIGN(const FeatureSet train, LoadFeatures(features, "train", "all", PosixFileSystem()));
  ASSERT_OK_AND_ASSIGN(const FeatureSet test, LoadFeatures(features, "test", "all", PosixFileSystem()));
  LinearProbeOptions options;
  options.num_epochs = 3;
  options.batch_size = 16;
  options.learning_rates = {0.01, 0.1};
  options.seed = 3;
  ASSERT_OK_AND_ASSIGN(
      const LinearProbeResult expected,
      TrainLinearProbe(train.features[0], train.labels, test.features[0], test.labels, options, StopToken()));
  EXPECT_EQ(Result("linear_eval.trained"), expected.top1);
  EXPECT_EQ(Result("linear_eval.trained_top5"), expected.top5);
  EXPECT_EQ(Result("linear_eval.trained_learning_rate"), options.learning_rates[expected.best]);
}

TEST_F(EvaluationEnginesTest, LinearEval_NeedsWeightsAndRates) {
  EXPECT_THAT(Run("linear_eval").status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no trained weights")));
  Set("LINEAR_EVAL.LEARNING_RATES", "[]");
  EXPECT_THAT(Run("linear_eval").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("LINEAR_EVAL.LEARNING_RATES is empty")));
}

TEST_F(EvaluationEnginesTest, LabelsThatAreMissing_AreNamed) {
  SaveRandomCheckpoint();
  Set("DATA.TEST.RANDOM_SYNTHETIC_LABELS", "0");
  EXPECT_THAT(Run("linear_eval").status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("TEST")));
}

}  // namespace
}  // namespace ssl
