// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/head_section.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"

namespace ssl {

void HeadSection::VisitFields(FieldVisitor& visitor) {
  visitor.Field("PARAMS", &params, Doc("Heads: [[name, {arguments}], ...]."));
  visitor.Field("BATCHNORM_EPS", &batchnorm_eps, Doc("Added to the variance in heads' batch norm.").AtLeast(0));
  visitor.Field("BATCHNORM_MOMENTUM", &batchnorm_momentum,
                Doc("Share of the newest batch in heads' running statistics.").Between(0, 1));
  visitor.Field("PARAMS_MULTIPLIER", &params_multiplier, Doc("Multiplies the initial parameters of mlp heads."));
}

absl::StatusOr<HeadSection> ReadHeadSection(const ConfigNode& config) {
  HeadSection section;
  if (const ConfigNode* node = config.FindPath("MODEL.HEAD")) {
    SSL_RETURN_IF_ERROR(ReadOptions(*node, "config.MODEL.HEAD", UnknownKeys::kIgnore, &section));
  }
  const std::vector<ConfigNode>& heads = section.params.items();
  if (heads.empty() || !heads[0].is_scalar()) return section;
  return absl::InvalidArgumentError(absl::StrCat(heads[0].location().ToString(), ": config.MODEL.HEAD.PARAMS is [",
                                                 heads[0].text(), ", ...], one head, expected a list of heads, [[",
                                                 heads[0].text(), ", {arguments}]]"));
}

}  // namespace ssl
