// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/model_section.h"

namespace ssl {

void ModelSection::VisitFields(FieldVisitor& visitor) {
  ModelNameOptions::VisitFields(visitor);
  visitor.Field(
      "INPUT_TYPE", &input_type,
      Doc("Channels that the trunk gets: as they are, reversed, or the first one only.").OneOf({"rgb", "bgr", "lab"}));
  visitor.Field("MULTI_INPUT_HEAD_MAPPING", &multi_input_head_mapping,
                Doc("Stage and head of each named input: [[input, [stage]], ...]."));
  visitor.Field("SINGLE_PASS_EVERY_CROP", &single_pass_every_crop,
                Doc("One trunk pass per crop instead of one per resolution."));
  visitor.Field("NON_TRAINABLE_PARAMS", &non_trainable_params, Doc("Full names of parameters that stay as they are."));
}

int64_t InputChannels(const ConfigNode& config) {
  const ConfigNode* const type = config.FindPath("MODEL.INPUT_TYPE");
  return type != nullptr && type->text() == "lab" ? 1 : 3;
}

void TrunkSection::VisitFields(FieldVisitor& visitor) { visitor.Field("NAME", &name, Doc("The trunk.")); }

void FeatureEvalSection::VisitFields(FieldVisitor& visitor) {
  visitor.Field("EVAL_MODE_ON", &eval_mode_on, Doc("Turns this section on."));
  visitor.Field("FREEZE_TRUNK_ONLY", &freeze_trunk_only, Doc("The trunk stays as it is; heads train."));
  visitor.Field("FREEZE_TRUNK_AND_HEAD", &freeze_trunk_and_head, Doc("Trunk and heads stay as they are."));
  visitor.Field("EXTRACT_TRUNK_FEATURES_ONLY", &extract_trunk_features_only, Doc("Leaves the heads out."));
  visitor.Field("EVAL_TRUNK_AND_HEAD", &eval_trunk_and_head, Doc("Initial weights are the heads', too."));
  visitor.Field("ASSERT_HEAD_LAYER_SHAPE_INIT", &assert_head_layer_shape_init,
                Doc("Initial weights of another shape than the head's are an error."));
  visitor.Field("SHOULD_FLATTEN_FEATS", &should_flatten_feats, Doc("Heads get [images, features]."));
  visitor.Field("LINEAR_EVAL_FEAT_POOL_OPS_MAP", &linear_eval_feat_pool_ops_map,
                Doc("Features of a frozen trunk: [[stage, [pool, [arguments]]], ...]."));
}

void SyncBatchNormSection::VisitFields(FieldVisitor& visitor) {
  visitor.Field("CONVERT_BN_TO_SYNC_BN", &convert_bn_to_sync_bn, Doc("Batch norm over several ranks (GROUP_SIZE)."));
  visitor.Field("SYNC_BN_TYPE", &sync_bn_type, Doc("apex demands groups that divide the ranks.").OneOf({"pytorch", "apex"}));
  visitor.Field("GROUP_SIZE", &group_size,
                Doc("Ranks that share statistics; -1: those of a node, 0: all.").AtLeast(-1));
}

}  // namespace ssl
