// SPDX-License-Identifier: Apache-2.0
//
// Names of weights in files of others, turned into the names of our models: "trunk.<name>" with torchvision's names
// for ResNets, and "heads.<i>.<name>". Pure functions, thread-safe.
//
//   VISSL         trunk._feature_blocks.conv1.weight              -> trunk.conv1.weight
//   VISSL, eval   trunk.base_model._feature_blocks.conv1.weight   -> trunk.conv1.weight
//   torchvision   conv1.weight  (and timm)                        -> trunk.conv1.weight
//   Hugging Face  resnet.embedder.embedder.convolution.weight     -> trunk.conv1.weight

#ifndef SSL_WEIGHTS_WEIGHT_NAMES_H_
#define SSL_WEIGHTS_WEIGHT_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ssl {

// Names keep their order. When no name begins with "trunk." or "heads.", all are taken for a trunk's.
std::vector<std::string> ToModelNames(const std::vector<std::string>& names);

// A name of a Hugging Face ResNet as torchvision's; other names as they are.
std::string FromHuggingFace(absl::string_view name);

}  // namespace ssl

#endif  // SSL_WEIGHTS_WEIGHT_NAMES_H_
