// SPDX-License-Identifier: Apache-2.0
//
// Files written by torch.save in Python, and the names in VISSL's checkpoints, against our reader and our models.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "ssl/config/node.h"
#include "ssl/core/model.h"
#include "ssl/core/state_dict.h"
#include "ssl/io/mapped_tensor.h"
#include "ssl/io/torch_file.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/weights/testing/model_builder.h"
#include "ssl/weights/weight_names.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

using Kind = TorchValue::Kind;

// A StatusOr that holds `value`.
MATCHER_P(IsOkAndHolds, value, "holds " + ::testing::PrintToString(value)) { return arg.ok() && *arg == value; }

// Every leaf of the tree under its dotted path.
void Flatten(const TorchValue& value, const std::string& path, std::map<std::string, const TorchValue*>* leaves) {
  const auto child = [&path](const std::string& key) { return path.empty() ? key : absl::StrCat(path, ".", key); };
  if (value.kind == Kind::kList) {
    for (size_t i = 0; i < value.items.size(); ++i) Flatten(*value.items[i], child(absl::StrCat(i)), leaves);
  } else if (value.kind == Kind::kDict) {
    for (size_t i = 0; i < value.items.size(); i += 2) {
      const TorchValue& key = *value.items[i];
      const std::string text = key.kind == Kind::kString ? std::string(key.text) : absl::StrCat(key.integer);
      Flatten(*value.items[i + 1], child(text), leaves);
    }
  } else {
    (*leaves)[path] = &value;
  }
}

// The reference gives 16-bit floats as float32, and bools as bytes.
at::ScalarType ReferenceType(at::ScalarType type) {
  if (type == at::kHalf || type == at::kBFloat16) return at::kFloat;
  return type == at::kBool ? at::kByte : type;
}

void ExpectScalar(const TorchValue& value, const ConfigNode& expected, const std::string& name) {
  switch (value.kind) {
    case Kind::kNull:
      EXPECT_TRUE(expected.is_null()) << name;
      break;
    case Kind::kBool:
      EXPECT_THAT(expected.AsBool(), IsOkAndHolds(value.integer == 1)) << name;
      break;
    case Kind::kInt:
      EXPECT_THAT(expected.AsInt(), IsOkAndHolds(value.integer)) << name;
      break;
    case Kind::kDouble:
      EXPECT_THAT(expected.AsDouble(), IsOkAndHolds(value.number)) << name;
      break;
    default:
      EXPECT_EQ(expected.text(), value.text) << name;
  }
}

void CheckTorchFile(const golden::Case& golden_case) {
  const std::string path = absl::StrCat(golden::Directory(), "/", golden_case.Text("file"));
  ASSERT_OK_AND_ASSIGN(const TorchFile file, ReadTorchFile(path));
  std::map<std::string, const TorchValue*> leaves;
  Flatten(*file.root, "", &leaves);
  size_t compared = 0;
  for (const auto& [name, expected] : golden_case.steps[0].outputs) {
    if (expected.kind != golden::Output::Kind::kTensor) continue;
    ASSERT_EQ(leaves.count(name), 1u) << name;
    ASSERT_EQ(leaves[name]->kind, Kind::kTensor) << name;
    const at::Tensor read = ViewTorchTensor(*leaves[name]->tensor, file.owner);
    EXPECT_EQ(expected.tensor.scalar_type(), ReferenceType(read.scalar_type())) << name;
    EXPECT_TRUE(golden::MatchesExactly(read, expected)) << name;
    ++compared;
  }
  const auto scalars = golden_case.steps[0].outputs.find("scalars");
  if (scalars != golden_case.steps[0].outputs.end()) {
    for (const auto& [name, expected] : scalars->second.value.entries()) {
      ASSERT_EQ(leaves.count(name), 1u) << name;
      ExpectScalar(*leaves[name], expected, name);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0u);
}

// "classy_state_dict.base_model.model.trunk|_feature_blocks.conv1.weight" is trunk.conv1.weight of our model.
std::string ToModelName(const std::string& name) { return ToModelNames({name})[0]; }

// Of a ResNet, from the names of its state.
ConfigNode TrunkOf(const std::vector<std::string>& names) {
  const std::set<std::string> present(names.begin(), names.end());
  const auto has = [&present](absl::string_view name) {
    return present.count(absl::StrCat("trunk.", name, ".conv1.weight")) > 0;
  };
  const bool bottleneck = present.count("trunk.layer1.0.conv3.weight") > 0;
  int64_t depth = bottleneck ? 50 : 18;
  if (has("layer3.5")) depth = bottleneck ? 50 : 34;
  if (has("layer3.22")) depth = 101;
  if (has("layer3.35")) depth = has("layer2.23") ? 200 : 152;
  ConfigNode trunk = ConfigNode::Map();
  trunk.Set("DEPTH", ConfigNode::FromInt(depth));
  return trunk;
}

void CheckCheckpointKeys(const golden::Case& golden_case) {
  std::vector<std::string> names;
  std::map<std::string, std::string> shapes;
  for (const ConfigNode& entry : golden_case.steps[0].Expected("keys").value.items()) {
    ASSERT_GE(entry.items().size(), 2u);
    const std::vector<std::string> path_and_key = absl::StrSplit(entry.items()[0].text(), '|');
    const std::vector<std::string> path = absl::StrSplit(path_and_key[0], '.');
    if (path.size() < 4 || path[1] != "base_model" || path_and_key.size() < 2) continue;
    names.push_back(absl::StrCat(path.back(), ".", path_and_key[1]));
    shapes[ToModelName(names.back())] = ShapeText(entry.items()[1]);
  }
  names = ToModelNames(names);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, BuildTestModel(TrunkOf(names), golden_case.Param("heads")));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*model));
  std::set<std::string> ours;
  for (const NamedTensor& tensor : state) {
    ours.insert(tensor.name);
    EXPECT_EQ(shapes[tensor.name], absl::StrJoin(tensor.tensor.sizes(), ",")) << tensor.name;
  }
  EXPECT_EQ(ours, std::set<std::string>(names.begin(), names.end()));
}

std::string LimitOf(const golden::Case& golden_case) {
  const std::string head = golden_case.op == "checkpoint_keys" ? UnknownHead(golden_case.Param("heads")) : "";
  return head.empty() ? "" : absl::StrCat("no head ", head);
}

TEST(CheckpointGolden, FilesOfTorchSaveAndNamesOfVisslMatch) {
  golden::RunCategory("checkpoint", {{"checkpoint_keys", &CheckCheckpointKeys}, {"torch_file", &CheckTorchFile}}, {},
                      &LimitOf);
}

}  // namespace
}  // namespace ssl
