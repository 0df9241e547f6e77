// SPDX-License-Identifier: Apache-2.0
//
// A list of transforms as a configuration writes it:
//
//   - name: ImgPilGaussianBlur
//     p: 0.5
//     indices: [0, 2]     # optional, of any transform that treats views one by one: only these views
#ifndef SSL_DATA_TRANSFORMS_TRANSFORM_LIST_H_
#define SSL_DATA_TRANSFORMS_TRANSFORM_LIST_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/core/registries.h"
#include "ssl/data/transform.h"

namespace ssl {

// Builds the entries of `list` from the registry. place: what messages call the list, such as
// "run.yaml:7: config.DATA.TRAIN.TRANSFORMS".
absl::StatusOr<std::vector<std::unique_ptr<Transform>>> MakeTransforms(const ConfigNode& list, absl::string_view place,
                                                                       const BuildContext& context);

}  // namespace ssl

#endif  // SSL_DATA_TRANSFORMS_TRANSFORM_LIST_H_
