// SPDX-License-Identifier: Apache-2.0
#include "ssl/weights/testing/model_builder.h"

#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/distributed/local_communicator.h"
#include "ssl/models/register_models.h"

namespace ssl {

ConfigNode Yaml(absl::string_view text) {
  std::vector<std::string> warnings;
  absl::StatusOr<ConfigNode> node = ParseYaml(text, "test.yaml", &warnings);
  EXPECT_TRUE(node.ok()) << node.status();
  return node.ok() ? *std::move(node) : ConfigNode();
}

absl::StatusOr<std::unique_ptr<Model>> BuildTestModel(const ConfigNode& resnet, const ConfigNode& heads, int64_t seed) {
  Registries registries;
  SSL_RETURN_IF_ERROR(RegisterModels(&registries));
  ConfigNode config = registries.options.Defaults();
  config.SetPath("MODEL.TRUNK.NAME", ConfigNode::FromString("resnet"));
  config.SetPath("MODEL.TRUNK.RESNETS", resnet);
  config.SetPath("MODEL.HEAD.PARAMS", heads);
  const std::unique_ptr<Communicator> alone = MakeLocalCommunicator();
  const BuildContext context{config, registries, *alone, seed};
  return registries.models.Make("multi_input_output_model", config.Section("MODEL"), context);
}

std::string UnknownHead(const ConfigNode& heads) {
  Registries registries;
  EXPECT_TRUE(RegisterModels(&registries).ok());
  for (const ConfigNode& head : heads.items()) {
    const ConfigNode* const name = head.FindPath("0");
    if (name == nullptr || !registries.heads.Has(name->text())) return name == nullptr ? "?" : name->text();
  }
  return "";
}

std::string ShapeText(const ConfigNode& sizes) {
  return absl::StrJoin(sizes.items(), ",",
                       [](std::string* text, const ConfigNode& size) { text->append(size.text()); });
}

}  // namespace ssl
