// SPDX-License-Identifier: Apache-2.0
//
// Decides which parameters share a learning rate and a weight decay.
#ifndef SSL_CORE_PARAMETER_GROUPER_H_
#define SSL_CORE_PARAMETER_GROUPER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ssl/core/model.h"
#include "ssl/core/optimizer.h"

namespace ssl {

class ParameterGrouper {
 public:
  virtual ~ParameterGrouper() = default;

  // Every parameter lands in exactly one group; groups keep the order of `parameters`.
  virtual absl::StatusOr<std::vector<ParameterGroup>> Group(std::vector<NamedParameter> parameters) const = 0;
};

}  // namespace ssl

#endif  // SSL_CORE_PARAMETER_GROUPER_H_
