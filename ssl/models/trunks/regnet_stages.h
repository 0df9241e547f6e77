// SPDX-License-Identifier: Apache-2.0
//
// The design space of RegNet (arXiv 2003.13678): a few numbers, and the stages that follow from them.
//
//   u_j = w_0 + w_a j,  s_j = round(log(u_j / w_0) / log(w_m)),  width_j = 8 round(w_0 w_m^(s_j) / 8)
//
// for block j; consecutive blocks of one width are a stage. Widths are then rounded so that groups divide them.
#ifndef SSL_MODELS_TRUNKS_REGNET_STAGES_H_
#define SSL_MODELS_TRUNKS_REGNET_STAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"

namespace ssl {

// Keys of MODEL.TRUNK.REGNET, ClassyVision's. With a preset's name ("regnet_y_16gf") the other keys are not read; with
// the name "anynet" the lists give the stages; without a name depth, w_0, w_a, w_m and group_width do.
struct RegNetOptions : public Options {
  std::string name;
  int64_t depth = 0;
  int64_t w_0 = 0;
  double w_a = 0.0;
  double w_m = 0.0;
  int64_t group_width = 0;
  double bottleneck_multiplier = 1.0;

  std::vector<int64_t> depths;
  std::vector<int64_t> widths;
  std::vector<int64_t> group_widths;
  std::vector<double> bottleneck_multipliers;
  std::vector<int64_t> strides;

  std::string stem_type = "simple_stem_in";
  int64_t stem_width = 32;
  std::string block_type = "res_bottleneck_block";
  std::string activation = "relu";
  bool use_se = true;
  double se_ratio = 0.25;
  double bn_epsilon = 1e-5;
  double bn_momentum = 0.1;

  int64_t input_channels = 3;  // no key: follows from MODEL.INPUT_TYPE

  void VisitFields(FieldVisitor& visitor) override;
};

struct RegNetStage {
  int64_t blocks = 0;
  int64_t width = 0;
  int64_t bottleneck_width = 0;  // of the 3x3 convolution
  int64_t groups = 1;
  int64_t stride = 2;
};

// Replaces a preset's name by its numbers. NotFound with the nearest name for an unknown one.
absl::StatusOr<RegNetOptions> ResolveRegNetPreset(const RegNetOptions& options);

// options: of ResolveRegNetPreset. InvalidArgument names the key that is missing or does not fit.
absl::StatusOr<std::vector<RegNetStage>> RegNetStages(const RegNetOptions& options);

}  // namespace ssl

#endif  // SSL_MODELS_TRUNKS_REGNET_STAGES_H_
