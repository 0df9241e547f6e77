// SPDX-License-Identifier: Apache-2.0
//
// MODEL: settings of the whole network. Trunk and heads have sections of their own.
#ifndef SSL_MODELS_MODEL_SECTION_H_
#define SSL_MODELS_MODEL_SECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/shared_options.h"

namespace ssl {

struct ModelSection : public ModelNameOptions {
  std::string input_type = "rgb";
  // [[input, [stage]], ...] or [[input, {feat_names: [stage], head_index: 0}], ...].
  ConfigNode multi_input_head_mapping = ConfigNode::List();
  bool single_pass_every_crop = false;
  std::vector<std::string> non_trainable_params;

  void VisitFields(FieldVisitor& visitor) override;
};

// Channels of the images that the trunk gets: one with INPUT_TYPE lab (lightness), else three. config: the tree under
// "config".
int64_t InputChannels(const ConfigNode& config);

struct TrunkSection : public Options {
  std::string name = "resnet";

  void VisitFields(FieldVisitor& visitor) override;
};

// MODEL.FEATURE_EVAL_SETTINGS: evaluation of features that are not trained any more.
struct FeatureEvalSection : public Options {
  bool eval_mode_on = false;
  bool freeze_trunk_only = false;
  bool freeze_trunk_and_head = false;
  bool extract_trunk_features_only = false;
  bool eval_trunk_and_head = false;
  bool assert_head_layer_shape_init = true;
  bool should_flatten_feats = true;
  // See ssl/models/feature_pool.h.
  ConfigNode linear_eval_feat_pool_ops_map = ConfigNode::List();

  void VisitFields(FieldVisitor& visitor) override;
};

// MODEL.SYNC_BN_CONFIG.
struct SyncBatchNormSection : public Options {
  bool convert_bn_to_sync_bn = false;
  std::string sync_bn_type = "pytorch";
  int64_t group_size = -1;

  void VisitFields(FieldVisitor& visitor) override;
};

}  // namespace ssl

#endif  // SSL_MODELS_MODEL_SECTION_H_
