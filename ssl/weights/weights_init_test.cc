// SPDX-License-Identifier: Apache-2.0
#include "ssl/weights/weights_init.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/registries.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/file_system.h"
#include "ssl/io/torch_writer.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/weights/testing/model_builder.h"

namespace ssl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A small ResNet with a linear head; every seed gives other weights.
std::unique_ptr<Model> MakeModel(int64_t seed, int64_t classes = 3) {
  auto model = BuildTestModel(Yaml("{DEPTH: 18, WIDTH_MULTIPLIER: 0.125}"),
                              Yaml(absl::StrCat("[[mlp, {dims: [64, ", classes, "]}]]")), seed);
  EXPECT_OK(model);
  return *std::move(model);
}

std::vector<NamedTensor> StateOf(Model& model) {
  auto state = CollectState(model);
  EXPECT_OK(state);
  return *std::move(state);
}

// How many tensors of the two models differ, of those whose names begin with `prefix` and that are learned.
int CountDifferent(Model& a, Model& b, absl::string_view prefix) {
  const std::vector<NamedTensor> left = StateOf(a);
  const std::vector<NamedTensor> right = StateOf(b);
  EXPECT_EQ(left.size(), right.size());
  int different = 0;
  for (size_t i = 0; i < left.size(); ++i) {
    if (!absl::StartsWith(left[i].name, prefix) || absl::StrContains(left[i].name, "num_batches_tracked")) continue;
    different += at::equal(left[i].tensor, right[i].tensor) ? 0 : 1;
  }
  return different;
}

// The model's weights under other names; names that become "" are left out.
std::string Save(Model& model, const std::function<std::string(const std::string&)>& rename) {
  std::vector<NamedTensor> tensors;
  for (NamedTensor& entry : StateOf(model)) {
    const std::string name = rename(entry.name);
    if (!name.empty()) tensors.push_back({name, std::move(entry.tensor)});
  }
  const std::string path = MakeTempDir("weights") + "/model.pth";
  EXPECT_OK(WriteTorchFile(PosixFileSystem(), path, tensors));
  return path;
}

std::string Same(const std::string& name) { return name; }

// Runs initialize_weights as a session does, with a section MODEL from YAML.
absl::Status Initialize(Model& model, const std::string& yaml) {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterWeights(&registries));
  ConfigNode config = registries.options.Defaults();
  config.Set("MODEL", Yaml(yaml));
  const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
  return registries.initialize_weights(model, BuildContext{config, registries, *alone});
}

absl::Status InitializeFrom(Model& model, const std::string& path, const std::string& more = "") {
  return Initialize(model, absl::StrCat("WEIGHTS_INIT:\n  PARAMS_FILE: ", path, "\n", more));
}

TEST(WeightsInit, WithoutAFileNothingHappens) {
  const auto model = MakeModel(1);
  const auto same = MakeModel(1);
  EXPECT_OK(Initialize(*model, "WEIGHTS_INIT: {PARAMS_FILE: ''}"));
  EXPECT_OK(Initialize(*model, "{}"));
  EXPECT_EQ(CountDifferent(*model, *same, ""), 0);
}

TEST(WeightsInit, WeightsThatAreNotFinite_AreRefused) {
  const auto from = MakeModel(1);
  for (const NamedTensor& entry : StateOf(*from)) {
    const bool chosen = entry.name == "trunk.layer1.0.conv2.weight";
    if (chosen) at::Tensor(entry.tensor).detach()[0][0][0].fill_(NAN);  // a row of a 3x3 kernel
  }
  const std::string path = Save(*from, &Same);
  const auto model = MakeModel(2);
  const auto before = MakeModel(2);
  EXPECT_THAT(
      InitializeFrom(*model, path),
      StatusIs(absl::StatusCode::kDataLoss,
               AllOf(HasSubstr(path), HasSubstr("3 of the 576 values of trunk.layer1.0.conv2.weight are not"))));
  EXPECT_EQ(CountDifferent(*model, *before, ""), 0) << "a refused file changes nothing";
}

