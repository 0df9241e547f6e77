// SPDX-License-Identifier: Apache-2.0
//
// Files written by torch.save in Python, and the names in VISSL's checkpoints, against our reader and our models.
#include <ATen/core/Tensor.h>

#include <cstdlib>
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

std::string GoldenDirectory() {
  const char* directory = std::getenv("SSL_GOLDEN_DIR");
  if (directory != nullptr) return directory;
  return absl::StrCat(std::getenv("TEST_SRCDIR"), "/", std::getenv("TEST_WORKSPACE"), "/tests/golden/data");
}

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
      EXPECT_EQ(*expected.AsBool(), value.integer == 1) << name;
      break;
    case Kind::kInt:
      EXPECT_EQ(*expected.AsInt(), value.integer) << name;
      break;
    case Kind::kDouble:
      EXPECT_EQ(*expected.AsDouble(), value.number) << name;
      break;
    default:
      EXPECT_EQ(expected.text(), value.text) << name;
  }
}

void CheckTorchFile(const golden::Case& golden_case) {
  const std::string path = absl::StrCat(GoldenDirectory(), "/", golden_case.params.Find("file")->text());
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
  for (const auto& [name, expected] : golden_case.steps[0].outputs.at("scalars").value.entries()) {
    ASSERT_EQ(leaves.count(name), 1u) << name;
    ExpectScalar(*leaves[name], expected, name);
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

// "classy_state_dict.base_model.model.trunk|_feature_blocks.conv1.weight" is trunk.conv1.weight of our model.
void CheckCheckpointKeys(const golden::Case& golden_case) {
  ConfigNode trunk = ConfigNode::Map();
  trunk.Set("DEPTH", ConfigNode::FromInt(18));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model, BuildTestModel(trunk, *golden_case.params.Find("heads")));
  std::vector<std::string> names;
  std::map<std::string, std::string> shapes;
  for (const ConfigNode& entry : golden_case.steps[0].outputs.at("keys").value.items()) {
    const std::vector<std::string> path_and_key = absl::StrSplit(entry.items()[0].text(), '|');
    const std::vector<std::string> path = absl::StrSplit(path_and_key[0], '.');
    if (path.size() < 4 || path[1] != "base_model") continue;
    names.push_back(absl::StrCat(path.back(), ".", path_and_key[1]));
    shapes[ToModelNames({names.back()})[0]] = ShapeText(entry.items()[1]);
  }
  names = ToModelNames(names);
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*model));
  std::set<std::string> ours;
  for (const NamedTensor& tensor : state) {
    ours.insert(tensor.name);
    EXPECT_EQ(shapes[tensor.name], absl::StrJoin(tensor.tensor.sizes(), ",")) << tensor.name;
  }
  EXPECT_EQ(ours, std::set<std::string>(names.begin(), names.end()));
}

TEST(CheckpointGolden, FilesOfTorchSaveAndNamesOfVisslMatch) {
  golden::RunCategory("checkpoint", {{"checkpoint_keys", &CheckCheckpointKeys}, {"torch_file", &CheckTorchFile}});
}

}  // namespace
}  // namespace ssl
