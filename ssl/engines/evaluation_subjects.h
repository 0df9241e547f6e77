// SPDX-License-Identifier: Apache-2.0
//
// What kNN and the linear probe compare: features of the trained network, beside the baselines "raw_pixels" and
// "untrained" (the same network as initialised).
#ifndef SSL_ENGINES_EVALUATION_SUBJECTS_H_
#define SSL_ENGINES_EVALUATION_SUBJECTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ssl/config/fields.h"
#include "ssl/config/node.h"
#include "ssl/core/model.h"
#include "ssl/engines/engine.h"
#include "ssl/engines/evaluation_plan.h"
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
  // "raw_pixels", "untrained"; or "auto": both where the evaluation follows from the training run
  // (evaluation_plan.h), none where the user described it or gives files.
  std::vector<std::string> baselines;
  // Extracted files of the trained network, instead of a run over the data.
  std::string features_path;
  // What the evaluation needs at least, and the key that says so: "run.yaml:3: config.NEAREST_NEIGHBOR.TOPK".
  int64_t min_train_samples = 1;
  std::string min_train_samples_place;
};

// The default of BASELINES.
inline constexpr char kAutoBaselines[] = "auto";

// Layer `layer` of one subject, of both splits: each `features` holds one tensor, [N, D].
struct SubjectFeatures {
  std::string name;   // key in results.json: "trained"
  std::string title;  // in tables: "trained network"
  std::string layer;  // "res4", "res4+res5avg", "pixels"
  FeatureSet train;
  FeatureSet test;
  EvaluatedWeights weights;  // of the trained network; else ""
};

// How ForEach has ended for the trained network, which it found no error for.
struct EvaluatedSubjects {
  // How many images of either split could not be read (broken_images_results.h); they are in no subject's sets.
  ConfigNode broken_images = ConfigNode::Map();
  // How many test images are training images (ssl/data/shared_images.h).
  int64_t shared_images = 0;
  // The first error of a baseline, which has no row then; one on all ranks.
  absl::Status baselines;
};

class EvaluationSubjects {
 public:
  // section: "NEAREST_NEIGHBOR", for messages. InvalidArgument, with the place, for an unknown baseline or a layer
  // that cannot be parsed.
  static absl::StatusOr<EvaluationSubjects> Create(SubjectOptions options, const std::string& section,
                                                   const ConfigNode& config);

  // Whether images are looked at: not where extracted files are all there is to evaluate.
  bool NeedsImages() const { return options_.features_path.empty() || !options_.baselines.empty(); }

  // Calls `evaluate` for each subject and layer, baselines first; one subject's features are in memory at a time.
  // Labels are class numbers, [N] int64, from 0; those of the test set are numbered as in the training set. Cancelled
  // when a stop is requested. What can be checked is checked before the first feature: both data sets, their classes,
  // the trained weights, the layers. All ranks have the same features; what one rank's `evaluate` returns is agreed on.
  // A baseline that fails costs the others nothing. context: with a complete configuration (evaluation_plan.h).
  // Collective.
  absl::StatusOr<EvaluatedSubjects> ForEach(
      EngineContext& context, absl::FunctionRef<absl::Status(const SubjectFeatures&)> evaluate_here) const;

  // What ForEach would find wrong with data, classes, layers and files of features, by one image through a network with
  // random weights.
  // context: likewise.
  absl::Status Check(EngineContext& context) const;

  // "trained", or with LAYERS empty, where there may be several, "trained.res5".
  std::string ResultKey(const SubjectFeatures& subject) const;

 private:
  EvaluationSubjects(SubjectOptions options, std::string section, std::vector<FeatureRequest> requests);
  bool IsBaseline(const std::string& name) const;

  const SubjectOptions options_;
  const std::string section_;
  const std::vector<FeatureRequest> requests_;  // what options_.layers says
};

}  // namespace ssl

#endif  // SSL_ENGINES_EVALUATION_SUBJECTS_H_