TEST(WeightsInit, LoadsEveryNamingOfTheTrunk) {
  const auto from = MakeModel(1);
  const auto strip = [](const std::string& name) { return absl::StrReplaceAll(name, {{"trunk.", ""}}); };
  const std::vector<std::pair<std::string, std::function<std::string(const std::string&)>>> namings = {
      {"ours", &Same},
      {"VISSL",
       [](const std::string& name) {
         return absl::StrReplaceAll(name, {{"trunk.", "trunk._feature_blocks."}});
       }},
      {"VISSL, frozen",
       [](const std::string& name) {
         return absl::StrReplaceAll(name, {{"trunk.", "trunk.base_model._feature_blocks."}});
       }},
      {"torchvision",
       [strip](const std::string& name) { return absl::StartsWith(name, "trunk.") ? strip(name) : "fc" + name; }},
      {"DataParallel", [](const std::string& name) { return "module." + name; }},
  };
  for (const auto& [naming, rename] : namings) {
    SCOPED_TRACE(naming);
    const auto to = MakeModel(2);
    ASSERT_GT(CountDifferent(*from, *to, "trunk."), 0);
    EXPECT_OK(InitializeFrom(*to, Save(*from, rename)));
    EXPECT_EQ(CountDifferent(*from, *to, "trunk."), 0);
  }
}

TEST(WeightsInit, AppliesPrefixes) {
  const auto from = MakeModel(1);
  const auto to = MakeModel(2);
  const std::string path = Save(*from, [](const std::string& name) {
    return absl::StartsWith(name, "trunk.") ? "backbone." + name.substr(6) : "";
  });
  EXPECT_THAT(InitializeFrom(*to, path), StatusIs(absl::StatusCode::kInvalidArgument,
                                                  HasSubstr("test.yaml:2: config.MODEL.WEIGHTS_INIT.PARAMS_FILE: ")));
  EXPECT_THAT(InitializeFrom(*to, path),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 0 of the 100 tensors of the trunk; REMOVE_PREFIX: 'backbone.' (with an empty "
                                 "APPEND_PREFIX) would name 120 of them; the file has 120 tensors: "
                                 "'backbone.conv1.weight' (nearest: 'trunk.conv1.weight')")));
  EXPECT_OK(
      InitializeFrom(*to, path, "  REMOVE_PREFIX: backbone.\n  APPEND_PREFIX: trunk.base_model._feature_blocks.\n"));
  EXPECT_EQ(CountDifferent(*from, *to, "trunk."), 0);
}

// As MoCo, BYOL, MoCo v3 and DINO keep two encoders in one dictionary.
TEST(WeightsInit, NamesEveryEncoderOfTheFile) {
  const auto from = MakeModel(1);
  const auto to = MakeModel(2);
  const std::vector<std::pair<std::string, std::string>> pairs = {{"encoder_q.", "encoder_k."},
                                                                  {"online_network.", "average_network."},
                                                                  {"base_encoder.", "key_encoder."},
                                                                  {"student.backbone.", "model_ema.backbone."}};
  for (const auto& [trained, average] : pairs) {
    std::vector<NamedTensor> tensors;
    for (const NamedTensor& entry : StateOf(*from)) {
      if (!absl::StartsWith(entry.name, "trunk.")) continue;
      tensors.push_back({trained + entry.name.substr(6), entry.tensor});
      tensors.push_back({average + entry.name.substr(6), at::rand(entry.tensor.sizes())});
    }
    const std::string path = MakeTempDir("weights") + "/model.pth";
    ASSERT_OK(WriteTorchFile(PosixFileSystem(), path, tensors));
    EXPECT_THAT(
        InitializeFrom(*to, path).message(),
        HasSubstr(absl::StrCat("REMOVE_PREFIX: '", trained, "' (with an empty APPEND_PREFIX) would name 120 of ",
                               "them, or '", average, "' (with an empty APPEND_PREFIX) would name 120 of them; ",
                               "by its name '", average, "' is a moving average")));
    EXPECT_OK(InitializeFrom(*to, path, absl::StrCat("  REMOVE_PREFIX: ", trained, "\n")));
    EXPECT_EQ(CountDifferent(*from, *to, "trunk."), 0);
  }
}

