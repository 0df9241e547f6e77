// SPDX-License-Identifier: Apache-2.0
//
// engine_name=knn: how well the features of the run's newest checkpoint tell the classes of DATA.TEST apart, by
// weighted nearest neighbours in DATA.TRAIN, beside the baselines "raw_pixels" and "untrained" (the same network as
// initialised). Both splits are read with DATA.TEST's transforms; or FEATURES.PATH has the trained network's features.
// Results: {"knn": {"raw_pixels": top-1, "untrained": top-1, "trained": top-1, "k": k}}, fractions. Of several TOPK,
// the first has these keys, a further one "trained_k<k>".
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

// The section NEAREST_NEIGHBOR. SIGMA, TOPK, L2_NORM_FEATS and FEATURES are VISSL's; the others are ours.
struct NearestNeighborOptions : Options {
  double sigma = 0.1;
  ConfigNode topk = ConfigNode::FromInt(200);  // a number, or a list of numbers
  bool l2_norm_feats = false;
  FeatureFilesSection features;
  std::vector<std::string> layers = {"res5avg"};
  std::vector<std::string> baselines;
  bool save_predictions = false;
  void VisitFields(FieldVisitor& visitor) override;
};

absl::StatusOr<std::unique_ptr<Engine>> MakeKnnEngine(const ConfigNode& config, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_KNN_ENGINE_H_
