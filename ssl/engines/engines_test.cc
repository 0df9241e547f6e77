// SPDX-License-Identifier: Apache-2.0
//
// Engines that write files, and the network that all of them take, on synthetic images and a network of one matrix.
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/core/method.h"
#include "ssl/core/model.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/evaluation_model.h"
#include "ssl/engines/feature_files.h"
#include "ssl/engines/feature_staging.h"
#include "ssl/engines/testing/matrix_run.h"
#include "ssl/io/atomic_file.h"
#include "ssl/io/file_system.h"
#include "ssl/io/npy.h"
#include "ssl/io/safetensors.h"
#include "ssl/testing/status_matchers.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class EnginesTest : public MatrixRun {};

// Self-supervised: its labels are none.
struct EmbeddingMethod : public Method {
  absl::Status ComputeLoss(StepContext&) override { return absl::OkStatus(); }
  void VisitState(StateVisitor&) override {}
};

TEST_F(EnginesTest, EvaluationModel_TakesTheCheckpointBeforeTheParamsFile) {
  registries_.initialize_weights = [](Model& model, const BuildContext&) {
    static_cast<MatrixModel&>(model).weight.fill_(9.0);
    return absl::OkStatus();
  };
  Set("MODEL.WEIGHTS_INIT.PARAMS_FILE", "other.pth");
  EngineContext context = Context();
  ASSERT_OK_AND_ASSIGN(EvaluationModel network, MakeEvaluationModel(context, EvaluationWeights::kTrained));
  EXPECT_EQ(network.weights, "other.pth");
  EXPECT_EQ(network.checkpoint, "");
  EXPECT_EQ(static_cast<MatrixModel&>(*network.model).weight[0][0].item<double>(), 9.0);
  SaveCheckpoint(4.0);
  ASSERT_OK_AND_ASSIGN(network, MakeEvaluationModel(context, EvaluationWeights::kTrained));
  EXPECT_EQ(network.weights, "checkpoint of iteration 7");
  EXPECT_EQ(network.checkpoint, directory_ + "/checkpoints/step_7");
  EXPECT_EQ(static_cast<MatrixModel&>(*network.model).weight[0][0].item<double>(), 4.0);
}

TEST_F(EnginesTest, EvaluationModel_WithoutWeights) {
  EngineContext context = Context();
  const std::string problem = absl::StrCat("no trained weights: neither ", directory_,
                                           "/checkpoints nor config.MODEL.WEIGHTS_INIT.PARAMS_FILE");
  EXPECT_THAT(MakeEvaluationModel(context, EvaluationWeights::kTrained).status(),
              StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr(problem), HasSubstr("; train first"))));
  ASSERT_OK_AND_ASSIGN(const EvaluationModel first, MakeEvaluationModel(context, EvaluationWeights::kInitial));
  ASSERT_OK_AND_ASSIGN(const EvaluationModel second, MakeEvaluationModel(context, EvaluationWeights::kInitial));
  EXPECT_EQ(second.weights, "random weights");
  EXPECT_TRUE(
      at::equal(static_cast<MatrixModel&>(*first.model).weight, static_cast<MatrixModel&>(*second.model).weight));
}

TEST_F(EnginesTest, EvaluationModel_DamagedCheckpointIsAnErrorOfItsOwn) {
  SaveCheckpoint(1.0);
  ASSERT_OK((*PosixFileSystem().OpenAppend(directory_ + "/checkpoints/step_7/model.safetensors"))->Append("x"));
  EngineContext context = Context();
  EXPECT_THAT(MakeEvaluationModel(context, EvaluationWeights::kTrained).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("step_7")));
}

TEST_F(EnginesTest, ExtractFeatures_WritesBothSplitsInOrder) {
  SaveCheckpoint(0.5);
  Set("EXTRACT_FEATURES.LAYERS", "[half, all]");
  Set("EXTRACT_FEATURES.CHUNK_THRESHOLD", "20");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("extract_features"));
  EXPECT_FALSE(report.stopped);
  EXPECT_THAT(report.summary, HasSubstr("rank0_chunk1_train_half_features.npy             [28, 2]"));
  const std::string features = directory_ + "/features";
  ASSERT_OK_AND_ASSIGN(const FeatureSet train, LoadFeatures(features, "train", "all", PosixFileSystem()));
  EXPECT_EQ(train.features[0].sizes(), at::IntArrayRef({60, 4}));
  EXPECT_EQ(train.labels[6].item<int64_t>(), 2);
  // All weights are equal, so all columns are.
  EXPECT_TRUE(at::equal(train.features[0].select(1, 0), train.features[0].select(1, 3)));
  ASSERT_OK_AND_ASSIGN(const FeatureSet test, LoadFeatures(features, "test", "half", PosixFileSystem()));
  EXPECT_EQ(test.features[0].sizes(), at::IntArrayRef({20, 2}));
  EXPECT_EQ(Result("extract_features.train_samples"), 60);
  EXPECT_EQ(Result("extract_features.test_samples"), 20);
}

