// SPDX-License-Identifier: Apache-2.0
//
// What kNN and the linear probe compare: features of the trained network, beside the baselines "raw_pixels" and
// "untrained" (the same network as initialised).
#ifndef SSL_ENGINES_EVALUATION_SUBJECTS_H_
#define SSL_ENGINES_EVALUATION_SUBJECTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/core/model.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/feature_extraction.h"

namespace ssl {

// <section>.FEATURES
struct FeatureFilesSection : Options {
  std::string path;
  void VisitFields(FieldVisitor& visitor) override;
};

// From the keys LAYERS, BASELINES and FEATURES.PATH of an engine's section.
struct SubjectOptions {
  // Trunk stages; several are normalised and joined. Empty: each layer that the model or the files have, by itself.
  std::vector<std::string> layers;
  std::vector<std::string> baselines;
  // Extracted files of the trained network, instead of a run over the data.
  std::string features_path;
};

// Layer `layer` of one subject, of both splits: each `features` holds one tensor, [N, D].
struct SubjectFeatures {
  std::string name;   // key in results.json: "trained"
  std::string title;  // in tables: "trained network"
  std::string layer;  // "res4", "res4+res5avg", "pixels"
  FeatureSet train;
  FeatureSet test;
};

class EvaluationSubjects {
 public:
  // section: "NEAREST_NEIGHBOR", for messages. InvalidArgument, with the place, for an unknown baseline or a layer
  // that cannot be parsed.
  static absl::StatusOr<EvaluationSubjects> Create(SubjectOptions options, const std::string& section,
                                                   const ConfigNode& config);

  // Calls `evaluate` for each subject and layer, baselines first; one subject's features are in memory at a time.
  // Labels are class numbers, [N] int64, from 0. Cancelled when a stop is requested.
  absl::Status ForEach(EngineContext& context, absl::FunctionRef<absl::Status(const SubjectFeatures&)> evaluate) const;

  // "knn.trained", or with LAYERS empty, where there may be several, "knn.trained.res5".
  std::string ResultKey(const std::string& prefix, const SubjectFeatures& subject) const;

 private:
  EvaluationSubjects(SubjectOptions options, std::vector<FeatureRequest> requests);

  const SubjectOptions options_;
  const std::vector<FeatureRequest> requests_;  // what options_.layers says
};

}  // namespace ssl

#endif  // SSL_ENGINES_EVALUATION_SUBJECTS_H_
