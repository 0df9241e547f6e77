// SPDX-License-Identifier: Apache-2.0
//
// MODEL.HEAD: the list of heads, and settings that all heads share.
#ifndef SSL_MODELS_HEAD_SECTION_H_
#define SSL_MODELS_HEAD_SECTION_H_

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"

namespace ssl {

struct HeadSection : public Options {
  // [[name, {arguments}], ...]; an entry may itself be a list of such pairs, run one after the other.
  ConfigNode params = ConfigNode::List();
  double batchnorm_eps = 1e-5;
  double batchnorm_momentum = 0.1;
  double params_multiplier = 1.0;

  void VisitFields(FieldVisitor& visitor) override;
};

// config: the tree under "config". Defaults when it has no MODEL.HEAD.
absl::StatusOr<HeadSection> ReadHeadSection(const ConfigNode& config);

}  // namespace ssl

#endif  // SSL_MODELS_HEAD_SECTION_H_
