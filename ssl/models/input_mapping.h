// SPDX-License-Identifier: Apache-2.0
//
// MODEL.MULTI_INPUT_HEAD_MAPPING: the stage and the head of each named input of a batch. VISSL's two forms:
//
//   MULTI_INPUT_HEAD_MAPPING: [["images", ["res5avg"]], ["patches", ["res5avg"]]]     # input i: head min(i, last)
//   MULTI_INPUT_HEAD_MAPPING: [["images", {feat_names: ["res5avg"], head_index: 1}]]
#ifndef SSL_MODELS_INPUT_MAPPING_H_
#define SSL_MODELS_INPUT_MAPPING_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/node.h"

namespace ssl {

struct MappedInput {
  std::string name;
  std::string stage;  // empty: the trunk's output
  size_t head = 0;
};

// stages: names that the trunk knows. InvalidArgument names file:line, what stands there and what was expected.
absl::StatusOr<std::vector<MappedInput>> ReadInputMapping(const ConfigNode& entries, size_t num_heads,
                                                          const std::vector<std::string>& stages);

}  // namespace ssl

#endif  // SSL_MODELS_INPUT_MAPPING_H_
