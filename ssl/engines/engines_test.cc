// SPDX-License-Identifier: Apache-2.0
//
// Engines from a configuration to their files and figures, on synthetic pictures and a network of one matrix.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/stop_token.h"
#include "ssl/config/yaml.h"
#include "ssl/core/checkpoint_store.h"
#include "ssl/core/checkpointer.h"
#include "ssl/core/model.h"
#include "ssl/core/register_core.h"
#include "ssl/core/session.h"
#include "ssl/core/state_dict.h"
#include "ssl/data/register_data.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/evaluation_model.h"
#include "ssl/engines/feature_files.h"
#include "ssl/engines/register_engines.h"
#include "ssl/io/npy.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// 8x8 grey pictures times a matrix [64, 4]. Stage "half" has the first two columns; the heads give all of them.
class MatrixModel : public Model {
 public:
  MatrixModel() : weight_(at::randn({64, 4})) {}

  std::vector<at::Tensor> Forward(const std::vector<at::Tensor>& views) override {
    return {views[0].flatten(1).matmul(weight_)};
  }
  std::vector<at::Tensor> Features(const at::Tensor& images, const std::vector<FeatureRequest>& requests) override {
    std::vector<at::Tensor> stages;
    for (const FeatureRequest& request : requests) {
      const at::Tensor all = images.flatten(1).matmul(weight_);
      stages.push_back(request.name == "half" ? all.slice(1, 0, 2) : all);
    }
    return stages;
  }
  std::vector<std::string> feature_names() const override { return {"half", "all"}; }
  std::vector<NamedParameter> Parameters() override { return {{"trunk.weight", weight_, false}}; }
  void SetTraining(bool training) override {}
  void VisitState(StateVisitor& visitor) override { visitor.Tensor("trunk.weight", weight_); }

  at::Tensor weight_;
};

constexpr char kConfig[] = R"(
SEED_VALUE: 3
DATA:
  NUM_DATALOADER_WORKERS: 0
  TRAIN:
    DATA_SOURCES: [synthetic]
    DATASET_NAMES: [synthetic]
    DATA_LIMIT: 60
    DEFAULT_GRAY_IMG_SIZE: 8
    IMAGE_CHANNELS: 1
    RANDOM_SYNTHETIC_LABELS: 4
    BATCHSIZE_PER_REPLICA: 16
  TEST:
    SPLIT: test
    DATA_SOURCES: [synthetic]
    DATASET_NAMES: [synthetic]
    DATA_LIMIT: 20
    DEFAULT_GRAY_IMG_SIZE: 8
    IMAGE_CHANNELS: 1
    RANDOM_SYNTHETIC_LABELS: 4
    BATCHSIZE_PER_REPLICA: 16
    TRANSFORMS:
      - {name: ToTensor}
      - {name: Normalize, mean: [0.5], std: [0.25]}
NEAREST_NEIGHBOR: {TOPK: 5, L2_NORM_FEATS: True, LAYERS: [all]}
LINEAR_EVAL: {NUM_EPOCHS: 3, BATCH_SIZE: 16, LEARNING_RATES: [0.01, 0.1], LAYERS: [all]}
)";

class EnginesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(RegisterCore(&registries_));
    ASSERT_OK(RegisterData(&registries_));
    ASSERT_OK(RegisterEngines(&registries_));
    ASSERT_OK(registries_.models.Register("multi_input_output_model", [](const ConfigNode&, const BuildContext&) {
      return absl::StatusOr<std::unique_ptr<Model>>(std::make_unique<MatrixModel>());
    }));

    ASSERT_OK_AND_ASSIGN(config_, ParseYaml(kConfig, "test.yaml", nullptr));
    ASSERT_OK_AND_ASSIGN(config_, ResolveConfig(config_, registries_));
  }

  void SaveCheckpoint(const at::Tensor& weight) {
    MatrixModel model;
    model.weight_ = weight;
    CheckpointStore store({directory_ + "/checkpoints", 2, ""}, PosixFileSystem(), *communicator_);
    ASSERT_OK(store.Open());
    ASSERT_OK(store.Save(7, {{kModelFile, CollectState(model).value()}}));
  }
  // All weights are `value`.
  void SaveCheckpoint(double value) { SaveCheckpoint(at::full({64, 4}, value, at::kFloat)); }
  void SaveRandomCheckpoint() { SaveCheckpoint(at::randn({64, 4}, at::detail::createCPUGenerator(1), at::kFloat)); }

  void Set(const std::string& path, const std::string& yaml) {
    config_.SetPath(path, ParseYaml(yaml, "override.yaml", nullptr).value());
  }

  EngineContext Context() {
    return {config_, registries_, *communicator_, stop_, PosixFileSystem(), directory_, results_};
  }

  absl::StatusOr<EngineReport> Run(const std::string& name) {
    const BuildContext build{config_, registries_, *communicator_, 3, directory_, 0};
    absl::StatusOr<std::unique_ptr<Engine>> engine = registries_.engines.Make(name, config_, build);
    if (!engine.ok()) return engine.status();
    EngineContext context = Context();
    return (*engine)->Run(context);
  }

  double Result(const std::string& path) {
    const ConfigNode* node = results_.FindPath(path);
    return node != nullptr ? node->AsDouble().value_or(-1.0) : -2.0;
  }

  const std::string directory_ = MakeTempDir("engines");
  const std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  Registries registries_;
  ConfigNode config_;
  ConfigNode results_ = ConfigNode::Map();
  StopToken stop_;
};