// A typo in the path of the run, most likely: features of random weights would pass for the run's.
TEST_F(EnginesTest, ExtractFeatures_WithoutWeights_IsRefused) {
  EXPECT_THAT(Run("extract_features").status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no trained weights: neither " + directory_)));
  EXPECT_FALSE(PosixFileSystem().Exists(directory_ + "/features"));
}

TEST_F(EnginesTest, ExtractFeatures_WithoutLayers_WritesTheLastStage) {
  SaveCheckpoint(0.5);
  Set("EXTRACT_FEATURES.OUTPUT_DIR", directory_ + "/elsewhere/deep");
  Set("DATA.TRAIN.DATA_SOURCES", "[]");
  ASSERT_OK(Run("extract_features").status());
  ASSERT_OK_AND_ASSIGN(const FeatureSet test,
                       LoadFeatures(directory_ + "/elsewhere/deep", "test", "all", PosixFileSystem()));
  EXPECT_EQ(test.features[0].sizes(), at::IntArrayRef({20, 4}));
  EXPECT_THAT(*PosixFileSystem().List(directory_ + "/elsewhere/deep"),
              ElementsAre(".features.lock", "rank0_chunk0_test_all_features.npy", "rank0_chunk0_test_all_inds.npy",
                          "rank0_chunk0_test_all_targets.npy", "test_broken.json"));
}

TEST_F(EnginesTest, ExtractFeatures_WhereAnEvaluationIsConfigured_WritesTheHeadsOutput) {
  SaveCheckpoint(0.5);
  Set("MODEL.FEATURE_EVAL_SETTINGS.EVAL_MODE_ON", "True");
  ASSERT_OK(Run("extract_features").status());
  EXPECT_OK(LoadFeatures(directory_ + "/features", "train", "heads", PosixFileSystem()).status());
}

// 60 training samples make 4 batches, 20 test samples 2.
TEST_F(EnginesTest, ExtractFeatures_StoppedInEitherSplit_LeavesWhatWasThere) {
  SaveCheckpoint(0.5);
  ASSERT_OK(Run("extract_features").status());
  const std::vector<std::string> files = *PosixFileSystem().List(directory_ + "/features");
  ASSERT_OK_AND_ASSIGN(const std::string train, PosixFileSystem().Read(directory_ + "/features/" + files.back()));
  SaveCheckpoint(at::full({64, 4}, 2.0, at::kFloat), 8);
  for (const int call : {2, 5}) {
    Restart();
    stop_at_call_ = call;
    ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("extract_features"));
    EXPECT_TRUE(report.stopped);
    EXPECT_TRUE(results_.entries().empty());
    EXPECT_THAT(*PosixFileSystem().List(directory_ + "/features"), ElementsAreArray(files)) << "stopped at " << call;
    EXPECT_EQ(*PosixFileSystem().Read(directory_ + "/features/" + files.back()), train);
  }
}

TEST_F(EnginesTest, ExtractFeatures_WhileAnotherOneWrites_IsRefused) {
  SaveCheckpoint(0.5);
  ASSERT_OK(Run("extract_features").status());
  const std::string features = directory_ + "/features";
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<FeatureStaging> other,
                       FeatureStaging::Open(features, PosixFileSystem(), *communicator_));
  const std::vector<std::string> files = *PosixFileSystem().List(features);
  EXPECT_THAT(Run("extract_features").status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("another extraction writes to " + features), HasSubstr("is held by process"))));
  EXPECT_THAT(*PosixFileSystem().List(features), ElementsAreArray(files));
  other.reset();
  EXPECT_OK(Run("extract_features").status());
}

