// SPDX-License-Identifier: Apache-2.0
//
// What an evaluation after a training would find wrong is found by the check.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/builtins.h"
#include "ssl/check/check_config.h"
#include "ssl/config/compose.h"
#include "ssl/core/registries.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class EvaluationCheckTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterBuiltins(&registries_)); }

  std::vector<std::string> Mistakes(const std::string& engines, const std::string& token) {
    return MistakesOf({"config=test/swav_tiny", "engine_name=" + engines, token});
  }

  std::vector<std::string> MistakesOf(std::vector<std::string> tokens) {
    ComposeRequest request = MakeRunRequest(registries_);
    request.tokens = std::move(tokens);
    request.search_dirs = {"configs", "."};
    return CheckConfig(request, registries_).mistakes;
  }

  Registries registries_;
};

TEST_F(EvaluationCheckTest, MistakesOfData_Layers_AndMethod_AreFound) {
  EXPECT_THAT(Mistakes("[train,knn]", "config.NEAREST_NEIGHBOR.TOPK=100000"),
              ElementsAre(HasSubstr("command line:3: config.NEAREST_NEIGHBOR.TOPK is 100000, expected at most")));
  EXPECT_THAT(Mistakes("[train,knn]", "config.NEAREST_NEIGHBOR.LAYERS=[res9]"), ElementsAre(HasSubstr("res9")));
  for (const std::string engine : {"knn", "linear_eval", "full_tune"}) {
    for (const std::string split : {"TRAIN", "TEST"}) {
      EXPECT_THAT(Mistakes("[train," + engine + "]", "config.DATA." + split + ".RANDOM_SYNTHETIC_LABELS=0"),
                  ElementsAre(HasSubstr("config.DATA." + split + ".DATA_SOURCES [synthetic] has none")))
          << engine;
    }
  }
  EXPECT_THAT(Mistakes("[train,extract_label_predictions]", "config.SEED_VALUE=1"),
              ElementsAre(HasSubstr("config.LOSS.name is swav_loss, whose heads give embeddings")));
}

TEST_F(EvaluationCheckTest, LayersThatTheNetworkLacks_AreNamedWithKeyAndPlace) {
  for (const auto& [engine, section] :
       {std::pair("knn", "NEAREST_NEIGHBOR"), std::pair("linear_eval", "LINEAR_EVAL"),
        std::pair("neighbors", "NEIGHBORS"), std::pair("extract_features", "EXTRACT_FEATURES")}) {
    const std::string key = absl::StrCat("config.", section, ".LAYERS");
    EXPECT_THAT(
        Mistakes(absl::StrCat("[train,", engine, "]"), key + "=[res2,res9]"),
        ElementsAre(AllOf(StartsWith("command line:3: " + key + " has 'res9', expected stages of the network: "),
                          HasSubstr("did you mean 'res1'?"))));
  }
}

TEST_F(EvaluationCheckTest, FilesAndFoldersThatCannotBeWritten_AreFound) {
  EXPECT_THAT(
      Mistakes("[train,export]", "config.EXPORT.FILES=[model.pth,a.onnx]"),
      ElementsAre(HasSubstr("command line:3: config.EXPORT.FILES: file a.onnx: expected a name that ends with")));
  for (const auto& [engine, section] :
       {std::pair("export", "EXPORT"), std::pair("extract_features", "EXTRACT_FEATURES")}) {
    // Nothing can be made there, whatever its modes say.
    for (const std::string folder : {"/proc/no_folder", "/dev/null/below"}) {
      const std::string key = absl::StrCat("config.", section, ".OUTPUT_DIR");
      EXPECT_THAT(
          Mistakes(absl::StrCat("[train,", engine, "]"), absl::StrCat(key, "=", folder)),
          ElementsAre(HasSubstr(absl::StrCat("command line:3: ", key, " is ", folder, ", which cannot be written"))));
    }
  }
}

TEST_F(EvaluationCheckTest, FilesOfFeatures_AreLookedFor_UnlessTheCommandWritesThem) {
  const std::string path = "config.NEAREST_NEIGHBOR.FEATURES.PATH=";
  EXPECT_THAT(
      Mistakes("[train,knn]", path + "no_folder"),
      ElementsAre(HasSubstr("command line:3: config.NEAREST_NEIGHBOR.FEATURES.PATH is no_folder, and there is no")));
  EXPECT_THAT(Mistakes("[train,knn]", path + "configs"), ElementsAre(HasSubstr("has no features of train")));
  const std::string mine = MakeTempDir("features") + "/mine";
  const std::string extracts = "engine_name=[train,extract_features,knn]";
  EXPECT_THAT(MistakesOf({"config=test/swav_tiny", extracts, absl::StrCat(path, mine, "/../mine"),
                          absl::StrCat("config.EXTRACT_FEATURES.OUTPUT_DIR=", mine, "/")}),
              IsEmpty());
  EXPECT_THAT(MistakesOf({"config=test/swav_tiny", extracts, absl::StrCat(path, mine, "/other"),
                          absl::StrCat("config.EXTRACT_FEATURES.OUTPUT_DIR=", mine)}),
              ElementsAre(HasSubstr("there is no such folder")));
}

TEST_F(EvaluationCheckTest, ACheckpointThatTrainingDoesNotName_IsFound) {
  for (const std::string engine : {"knn", "neighbors", "export", "full_tune", "extract_features"}) {
    const std::string engines = absl::StrCat("[train,", engine, "]");
    EXPECT_THAT(Mistakes(engines, "config.CHECKPOINT.EVALUATE=best"),
                ElementsAre(AllOf(StartsWith("command line:3: config.CHECKPOINT.EVALUATE is 'best', and the training"),
                                  HasSubstr("config.HOOKS.BEST_CHECKPOINT.METRICS makes"))))
        << engine;
  }
  const std::string best = "config.HOOKS.BEST_CHECKPOINT.METRICS=[Training/loss_mean]";
  const std::string engines = "engine_name=[train,export]";
  EXPECT_THAT(MistakesOf({"config=test/swav_tiny", engines, best, "config.CHECKPOINT.EVALUATE=best"}), IsEmpty());
  EXPECT_THAT(MistakesOf({"config=test/swav_tiny", engines, best, "config.CHECKPOINT.EVALUATE=bset"}),
              ElementsAre(HasSubstr("did you mean 'best'?; names: best")));
  EXPECT_THAT(MistakesOf({"config=test/swav_tiny", engines, "config.CHECKPOINT.EVALUATE=best.mine",
                          "config.hooks=[{type: best_checkpoint, name: mine, kwargs: {METRICS: Training/loss_mean}}]"}),
              IsEmpty());
}

}  // namespace
}  // namespace ssl
