// SPDX-License-Identifier: Apache-2.0
//
// MODEL.AMP_PARAMS: in which number formats a run computes.
//
// VISSL knows apex's levels and PyTorch's own mixed precision; here both are LibTorch's autocast: parameters and
// normalisation stay float32, convolutions and matrix products run in the short format.
//   apex O0            float32
//   apex O1, O2        autocast (O2's float32 master weights are the parameters themselves)
//   apex O3            autocast without a dynamic loss scale
//   pytorch            autocast
// The short format is bfloat16 on the CPU, whose range needs no loss scaling, and float16 with a loss scale on a GPU,
// unless AMP_DTYPE (ours) names one.
#ifndef SSL_CORE_PRECISION_H_
#define SSL_CORE_PRECISION_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/autocast.h"

namespace ssl {

// MODEL.AMP_PARAMS.AMP_ARGS: apex's arguments.
struct AmpArguments : Options {
  std::string opt_level = "O1";
  ConfigNode loss_scale = ConfigNode::FromString("dynamic");
  ConfigNode keep_batchnorm_fp32;
  ConfigNode master_weights;
  void VisitFields(FieldVisitor& visitor) override;
};

struct AmpOptions : Options {
  bool use_amp = false;
  std::string type = "apex";
  std::string dtype;  // "": by device
  int64_t max_skipped_updates = 50;
  AmpArguments arguments;
  void VisitFields(FieldVisitor& visitor) override;
};

struct Precision {
  Autocast autocast = Autocast::kOff;
  bool scales_loss = false;          // float16 gradients need it
  double loss_scale = 0.0;           // constant; 0: dynamic
  int64_t max_skipped_updates = 50;  // in a row, for overflow, before the run ends in an error
};

// The AMP_DTYPE that an empty one stands for on `device`, a MACHINE.DEVICE.
std::string DefaultAmpDtype(absl::string_view device);

// device: MACHINE.DEVICE. node: the AMP_PARAMS section, for locations in messages.
absl::StatusOr<Precision> PrecisionOf(const AmpOptions& options, const std::string& device, const ConfigNode& node);

}  // namespace ssl

#endif  // SSL_CORE_PRECISION_H_