// VISSL's files for linear evaluation and fine-tuning have APPEND_PREFIX, which its checkpoints ignore.
TEST(WeightsInit, PrefixesHaveNoEffectOnTheModelsOwnNames) {
  const auto from = MakeModel(1);
  const std::string path = Save(*from, &Same);
  for (const char* prefixes :
       {"  APPEND_PREFIX: trunk.\n", "  REMOVE_PREFIX: trunk.\n",
        "  APPEND_PREFIX: trunk.base_model._feature_blocks.\n", "  REMOVE_PREFIX: trunk.\n  APPEND_PREFIX: trunk.\n"}) {
    const auto to = MakeModel(2);
    EXPECT_OK(InitializeFrom(*to, path, prefixes));
    EXPECT_EQ(CountDifferent(*from, *to, ""), 0);
  }
  const std::string little =
      Save(*from, [](const std::string& name) { return absl::StrContains(name, "layer1") ? name : ""; });
  EXPECT_THAT(InitializeFrom(*MakeModel(2), little).message(),
              AllOf(HasSubstr("has 20 of the 100 tensors"), Not(HasSubstr("REMOVE_PREFIX"))));
}

TEST(WeightsInit, AnErrorChangesNothing) {
  const auto from = MakeModel(1);
  const auto to = MakeModel(2);
  const auto before = MakeModel(2);
  // The last tensor of the trunk has another shape.
  std::vector<NamedTensor> tensors = StateOf(*from);
  for (NamedTensor& entry : tensors) {
    if (entry.name == "trunk.layer4.1.bn2.weight") entry.tensor = at::rand({7});
  }
  const std::string path = MakeTempDir("weights") + "/model.pth";
  ASSERT_OK(WriteTorchFile(PosixFileSystem(), path, tensors));
  EXPECT_THAT(InitializeFrom(*to, path),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("trunk.layer4.1.bn2.weight is [7] in the file, [64] in the model")));
  EXPECT_EQ(CountDifferent(*before, *to, ""), 0);
}

TEST(WeightsInit, HalfOfATrunkIsAWarningLessIsAnError) {
  const auto from = MakeModel(1);
  const auto to = MakeModel(2);
  EXPECT_OK(InitializeFrom(
      *to, Save(*from, [](const std::string& name) { return absl::StrContains(name, "layer4") ? "" : name; })));
  EXPECT_GT(CountDifferent(*from, *to, "trunk.layer4."), 0);
  EXPECT_EQ(CountDifferent(*from, *to, "trunk.layer3."), 0);
  const std::string little =
      Save(*from, [](const std::string& name) { return absl::StrContains(name, "layer1") ? name : ""; });
  EXPECT_THAT(InitializeFrom(*to, little),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 20 of the 100 tensors of the trunk")));
}

TEST(WeightsInit, HeadsFollowTheEvaluationSettings) {
  const auto from = MakeModel(1);
  const std::string path = Save(*from, &Same);
  const auto differences = [&](const std::string& settings) {
    const auto to = MakeModel(2);
    EXPECT_OK(InitializeFrom(*to, path, absl::StrCat("FEATURE_EVAL_SETTINGS: {", settings, "}")));
    EXPECT_EQ(CountDifferent(*from, *to, "trunk."), 0);
    return CountDifferent(*from, *to, "heads.");
  };
  EXPECT_EQ(differences(""), 0);
  EXPECT_EQ(differences("EVAL_MODE_ON: True"), 2);
  EXPECT_EQ(differences("EVAL_MODE_ON: True, EVAL_TRUNK_AND_HEAD: True"), 0);
}

TEST(WeightsInit, HeadsOfAnotherShapeAreAnErrorUnlessAllowed) {
  const auto from = MakeModel(1, /*classes=*/5);
  const std::string path = Save(*from, &Same);
  const auto to = MakeModel(2);
  EXPECT_THAT(InitializeFrom(*to, path),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("heads.0.clf.0.weight is [5, 64] in the file, [3, 64] in the model")));
  EXPECT_OK(InitializeFrom(*to, path, "FEATURE_EVAL_SETTINGS: {ASSERT_HEAD_LAYER_SHAPE_INIT: False}"));
  EXPECT_OK(InitializeFrom(*to, path, "FEATURE_EVAL_SETTINGS: {EVAL_MODE_ON: True}"));
}

