// SPDX-License-Identifier: Apache-2.0
//
// MODEL.HEAD.PARAMS: builds the heads of a model. An entry [name, {arguments}] is one head; a list of such pairs is one
// head, too: they run one after the other, each on the first output of the one before, and their tensors are named
// "<position>.<name>".
#ifndef SSL_MODELS_HEAD_LIST_H_
#define SSL_MODELS_HEAD_LIST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/node.h"
#include "ssl/models/head.h"

namespace ssl {

struct BuildContext;

// The key of head `index`, for messages.
std::string HeadPath(size_t index);

// One head per item of `params`. InvalidArgument or NotFound name file:line.
absl::StatusOr<std::vector<std::unique_ptr<Head>>> BuildHeads(const ConfigNode& params, const BuildContext& context);

// InvalidArgument at `entry` when `head` takes another number of features than `giver` ("the trunk") gives.
absl::Status CheckHeadTakes(const Head& head, int64_t given, const std::string& giver, const ConfigNode& entry,
                            const std::string& path);

}  // namespace ssl

#endif  // SSL_MODELS_HEAD_LIST_H_
