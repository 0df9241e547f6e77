// SPDX-License-Identifier: Apache-2.0
//
// Names and shapes of the state of trunks and of whole models: VISSL's, without "_feature_blocks.".
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "ssl/core/model.h"
#include "ssl/core/registries.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/models/register_models.h"
#include "ssl/models/trunk.h"
#include "ssl/testing/status_matchers.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

struct NamedShape {
  std::string name;
  std::vector<int64_t> shape;
};

void CheckState(const std::vector<NamedShape>& state, const golden::Case& golden_case) {
  const std::vector<ConfigNode>& expected = golden_case.steps[0].Expected("state_dict").value.items();
  ASSERT_EQ(state.size(), expected.size());
  for (size_t i = 0; i < state.size(); ++i) {
    ASSERT_GE(expected[i].items().size(), 2u);
    EXPECT_EQ(state[i].name, absl::StrReplaceAll(expected[i].items()[0].text(), {{"_feature_blocks.", ""}}));
    EXPECT_EQ(ConfigNode::FromInts(state[i].shape), expected[i].items()[1]) << state[i].name;
  }
}

// The section of a trunk that is no ResNet; "" for the options of one.
std::string SectionOf(const ConfigNode& trunk_config) {
  for (const char* section : {"REGNET", "VISION_TRANSFORMERS", "XCIT"}) {
    if (trunk_config.Find(section) != nullptr) return section;
  }
  return "";
}

// The MODEL section of a trunk of the case; its options are those of the trunk's own section, as VISSL's.
ConfigNode ModelNode(const std::string& trunk, const ConfigNode& trunk_config) {
  ConfigNode model = ConfigNode::Map();
  model.SetPath("TRUNK.NAME", ConfigNode::FromString(trunk));
  const std::string section = SectionOf(trunk_config);
  if (section.empty()) {
    model.SetPath("TRUNK.RESNETS", trunk_config);
  } else {
    model.SetPath(absl::StrCat("TRUNK.", section), *trunk_config.Find(section));
  }
  return model;
}

class ModelsNames : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(RegisterModels(&registries_)); }

  BuildContext Context(const ConfigNode& config) { return {config, registries_, *communicator_, /*seed=*/0, ""}; }

  void CheckTrunk(const golden::Case& golden_case) {
    const std::string name = golden_case.Text("trunk");
    const ConfigNode model = ModelNode(name, golden_case.Param("config"));
    const ConfigNode config = ConfigNode::Map();
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Trunk> trunk,
                         registries_.trunks.Make(name, *model.Find("TRUNK"), Context(config)));
    std::vector<NamedShape> state;
    int64_t parameters = 0;
    for (const ModelTensor& entry : trunk->Tensors()) {
      state.push_back({entry.name, entry.value.sizes().vec()});
      if (entry.role != TensorRole::kBuffer) parameters += entry.value.numel();
    }
    CheckState(state, golden_case);
    EXPECT_EQ(parameters, golden_case.steps[0].Expected("num_parameters").integer);
  }

  void CheckModel(const golden::Case& golden_case) {
    ConfigNode model = ModelNode(golden_case.Text("trunk"), golden_case.Param("trunk_config"));
    model.SetPath("HEAD.PARAMS", golden_case.Param("heads"));
    ConfigNode config = ConfigNode::Map();
    config.Set("MODEL", model);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> built,
                         registries_.models.Make("multi_input_output_model", model, Context(config)));
    ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> tensors, CollectState(*built));
    std::vector<NamedShape> state;
    for (const NamedTensor& entry : tensors) state.push_back({entry.name, entry.tensor.sizes().vec()});
    CheckState(state, golden_case);
    int64_t parameters = 0;
    for (const NamedParameter& parameter : built->Parameters()) parameters += parameter.value.numel();
    EXPECT_EQ(parameters, golden_case.steps[0].Expected("num_parameters").integer);
  }

  // What this program has no trunk or head for.
  std::string LimitOf(const golden::Case& golden_case) {
    const std::string& trunk = golden_case.Text("trunk");
    if (!registries_.trunks.Has(trunk)) return absl::StrCat("no trunk ", trunk);
    const bool is_model = golden_case.op == "model";
    if (trunk != "resnet" && SectionOf(golden_case.Param(is_model ? "trunk_config" : "config")).empty()) {
      return absl::StrCat("no section of trunk ", trunk);
    }
    if (golden_case.op != "model") return "";
    for (const ConfigNode& head : golden_case.Param("heads").items()) {
      const ConfigNode* const name = head.FindPath("0");
      if (name != nullptr && !registries_.heads.Has(name->text())) return absl::StrCat("no head ", name->text());
    }
    return "";
  }

  Registries registries_;
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
};

TEST_F(ModelsNames, AreVissls) {
  golden::RunCategory("models_names",
                      {{"trunk", [this](const golden::Case& golden_case) { CheckTrunk(golden_case); }},
                       {"model", [this](const golden::Case& golden_case) { CheckModel(golden_case); }}},
                      {"torchvision"}, [this](const golden::Case& golden_case) { return LimitOf(golden_case); });
}

}  // namespace
}  // namespace ssl