TEST(WeightsInit, SkippedLayersKeepTheirValues) {
  const auto from = MakeModel(1);
  const auto to = MakeModel(2);
  EXPECT_OK(InitializeFrom(*to, Save(*from, &Same), "  SKIP_LAYERS: [layer2, num_batches_tracked]\n"));
  EXPECT_GT(CountDifferent(*from, *to, "trunk.layer2."), 0);
  EXPECT_EQ(CountDifferent(*from, *to, "trunk.layer3."), 0);
}

TEST(WeightsInit, ConvertsDtypes) {
  const auto from = MakeModel(1);
  std::vector<NamedTensor> tensors = StateOf(*from);
  for (NamedTensor& entry : tensors) {
    if (entry.tensor.is_floating_point()) entry.tensor = entry.tensor.detach().to(at::kDouble);
  }
  const std::string path = MakeTempDir("weights") + "/model.pth";
  ASSERT_OK(WriteTorchFile(PosixFileSystem(), path, tensors));
  const auto to = MakeModel(2);
  EXPECT_OK(InitializeFrom(*to, path));
  EXPECT_EQ(CountDifferent(*from, *to, ""), 0);
  for (const NamedParameter& parameter : to->Parameters()) EXPECT_TRUE(parameter.value.requires_grad());
}

TEST(WeightsInit, ReportsWhatBecameOfTheWeights) {
  const auto from = MakeModel(1);
  const auto to = MakeModel(2);
  WeightsFile weights{"a.pth", StateOf(*from)};
  weights.tensors.pop_back();
  weights.tensors.push_back({"heads.7.clf.0.weight", at::rand({1})});
  ASSERT_OK_AND_ASSIGN(const WeightsReport report,
                       LoadWeights(weights, WeightsInitOptions(), HeadWeightRules(), to.get()));
  EXPECT_EQ(report.loaded.size(), 101u);
  EXPECT_EQ(report.missing, std::vector<std::string>{"heads.0.clf.0.bias"});
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"heads.7.clf.0.weight"});
  EXPECT_THAT(report.shape_mismatches, IsEmpty());
  EXPECT_EQ(report.ToString(),
            "weights of a.pth: 101 tensors loaded\n"
            "  not in the file, left as they were: 1: heads.0.clf.0.bias\n"
            "  in the file only, not used: 1: heads.7.clf.0.weight");
}

TEST(WeightsInit, NamesThatMeetAreAnError) {
  const auto to = MakeModel(2);
  const WeightsFile weights{"a.pth",
                            {{"trunk.conv1.weight", at::rand({1})}, {"trunk._feature_blocks.conv1.weight", {}}}};
  EXPECT_THAT(LoadWeights(weights, WeightsInitOptions(), HeadWeightRules(), to.get()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("are both trunk.conv1.weight of the model")));
}

TEST(WeightsInit, RefusesSettingsByPlace) {
  const auto model = MakeModel(1);
  EXPECT_THAT(InitializeFrom(*model, "https://host/a.pth"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a URL, expected a file: download it first")));
  EXPECT_THAT(InitializeFrom(*model, "/nowhere/a.pth"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("test.yaml:2: config.MODEL.WEIGHTS_INIT.PARAMS_FILE")));
  EXPECT_THAT(InitializeFrom(*model, "specify the model weights"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("test.yaml:2: config.MODEL.WEIGHTS_INIT.PARAMS_FILE is 'specify the model weights', "
                                 "which holds the place of a file; expected a file of weights")));
  EXPECT_THAT(InitializeFrom(*model, "a.pth", "  STATE_DICT_KEY_NAME: {a: b}\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("STATE_DICT_KEY_NAME is a map")));
  EXPECT_THAT(Initialize(*model, "WEIGHTS_INIT: {SKIP_LAYERS: {a: b}}"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("config.MODEL.WEIGHTS_INIT.SKIP_LAYERS")));
}

TEST(WeightsInit, RegistersOnce) {
  Registries registries;
  EXPECT_OK(RegisterWeights(&registries));
  EXPECT_OK(RegisterWeights(&registries));
  EXPECT_THAT(registries.options.Help("MODEL.WEIGHTS_INIT"), HasSubstr("STATE_DICT_KEY_NAME"));
}

}  // namespace
}  // namespace ssl