TEST_F(EnginesTest, EvaluationModel_TakesTheCheckpointBeforeTheParamsFile) {
  registries_.initialize_weights = [](Model& model, const BuildContext&) {
    static_cast<MatrixModel&>(model).weight_.fill_(9.0);
    return absl::OkStatus();
  };
  Set("MODEL.WEIGHTS_INIT.PARAMS_FILE", "other.pth");
  EngineContext context = Context();
  ASSERT_OK_AND_ASSIGN(EvaluationModel network, MakeEvaluationModel(context, EvaluationWeights::kTrained));
  EXPECT_EQ(network.weights, "other.pth");
  EXPECT_FALSE(network.from_checkpoint);
  EXPECT_EQ(static_cast<MatrixModel&>(*network.model).weight_[0][0].item<double>(), 9.0);
  SaveCheckpoint(4.0);
  ASSERT_OK_AND_ASSIGN(network, MakeEvaluationModel(context, EvaluationWeights::kTrained));
  EXPECT_EQ(network.weights, "checkpoint of iteration 7");
  EXPECT_TRUE(network.from_checkpoint);
  EXPECT_EQ(static_cast<MatrixModel&>(*network.model).weight_[0][0].item<double>(), 4.0);
}

TEST_F(EnginesTest, EvaluationModel_WithoutWeights) {
  EngineContext context = Context();
  const std::string problem = absl::StrCat("no trained weights: neither ", directory_,
                                           "/checkpoints nor config.MODEL.WEIGHTS_INIT.PARAMS_FILE");
  EXPECT_THAT(MakeEvaluationModel(context, EvaluationWeights::kTrained).status(),
              StatusIs(absl::StatusCode::kNotFound, problem));
  ASSERT_OK_AND_ASSIGN(const EvaluationModel first, MakeEvaluationModel(context, EvaluationWeights::kInitial));
  ASSERT_OK_AND_ASSIGN(const EvaluationModel second,
                       MakeEvaluationModel(context, EvaluationWeights::kTrainedOrInitial));
  EXPECT_EQ(second.weights, "random weights");
  EXPECT_TRUE(
      at::equal(static_cast<MatrixModel&>(*first.model).weight_, static_cast<MatrixModel&>(*second.model).weight_));
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

TEST_F(EnginesTest, ExtractFeatures_WithoutWeightsAndLayers_WritesTheHeadsOutput) {
  Set("EXTRACT_FEATURES.OUTPUT_DIR", directory_ + "/elsewhere/deep");
  Set("DATA.TRAIN.DATA_SOURCES", "[]");
  ASSERT_OK(Run("extract_features").status());
  ASSERT_OK_AND_ASSIGN(const FeatureSet test,
                       LoadFeatures(directory_ + "/elsewhere/deep", "test", "heads", PosixFileSystem()));
  EXPECT_EQ(test.features[0].sizes(), at::IntArrayRef({20, 4}));
  EXPECT_EQ(PosixFileSystem().List(directory_ + "/elsewhere/deep")->size(), 3u);
}

TEST_F(EnginesTest, ExtractFeatures_StoppedLeavesNoFiles) {
  SaveCheckpoint(0.5);
  ASSERT_OK(Run("extract_features").status());
  stop_.Request(kStopTerminate);
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("extract_features"));
  EXPECT_TRUE(report.stopped);
  EXPECT_TRUE(FeatureFileLayers(directory_ + "/features", "train", PosixFileSystem())->empty());
}