TEST_F(EnginesTest, ExtractFeatures_AfterAKill_RemovesWhatIsLeft) {
  SaveCheckpoint(0.5);
  ASSERT_OK(Run("extract_features").status());
  const std::vector<std::string> files = *PosixFileSystem().List(directory_ + "/features");
  const std::string left = directory_ + "/features/.features";
  ASSERT_OK(PosixFileSystem().CreateDirectories(left));
  ASSERT_OK(WriteFileDurably(PosixFileSystem(), left + "/rank0_chunk7_train_all_features.npy", "half"));
  ASSERT_OK(Run("extract_features").status());
  EXPECT_THAT(*PosixFileSystem().List(directory_ + "/features"), ElementsAreArray(files));
}

TEST_F(EnginesTest, ExtractFeatures_FilesByPicture_AreRefused) {
  Set("EXTRACT_FEATURES.MAP_FEATURES_TO_IMG_NAME", "True");
  EXPECT_THAT(Run("extract_features").status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("override.yaml:1: config.EXTRACT_FEATURES.MAP_FEATURES_TO_IMG_NAME is true")));
}

TEST_F(EnginesTest, LabelPredictions_WritesTheMostProbableClasses) {
  SaveRandomCheckpoint();
  Set("METERS.accuracy_list_meter.topk_values", "[1, 3]");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("extract_label_predictions"));
  const std::string prefix = directory_ + "/rank0_test_heads_";
  ASSERT_OK_AND_ASSIGN(const NpyArray predictions, ReadNpy(prefix + "predictions.npy"));
  EXPECT_EQ(predictions.shape, (std::vector<int64_t>{20, 3}));
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> classes, NpyInts(predictions));
  ASSERT_OK_AND_ASSIGN(const NpyArray scores_file, ReadNpy(prefix + "conf_scores.npy"));
  ASSERT_OK_AND_ASSIGN(const absl::Span<const float> scores, NpyValues<float>(scores_file));
  ASSERT_OK_AND_ASSIGN(const NpyArray targets, ReadNpy(prefix + "targets.npy"));
  EXPECT_EQ(targets.shape, (std::vector<int64_t>{20, 1}));
  double hits = 0;
  for (int i = 0; i < 20; ++i) {
    hits += classes[3 * i] == i % 4;
    EXPECT_GE(scores[3 * i], scores[3 * i + 1]);
    EXPECT_LE(scores[3 * i] + scores[3 * i + 1] + scores[3 * i + 2], 1.0f + 1e-5f);
  }
  EXPECT_DOUBLE_EQ(Result("extract_label_predictions.test.heads"), hits / 20.0);
  EXPECT_THAT(report.summary, HasSubstr("train  heads                60 "));
}

TEST_F(EnginesTest, LabelPredictions_OfAMethodWithoutLabels_AreRefused) {
  ASSERT_OK(registries_.methods.Register("embedding_loss", [](const ConfigNode&, const BuildContext&) {
    return absl::StatusOr<std::unique_ptr<Method>>(std::make_unique<EmbeddingMethod>());
  }));
  SaveRandomCheckpoint();
  Set("LOSS.name", "embedding_loss");
  EXPECT_THAT(Run("extract_label_predictions").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("override.yaml:1: config.LOSS.name is embedding_loss, whose heads give embed"),
                             HasSubstr("engine_name=extract_features"))));
}

TEST_F(EnginesTest, LabelPredictions_Stopped_WritesNothing) {
  SaveRandomCheckpoint();
  stop_->Request(kStopTerminate);
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("extract_label_predictions"));
  EXPECT_TRUE(report.stopped);
  EXPECT_TRUE(results_.entries().empty());
  EXPECT_FALSE(PosixFileSystem().Exists(directory_ + "/rank0_train_heads_predictions.npy"));
}

TEST_F(EnginesTest, FilesOfEngines_NeedADataSource) {
  SaveRandomCheckpoint();
  Set("DATA.TRAIN.DATA_SOURCES", "[]");
  Set("DATA.TEST.DATA_SOURCES", "[]");
  for (const char* engine : {"extract_features", "extract_label_predictions"}) {
    EXPECT_THAT(Run(engine).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("DATA_SOURCES are empty")));
  }
}

