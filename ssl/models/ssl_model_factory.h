// SPDX-License-Identifier: Apache-2.0
//
// Builds an SslModel from a configuration.
#ifndef SSL_MODELS_SSL_MODEL_FACTORY_H_
#define SSL_MODELS_SSL_MODEL_FACTORY_H_

#include "absl/status/status.h"

namespace ssl {

struct Registries;

// Adds the model "multi_input_output_model" and the sections MODEL, MODEL.FEATURE_EVAL_SETTINGS, MODEL.FSDP_CONFIG,
// MODEL.HEAD, MODEL.SYNC_BN_CONFIG and MODEL.TRUNK. To make the model is collective: when a rank alone fails, as in a
// trunk of a host program, the others return Aborted with its message.
absl::Status RegisterSslModel(Registries* registries);

}  // namespace ssl

#endif  // SSL_MODELS_SSL_MODEL_FACTORY_H_
