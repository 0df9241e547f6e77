// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/model_section.h"

namespace ssl {

void ModelSection::VisitFields(FieldVisitor& visitor) {
  visitor.Field("BASE_MODEL_NAME", &base_model_name, Doc("How trunk and heads are combined."));
  visitor.Field("INPUT_TYPE", &input_type, Doc("Order of the channels that the trunk gets.").OneOf({"rgb", "bgr"}));
  visitor.Field("SINGLE_PASS_EVERY_CROP", &single_pass_every_crop,
                Doc("One trunk pass per crop instead of one per resolution."));
  visitor.Field("NON_TRAINABLE_PARAMS", &non_trainable_params, Doc("Full names of parameters that stay as they are."));
}

void TrunkSection::VisitFields(FieldVisitor& visitor) { visitor.Field("NAME", &name, Doc("The trunk.")); }

void AmpSection::VisitFields(FieldVisitor& visitor) {
  visitor.Field("USE_AMP", &use_amp, Doc("Runs forward and loss in mixed precision (bfloat16 on the CPU)."));
  visitor.Field("AMP_TYPE", &amp_type,
                Doc("Accepted for VISSL's files; both mean autocast.").OneOf({"apex", "pytorch"}));
  visitor.Field("AMP_ARGS", &amp_args, Doc("Accepted for VISSL's files; has no effect."));
}

}  // namespace ssl
