// SPDX-License-Identifier: Apache-2.0
//
// MODEL and MODEL.AMP_PARAMS: settings of the whole network. Trunk and heads have sections of their own.
#ifndef SSL_MODELS_MODEL_SECTION_H_
#define SSL_MODELS_MODEL_SECTION_H_

#include <string>
#include <vector>

#include "ssl/config/fields.h"
#include "ssl/config/node.h"

namespace ssl {

struct ModelSection : public Options {
  std::string base_model_name = "multi_input_output_model";
  std::string input_type = "rgb";
  bool single_pass_every_crop = false;
  std::vector<std::string> non_trainable_params;

  void VisitFields(FieldVisitor& visitor) override;
};

struct TrunkSection : public Options {
  std::string name = "resnet";

  void VisitFields(FieldVisitor& visitor) override;
};

// Read by the train step.
struct AmpSection : public Options {
  bool use_amp = false;
  std::string amp_type = "apex";
  ConfigNode amp_args = ConfigNode::Map();

  void VisitFields(FieldVisitor& visitor) override;
};

}  // namespace ssl

#endif  // SSL_MODELS_MODEL_SECTION_H_
