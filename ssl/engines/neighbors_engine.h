// SPDX-License-Identifier: Apache-2.0
//
// engine_name=neighbors: which images the network finds alike, for people to look at; needs no labels. Queries are
// images of DATA.TEST, evenly spread over it, neighbours those of DATA.TRAIN; what the configuration leaves open, such
// as a test set, follows from the training run (evaluation_plan.h). Distances are 1 - cosine of the features, 0 ... 2.
//
//   <run directory>/neighbors.png             a row for each query: it, then its nearest neighbours with distances
//   <run directory>/neighbors_untrained.png   the same of the network as initialised, with BASELINES: [untrained]
//   <run directory>/neighbors.json            {"trained": [{"query", "neighbors": [{"image", "distance"}]}], ...,
//                                             "broken_images": as broken_images_results.h has them}
//
// Results: {"neighbors": {"queries", "trained": mean distance of the nearest, "untrained": ..., "broken_images": the
// same}}.
#ifndef SSL_ENGINES_NEIGHBORS_ENGINE_H_
#define SSL_ENGINES_NEIGHBORS_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/engines/engine.h"

namespace ssl {

// The section NEIGHBORS. Ours.
struct NeighborsOptions : Options {
  int64_t num_queries = 8;
  int64_t topk = 8;
  int64_t image_side = 96;
  std::vector<std::string> layers = {"res5avg"};
  std::vector<std::string> baselines = {"untrained"};
  void VisitFields(FieldVisitor& visitor) override;
};

absl::StatusOr<std::unique_ptr<Engine>> MakeNeighborsEngine(const ConfigNode& config, const BuildContext& context);

}  // namespace ssl

#endif  // SSL_ENGINES_NEIGHBORS_ENGINE_H_
