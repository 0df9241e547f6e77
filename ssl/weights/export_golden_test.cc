// SPDX-License-Identifier: Apache-2.0
//
// The names of our models against those of VISSL, torchvision and timm.
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/core/model.h"
#include "ssl/core/state_dict.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/weights/export.h"
#include "ssl/weights/testing/model_builder.h"
#include "ssl/weights/weight_names.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

using Shapes = std::map<std::string, std::string>;  // name -> "64,3,7,7"

const ConfigNode& StateDict(const golden::Case& golden_case) {
  return golden_case.steps[0].outputs.at("state_dict").value;
}

Shapes ShapesOf(const std::vector<NamedTensor>& tensors) {
  Shapes shapes;
  for (const NamedTensor& entry : tensors) shapes[entry.name] = absl::StrJoin(entry.tensor.sizes(), ",");
  return shapes;
}

// torchvision's ResNets by the settings of our trunk.
std::string ResNetConfig(const std::string& name) {
  const std::map<std::string, std::string> configs = {
      {"resnet18", "{DEPTH: 18}"},
      {"resnet34", "{DEPTH: 34}"},
      {"resnet50", "{DEPTH: 50}"},
      {"resnet101", "{DEPTH: 101}"},
      {"resnet152", "{DEPTH: 152}"},
      {"wide_resnet50_2", "{DEPTH: 50, WIDTH_PER_GROUP: 128}"},
      {"resnext50_32x4d", "{DEPTH: 50, GROUPS: 32, WIDTH_PER_GROUP: 4}"},
      {"resnext101_32x8d", "{DEPTH: 101, GROUPS: 32, WIDTH_PER_GROUP: 8}"}};
  const auto found = configs.find(name);
  return found == configs.end() ? "" : found->second;
}

// A trunk with a linear classifier of 1000 classes exports exactly torchvision's state dict.
void CheckTorchvision(const golden::Case& golden_case) {
  const std::string name = golden_case.params.Find("name")->text();
  const std::string config = ResNetConfig(name);
  if (config.empty()) {
    EXPECT_EQ(name, "regnet_y_400mf");
    return;
  }
  Shapes expected;
  for (const ConfigNode& entry : StateDict(golden_case).items()) {
    expected[entry.items()[0].text()] = ShapeText(entry.items()[1]);
  }
  const std::string features = expected["fc.weight"].substr(5);
  const ConfigNode heads = Yaml(absl::StrCat("[[mlp, {dims: [", features, ", 1000]}]]"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, BuildTestModel(Yaml(config), heads));
  for (const std::string format : {"torchvision", "timm"}) {
    std::vector<std::string> left_out;
    ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> exported, ExportedTensors(*model, format, &left_out));
    EXPECT_EQ(ShapesOf(exported), expected);
    EXPECT_TRUE(left_out.empty());
  }
}

// The names of VISSL's trunk, and torchvision's for the same tensors, both lead to ours.
void CheckTrunk(const golden::Case& golden_case) {
  if (golden_case.params.Find("trunk")->text() != "resnet") return;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model,
                       BuildTestModel(*golden_case.params.Find("config"), ConfigNode::List()));
  Shapes from_vissl;
  Shapes from_torchvision;
  for (const ConfigNode& entry : StateDict(golden_case).items()) {
    const std::string shape = ShapeText(entry.items()[1]);
    from_vissl[ToModelNames({absl::StrCat("trunk.", entry.items()[0].text())})[0]] = shape;
    from_torchvision[ToModelNames({entry.items()[2].text()})[0]] = shape;
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*model));
  EXPECT_EQ(ShapesOf(state), from_vissl);
  EXPECT_EQ(ShapesOf(state), from_torchvision);
}

void CheckModel(const golden::Case& golden_case) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model,
                       BuildTestModel(*golden_case.params.Find("trunk_config"), *golden_case.params.Find("heads")));
  std::vector<std::string> names;
  for (const ConfigNode& entry : StateDict(golden_case).items()) names.push_back(entry.items()[0].text());
  names = ToModelNames(names);
  Shapes expected;
  for (size_t i = 0; i < names.size(); ++i) {
    expected[names[i]] = ShapeText(StateDict(golden_case).items()[i].items()[1]);
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*model));
  EXPECT_EQ(ShapesOf(state), expected);
}

TEST(ExportGolden, NamesOfVisslAndTorchvisionMatch) {
  golden::RunCategory("models_names",
                      {{"model", &CheckModel}, {"torchvision", &CheckTorchvision}, {"trunk", &CheckTrunk}});
}

}  // namespace
}  // namespace ssl
