// SPDX-License-Identifier: Apache-2.0
//
// ResNet (arXiv 1512.03385) and ResNeXt (arXiv 1611.05431) trunks, MODEL.TRUNK.NAME: resnet.
//
// Parameters and buffers have torchvision's names ("conv1.weight", "layer1.0.downsample.1.running_var"), so its
// state dicts load as they are; VISSL's have "_feature_blocks." before them. Features: "conv1" (after ReLU), "res1"
// (after pooling), "res2" ... one per stage, the last stage pooled as "res5avg", which "flatten" names too.
//
//   ResNetOptions options;
//   options.depth = 18;
//   SSL_ASSIGN_OR_RETURN(std::unique_ptr<Trunk> trunk, MakeResNet(options, /*seed=*/0));
#ifndef SSL_MODELS_TRUNKS_RESNET_H_
#define SSL_MODELS_TRUNKS_RESNET_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/models/trunk.h"

namespace ssl {

struct Registries;

// Keys of MODEL.TRUNK.RESNETS. From STEM on they are ours; their defaults give VISSL's network.
struct ResNetOptions : public Options {
  int64_t depth = 50;
  double width_multiplier = 1.0;
  std::string norm = "BatchNorm";
  int64_t groupnorm_groups = 32;
  bool standardize_convolutions = false;
  int64_t groups = 1;
  int64_t width_per_group = 64;
  bool zero_init_residual = false;
  int64_t layer4_stride = 2;
  std::string stem = "imagenet";
  int64_t stem_stride = 0;
  bool max_pool = true;
  int64_t stages = 4;
  std::string init = "kaiming_uniform";
  int64_t input_channels = 3;  // no key: follows from MODEL.INPUT_TYPE

  void VisitFields(FieldVisitor& visitor) override;
};

// Initialised from `seed` alone. InvalidArgument when the options contradict each other.
absl::StatusOr<std::unique_ptr<Trunk>> MakeResNet(const ResNetOptions& options, int64_t seed);

// Adds the trunk "resnet" and the section MODEL.TRUNK.RESNETS.
absl::Status RegisterResNet(Registries* registries);

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_RESNET_H_
