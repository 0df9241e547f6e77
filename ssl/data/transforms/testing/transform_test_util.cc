// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/transforms/testing/transform_test_util.h"

#include "ssl/config/node.h"
#include "ssl/config/yaml.h"
#include "ssl/core/registries.h"
#include "ssl/data/transforms/register_transforms.h"
#include "ssl/distributed/local_communicator.h"

namespace ssl {

absl::StatusOr<std::unique_ptr<Transform>> MakeTransform(absl::string_view entry) {
  const absl::StatusOr<ConfigNode> node = ParseYaml(entry, "run.yaml", nullptr);
  if (!node.ok()) return node.status();
  Registries registries;
  const absl::Status registered = RegisterTransforms(&registries);
  if (!registered.ok()) return registered;
  const std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  const ConfigNode config = ConfigNode::Map();
  return registries.transforms.Make(node->Find("name")->text(), *node, {config, registries, *communicator});
}

Sample OneImage(int height, int width, int channels, int first) {
  Sample sample;
  sample.ResetViews(1);
  uint8_t* pixels = sample.view(0).image.Allocate(height, width, channels);
  for (int64_t i = 0; i < sample.view(0).image.size_bytes(); ++i) pixels[i] = static_cast<uint8_t>(first + 7 * i);
  return sample;
}

absl::Status ApplyTransform(const Transform& transform, Sample* sample, uint64_t index) {
  TransformScratch scratch;
  const TransformContext context{/*seed=*/1, /*epoch=*/0, index, /*operation=*/0, scratch};
  return transform.Apply(context, sample);
}

}  // namespace ssl
