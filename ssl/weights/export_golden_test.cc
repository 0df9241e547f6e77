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
#include "absl/strings/str_split.h"
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
  return golden_case.steps[0].Expected("state_dict").value;
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
      {"wide_resnet101_2", "{DEPTH: 101, WIDTH_PER_GROUP: 128}"},
      {"resnext101_32x8d", "{DEPTH: 101, GROUPS: 32, WIDTH_PER_GROUP: 8}"},
      {"resnext101_64x4d", "{DEPTH: 101, GROUPS: 64, WIDTH_PER_GROUP: 4}"}};
  const auto found = configs.find(name);
  return found == configs.end() ? "" : found->second;
}

// Of one entry: its name, its shape, and more in cases of a trunk.
std::string Column(const ConfigNode& entry, size_t column) {
  if (column >= entry.items().size()) {
    ADD_FAILURE() << "an entry of state_dict has no column " << column;
    return "";
  }
  const ConfigNode& value = entry.items()[column];
  return value.is_list() ? ShapeText(value) : value.text();
}

// Our models that these names and shapes are compared with are ResNets.
std::string LimitOf(const golden::Case& golden_case) {
  if (golden_case.op == "torchvision") {
    return ResNetConfig(golden_case.Text("name")).empty() ? "no ResNet" : "";
  }
  if (golden_case.Text("trunk") != "resnet") return "no ResNet";
  const std::string head = golden_case.op == "model" ? UnknownHead(golden_case.Param("heads")) : "";
  return head.empty() ? "" : absl::StrCat("no head ", head);
}

// A trunk with a linear classifier exports exactly torchvision's state dict.
void CheckTorchvision(const golden::Case& golden_case) {
  Shapes expected;
  for (const ConfigNode& entry : StateDict(golden_case).items()) expected[Column(entry, 0)] = Column(entry, 1);
  const std::vector<std::string> classifier = absl::StrSplit(expected["fc.weight"], ',');
  ASSERT_EQ(classifier.size(), 2u) << "fc.weight has shape " << expected["fc.weight"];
  const ConfigNode heads = Yaml(absl::StrCat("[[mlp, {dims: [", classifier[1], ", ", classifier[0], "]}]]"));
  const std::string config = ResNetConfig(golden_case.Text("name"));
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
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model,
                       BuildTestModel(golden_case.Param("config"), ConfigNode::List()));
  Shapes from_vissl;
  Shapes from_torchvision;
  for (const ConfigNode& entry : StateDict(golden_case).items()) {
    const std::string shape = Column(entry, 1);
    from_vissl[ToModelNames({absl::StrCat("trunk.", Column(entry, 0))})[0]] = shape;
    from_torchvision[ToModelNames({Column(entry, 2)})[0]] = shape;
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*model));
  EXPECT_EQ(ShapesOf(state), from_vissl);
  EXPECT_EQ(ShapesOf(state), from_torchvision);
}

void CheckModel(const golden::Case& golden_case) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model,
                       BuildTestModel(golden_case.Param("trunk_config"), golden_case.Param("heads")));
  std::vector<std::string> names;
  for (const ConfigNode& entry : StateDict(golden_case).items()) names.push_back(Column(entry, 0));
  names = ToModelNames(names);
  Shapes expected;
  for (size_t i = 0; i < names.size(); ++i) {
    expected[names[i]] = Column(StateDict(golden_case).items()[i], 1);
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*model));
  EXPECT_EQ(ShapesOf(state), expected);
}

TEST(ExportGolden, NamesOfVisslAndTorchvisionMatch) {
  golden::RunCategory("models_names",
                      {{"model", &CheckModel}, {"torchvision", &CheckTorchvision}, {"trunk", &CheckTrunk}}, {},
                      &LimitOf);
}

}  // namespace
}  // namespace ssl
