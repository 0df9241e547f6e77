// SPDX-License-Identifier: Apache-2.0
//
// Settings of the meters that follow from others.
#ifndef SSL_METERS_METERS_RESOLVER_H_
#define SSL_METERS_METERS_RESOLVER_H_

#include "absl/status/status.h"
#include "ssl/config/node.h"

namespace ssl {

// config: the tree under "config".
// - METERS.name is added to METERS.names, in which each name stands once.
// - When the model extracts features of a frozen trunk (EVAL_MODE_ON, FREEZE_TRUNK_ONLY or FREEZE_TRUNK_AND_HEAD, and a
//   LINEAR_EVAL_FEAT_POOL_OPS_MAP), each list meter has one output for each entry of the map, named as its layer.
// - With METERS.model_output_mask, HOOKS.CHECK_NAN becomes false: masked scores are infinite.
// InvalidArgument, naming file and line, for METERS.model_output_mask without a source in DATA.TEST and for
// HOOKS.EMA_MODEL.ENABLE_EMA_METERS without a meter.
absl::Status ResolveMeters(ConfigNode* config);

}  // namespace ssl

#endif  // SSL_METERS_METERS_RESOLVER_H_