TEST_F(EnginesTest, Export_WritesTheTensorsAndSaysHowToOpenThem) {
  SaveCheckpoint(2.0);
  Set("EXPORT.FORMAT", "native");
  Set("EXPORT.FILES", "[weights.safetensors]");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("export"));
  const std::string path = directory_ + "/export/weights.safetensors";
  ASSERT_OK_AND_ASSIGN(const SafetensorsContent content, ReadSafetensors(path));
  ASSERT_EQ(content.tensors.size(), 1u);
  EXPECT_EQ(content.tensors[0].name, "trunk.weight");
  EXPECT_TRUE(at::equal(content.tensors[0].tensor, at::full({64, 4}, 2.0, at::kFloat)));
  EXPECT_THAT(report.summary, HasSubstr(absl::StrCat("state = safetensors.torch.load_file(\"", path, "\")")));
  EXPECT_THAT(report.summary, HasSubstr("checkpoint of iteration 7, names of native"));
  Set("EXPORT.FILES", "[]");
  EXPECT_THAT(Run("export").status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("EXPORT.FILES is empty")));
}

// What the data tell no labels of has no targets and no accuracies: those of an earlier extraction are of other rows.
TEST_F(EnginesTest, LabelPredictions_ReplaceAllOfAnEarlierExtraction) {
  SaveRandomCheckpoint();
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("extract_label_predictions"));
  EXPECT_THAT(report.summary, HasSubstr(" samples    top-1    95 % interval\n")) << "one k has one column";
  const std::string prefix = directory_ + "/rank0_test_";
  ASSERT_TRUE(PosixFileSystem().Exists(prefix + "heads_targets.npy"));
  ASSERT_OK(WriteFileDurably(PosixFileSystem(), prefix + "gone_targets.npy", "of a head that there was"));
  ASSERT_OK(WriteFileDurably(PosixFileSystem(), directory_ + "/rank1_test_heads_targets.npy", "of another rank"));
  ASSERT_GE(Result("extract_label_predictions.test.heads"), 0.0);
  Set("DATA.TRAIN.RANDOM_SYNTHETIC_LABELS", "0");
  Set("DATA.TEST.RANDOM_SYNTHETIC_LABELS", "0");
  ASSERT_OK(Run("extract_label_predictions").status());
  EXPECT_TRUE(PosixFileSystem().Exists(prefix + "heads_predictions.npy"));
  EXPECT_FALSE(PosixFileSystem().Exists(prefix + "heads_targets.npy"));
  EXPECT_FALSE(PosixFileSystem().Exists(prefix + "gone_targets.npy"));
  EXPECT_FALSE(PosixFileSystem().Exists(directory_ + "/rank1_test_heads_targets.npy"));
  EXPECT_EQ(results_.FindPath("extract_label_predictions.test"), nullptr);
}

TEST_F(EnginesTest, Results_SayWhichWeightsTheyAreOf) {
  SaveRandomCheckpoint();
  Set("NEAREST_NEIGHBOR.TOPK", "[3, 7]");
  Set("EXPORT.FORMAT", "native");
  Set("EXPORT.FILES", "[weights.safetensors]");
  for (const char* engine : {"knn", "linear_eval", "extract_features", "extract_label_predictions", "export"}) {
    ASSERT_OK(Run(engine).status());
    ASSERT_EQ(Result(absl::StrCat(engine, ".iteration")), 7) << engine;
    EXPECT_EQ(results_.FindPath(absl::StrCat(engine, ".weights"))->text(), "checkpoint of iteration 7") << engine;
  }
  SaveCheckpoint(at::full({64, 4}, 2.0, at::kFloat), 9);
  Set("NEAREST_NEIGHBOR.TOPK", "3");
  ASSERT_OK(Run("knn").status());
  EXPECT_EQ(Result("knn.iteration"), 9);
  EXPECT_EQ(results_.FindPath("knn.trained_k7"), nullptr) << "of the weights of before";
  EXPECT_EQ(Result("linear_eval.iteration"), 7);
  // Files of features say nothing about an iteration.
  Set("NEAREST_NEIGHBOR.FEATURES.PATH", directory_ + "/features");
  Set("NEAREST_NEIGHBOR.LAYERS", "[]");
  ASSERT_OK(Run("knn").status());
  EXPECT_EQ(results_.FindPath("knn.iteration"), nullptr);
  EXPECT_EQ(results_.FindPath("knn.weights")->text(), absl::StrCat("features in ", directory_, "/features"));
}

}  // namespace
}  // namespace ssl