TEST_F(EnginesTest, ExtractFeatures_FilesByPicture_AreRefused) {
  Set("EXTRACT_FEATURES.MAP_FEATURES_TO_IMG_NAME", "True");
  EXPECT_THAT(Run("extract_features").status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("override.yaml:1: config.EXTRACT_FEATURES.MAP_FEATURES_TO_IMG_NAME is true")));
}

TEST_F(EnginesTest, Knn_HasOneRowForEachSubject) {
  SaveRandomCheckpoint();
  Set("NEAREST_NEIGHBOR.BASELINES", "[raw_pixels, untrained]");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("knn"));
  EXPECT_THAT(report.summary, HasSubstr("(cosine kNN, k=5, T=0.1, all)\nraw pixels "));
  EXPECT_THAT(report.summary, HasSubstr("untrained network "));
  for (const char* subject : {"raw_pixels", "untrained", "trained"}) {
    EXPECT_GT(Result(absl::StrCat("knn.", subject)), 0.0) << subject;
  }
  EXPECT_EQ(Result("knn.k"), 5);
}

TEST_F(EnginesTest, Knn_OnARunWithIndicesAsLabels_TakesTheLabelsOfTheData) {
  SaveRandomCheckpoint();
  ASSERT_OK(Run("knn").status());
  const double with_labels = Result("knn.trained");
  Set("DATA.TRAIN.LABEL_TYPE", "sample_index");
  results_ = ConfigNode::Map();
  ASSERT_OK(Run("knn").status());
  EXPECT_EQ(Result("knn.trained"), with_labels);
}

TEST_F(EnginesTest, Knn_OnExtractedFiles_GivesTheSame) {
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

TEST_F(EnginesTest, Knn_SeveralK_AndLayersByThemselves) {
  SaveRandomCheckpoint();
  Set("EXTRACT_FEATURES.LAYERS", "[half, all]");
  ASSERT_OK(Run("extract_features").status());
  Set("NEAREST_NEIGHBOR.FEATURES.PATH", directory_ + "/features");
  Set("NEAREST_NEIGHBOR.LAYERS", "[]");
  Set("NEAREST_NEIGHBOR.TOPK", "[3, 7]");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("knn"));
  for (const char* key : {"all", "all_k7", "half", "half_k7"}) {
    EXPECT_GE(Result(absl::StrCat("knn.trained.", key)), 0.0) << key;
  }
  EXPECT_THAT(report.summary, HasSubstr("half   k=7"));
}

TEST_F(EnginesTest, Knn_SavesPredictionsOnRequestOnly) {
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

TEST_F(EnginesTest, Knn_WrongSettings_AreNamed) {
  Set("NEAREST_NEIGHBOR.TOPK", "[5, none]");
  EXPECT_THAT(Run("knn").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("override.yaml:1: config.NEAREST_NEIGHBOR.TOPK is a list, expected a number")));
  Set("NEAREST_NEIGHBOR.TOPK", "5");
  Set("NEAREST_NEIGHBOR.BASELINES", "[raw_pixel]");
  EXPECT_THAT(Run("knn").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("did you mean 'raw_pixels'?")));
}

TEST_F(EnginesTest, LinearEval_ReportsRatesAndResults) {
  SaveRandomCheckpoint();
  Set("LINEAR_EVAL.BASELINES", "[raw_pixels]");
  ASSERT_OK_AND_ASSIGN(const EngineReport report, Run("linear_eval"));
  EXPECT_THAT(report.summary, HasSubstr("raw pixels           pixels             0.01 "));
  EXPECT_THAT(report.summary, HasSubstr("trained network      all                0.01 "));
  EXPECT_GE(Result("linear_eval.trained"), 0.0);
  EXPECT_GE(Result("linear_eval.trained_top5"), Result("linear_eval.trained"));
  EXPECT_GT(Result("linear_eval.trained_learning_rate"), 0.0);
  EXPECT_GE(Result("linear_eval.raw_pixels"), 0.0);
  EXPECT_THAT(report.summary, Not(HasSubstr("untrained")));
}

TEST_F(EnginesTest, LinearEval_NeedsWeightsAndRates) {
  EXPECT_THAT(Run("linear_eval").status(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no trained weights")));
  Set("LINEAR_EVAL.LEARNING_RATES", "[]");
  EXPECT_THAT(Run("linear_eval").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("LINEAR_EVAL.LEARNING_RATES is empty")));
}

TEST_F(EnginesTest, LabelsThatAreMissing_AreNamed) {
  SaveRandomCheckpoint();
  Set("DATA.TEST.RANDOM_SYNTHETIC_LABELS", "0");
  EXPECT_THAT(Run("linear_eval").status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("TEST")));
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

}  // namespace
}  // namespace ssl
