// SPDX-License-Identifier: Apache-2.0
//
// engine_name=knn: how well the features of the run's newest checkpoint tell the classes of DATA.TEST apart, by
// weighted nearest neighbours in DATA.TRAIN, beside the baselines "raw_pixels" and "untrained" (the same network as
// initialised). Both splits are read with DATA.TEST's transforms; or FEATURES.PATH has the trained network's features.
// What the configuration leaves open follows from the training run: evaluation_plan.h. A stopped evaluation has no
// results.
// Results: {"knn": {"raw_pixels": top-1, "untrained": top-1, "trained": top-1, "k": k}}, fractions. Of several TOPK,
// the first has these keys, a further one "trained_k<k>"; and "broken_images" (broken_images_results.h), which neither
// vote nor are predicted.
#ifndef SSL_ENGINES_KNN_ENGINE_H_
#define SSL_ENGINES_KNN_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/evaluation_subjects.h"

namespace ssl {

// The section NEAREST_NEIGHBOR. SIGMA, TOPK, L2_NORM_FEATS and FEATURES are VISSL's; the others are ours. "auto" is
// ours, too: what DINO evaluates with, 20 neighbours by cosine similarity at 0.07; VISSL's 200 by dot product at 0.1
// are meant for ImageNet, and its configurations name them.
struct NearestNeighborOptions : Options {
  ConfigNode sigma = ConfigNode::FromString("auto");          // a number, or auto
  ConfigNode topk = ConfigNode::FromString("auto");           // a number, a list of numbers, or auto
  ConfigNode l2_norm_feats = ConfigNode::FromString("auto");  // a boolean, or auto
  FeatureFilesSection features;
  std::vector<std::string> layers = {"res5avg"};
  std::vector<std::string> baselines = {kAutoBaselines};
  bool save_predictions = false;
  void VisitFields(FieldVisitor& visitor) override;
};

absl::StatusOr<std::unique_ptr<Engine>> MakeKnnEngine(const ConfigNode& config, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_KNN_ENGINE_H_
