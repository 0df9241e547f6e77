// SPDX-License-Identifier: Apache-2.0
//
// Files of timm's transformers: every tensor finds its place by its name.
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ssl/core/registries.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/io/file_system.h"
#include "ssl/io/torch_writer.h"
#include "ssl/models/register_models.h"
#include "ssl/testing/status_matchers.h"
#include "ssl/testing/temp_dir.h"
#include "ssl/weights/export.h"
#include "ssl/weights/weights_init.h"
#include "tests/golden/golden.h"

namespace ssl {
namespace {

// The case's weights as timm's or the authors' program saves them, under names that begin with `prefix`.
std::string SavedWeights(const golden::Case& golden_case, const std::string& prefix) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, value] : golden_case.inputs) tensors.push_back({prefix + name, value});
  tensors.push_back({prefix + "head.weight", at::zeros({10, 16})});
  const std::string path = MakeTempDir("transformer") + "/model.pth";
  EXPECT_OK(WriteTorchFile(PosixFileSystem(), path, tensors));
  return path;
}

// Of a model with the case's trunk alone, and weights from the file.
void CheckLoads(const golden::Case& golden_case, const std::string& trunk, const std::string& section,
                const std::string& prefix) {
  Registries registries;
  ASSERT_OK(RegisterModels(&registries));
  ASSERT_OK(RegisterWeights(&registries));
  ConfigNode config = registries.options.Defaults();
  config.SetPath("MODEL.TRUNK.NAME", ConfigNode::FromString(trunk));
  config.SetPath(absl::StrCat("MODEL.TRUNK.", section), golden_case.Param("config"));
  config.SetPath("MODEL.HEAD.PARAMS", ConfigNode::List());
  config.SetPath("MODEL.WEIGHTS_INIT.PARAMS_FILE", ConfigNode::FromString(SavedWeights(golden_case, prefix)));
  const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
  const BuildContext context{config, registries, *alone};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Model> model,
                       registries.models.Make("multi_input_output_model", config.Section("MODEL"), context));
  ASSERT_OK(registries.initialize_weights(*model, context));
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedTensor> state, CollectState(*model));
  size_t loaded = 0;
  for (const NamedTensor& entry : state) {
    if (absl::EndsWith(entry.name, "num_batches_tracked")) continue;
    EXPECT_TRUE(at::equal(entry.tensor, golden_case.Input(entry.name.substr(6)))) << entry.name;
    ++loaded;
  }
  EXPECT_EQ(loaded, golden_case.inputs.size());
  std::vector<std::string> left_out;
  const absl::StatusOr<std::vector<NamedTensor>> exported = ExportedTensors(*model, "timm", &left_out);
  ASSERT_EQ(exported.ok(), trunk == "vision_transformer") << "timm has other names for class attention";
  if (!exported.ok()) return;
  EXPECT_EQ(exported->size(), golden_case.inputs.size());
  for (const NamedTensor& entry : *exported) EXPECT_EQ(golden_case.inputs.count(entry.name), 1u) << entry.name;
}

void CheckCategory(const std::string& category, const std::string& section) {
  ASSERT_OK_AND_ASSIGN(const std::vector<golden::Case> cases, golden::ReadCategory(category, "tests/golden/timm"));
  for (const golden::Case& golden_case : cases) {
    SCOPED_TRACE(golden_case.name);
    for (const char* prefix : {"", "trunk.", "trunk.base_model."}) CheckLoads(golden_case, category, section, prefix);
  }
}

TEST(TransformerWeights, OfVisionTransformers) { CheckCategory("vision_transformer", "VISION_TRANSFORMERS"); }

TEST(TransformerWeights, OfXcits) { CheckCategory("xcit", "XCIT"); }

}  // namespace
}  // namespace ssl
