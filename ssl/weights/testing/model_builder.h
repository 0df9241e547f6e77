// SPDX-License-Identifier: Apache-2.0
//
// For tests: real models from a few settings.
#ifndef SSL_WEIGHTS_TESTING_MODEL_BUILDER_H_
#define SSL_WEIGHTS_TESTING_MODEL_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/core/model.h"

namespace ssl {

// A YAML text as if it stood in "test.yaml"; one that does not parse fails the test and gives null.
ConfigNode Yaml(absl::string_view text);

// resnet: the section MODEL.TRUNK.RESNETS. heads: MODEL.HEAD.PARAMS.
absl::StatusOr<std::unique_ptr<Model>> BuildTestModel(const ConfigNode& resnet, const ConfigNode& heads,
                                                      int64_t seed = 0);

// The first head of MODEL.HEAD.PARAMS that this program does not have; "" when it has all.
std::string UnknownHead(const ConfigNode& heads);

// [64, 3, 7, 7] as "64,3,7,7".
std::string ShapeText(const ConfigNode& sizes);

}  // namespace ssl

#endif  // SSL_WEIGHTS_TESTING_MODEL_BUILDER_H_
