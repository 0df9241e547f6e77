// SPDX-License-Identifier: Apache-2.0
//
// What a configuration tells of the model's outputs before there is a model.
#ifndef SSL_CORE_HEAD_OUTPUTS_H_
#define SSL_CORE_HEAD_OUTPUTS_H_

#include <cstdint>

#include "ssl/config/node.h"

namespace ssl {

// The columns of the last head's output, by its `dims` in MODEL.HEAD.PARAMS; 0 when these do not tell. config: the
// tree under "config".
int64_t LastHeadOutputs(const ConfigNode& config);

}  // namespace ssl

#endif  // SSL_CORE_HEAD_OUTPUTS_H_
