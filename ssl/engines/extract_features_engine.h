// SPDX-License-Identifier: Apache-2.0
//
// engine_name=extract_features: writes features of DATA.TRAIN and DATA.TEST, whichever are configured, as .npy files
// (ssl/engines/feature_files.h), in evaluation mode, both with DATA.TEST's transforms; what the configuration leaves
// open follows from the training run (evaluation_plan.h). Layers: EXTRACT_FEATURES.LAYERS; without it
// MODEL.FEATURE_EVAL_SETTINGS.LINEAR_EVAL_FEAT_POOL_OPS_MAP; without that the trunk's last stage (feature_layers.h).
// A stopped or failed extraction leaves no files; one without trained weights is refused, as other evaluations are.
// Results: {"extract_features": {"directory": path, "layers": [...], "train_samples": n, "test_samples": n,
// "broken_images": as broken_images_results.h has them}}.
#ifndef SSL_ENGINES_EXTRACT_FEATURES_ENGINE_H_
#define SSL_ENGINES_EXTRACT_FEATURES_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/engines/engine.h"

namespace ssl {

// The section EXTRACT_FEATURES. Keys are VISSL's, LAYERS is ours.
struct ExtractFeaturesOptions : Options {
  std::string output_dir;  // "": <run directory>/features
  int64_t chunk_threshold = -1;
  bool map_features_to_img_name = false;  // not supported
  std::vector<std::string> layers;
  void VisitFields(FieldVisitor& visitor) override;
};

absl::StatusOr<std::unique_ptr<Engine>> MakeExtractFeaturesEngine(const ConfigNode& config,
                                                                  const BuildContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_EXTRACT_FEATURES_ENGINE_H_
