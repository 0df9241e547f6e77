// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/evaluation_subjects.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/core_options.h"
#include "ssl/engines/evaluation_data.h"
#include "ssl/engines/evaluation_model.h"
#include "ssl/engines/feature_files.h"
#include "ssl/engines/feature_layers.h"

namespace ssl {
namespace {

// One row of a table: a network, or none for the pixels.
struct Subject {
  const char* name;   // key in results.json
  const char* title;  // in the table
  bool has_model;
  bool is_trained;
};

constexpr Subject kSubjects[] = {
    {"raw_pixels", "raw pixels", false, false},
    {"untrained", "untrained network", true, false},
    {"trained", "trained network", true, true},
};

absl::Status CheckBaselines(const std::vector<std::string>& baselines, const std::string& section,
                            const ConfigNode& config) {
  std::vector<std::string> known;
  for (const Subject& subject : kSubjects) {
    if (!subject.is_trained) known.push_back(subject.name);
  }
  for (const std::string& name : baselines) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(config.Section(section).location().ToString(), ": config.", section,
                                                   ".BASELINES has '", name, "', expected ", absl::StrJoin(known, ", "),
                                                   DidYouMean(name, known)));
  }
  return absl::OkStatus();
}

absl::Status CheckLabels(const SubjectFeatures& subject) {
  for (const FeatureSet* set : {&subject.train, &subject.test}) {
    const at::Tensor& labels = set->labels;
    if (labels.dim() == 1 && labels.scalar_type() == at::kLong && labels.min().item<int64_t>() >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(subject.title, ": labels of ",
                                                   set == &subject.train ? "TRAIN" : "TEST",
                                                   labels.dim() == 1 ? " are negative" : " are several for each sample",
                                                   ", expected one class number for each; check config.DATA"));
  }
  return absl::OkStatus();
}

// Moves layer `index` of `set` out of it; labels and indices are shared.
FeatureSet TakeLayer(FeatureSet* set, size_t index) {
  at::Tensor features = std::exchange(set->features[index], at::Tensor());
  return {{features.flatten(1)}, set->labels, set->indices};
}

// Both sources, made when the first subject needs them.
class Splits {
 public:
  explicit Splits(EngineContext& context) : context_(context) {}

  absl::StatusOr<FeatureSet> Extract(const std::string& split, const FeatureLayers& layers, const Subject& subject) {
    std::unique_ptr<BatchSource>& source = split == "TRAIN" ? train_ : test_;
    if (source == nullptr) {
      SSL_ASSIGN_OR_RETURN(source, MakeSplitSource(split, context_));
    }
    return ExtractFeatures(*source, layers.compute, absl::StrCat(subject.title, ", features of ", split),
                           context_.stop);
  }

 private:
  EngineContext& context_;
  std::unique_ptr<BatchSource> train_;
  std::unique_ptr<BatchSource> test_;
};

absl::Status EvaluateLayers(const Subject& subject, const std::vector<std::string>& names, FeatureSet train,
                            FeatureSet test, absl::FunctionRef<absl::Status(const SubjectFeatures&)> evaluate) {
  for (size_t i = 0; i < names.size(); ++i) {
    const SubjectFeatures features{subject.name, subject.title, names[i], TakeLayer(&train, i), TakeLayer(&test, i)};
    SSL_RETURN_IF_ERROR(CheckLabels(features));
    SSL_RETURN_IF_ERROR(evaluate(features));
  }
  return absl::OkStatus();
}

// Runs a network, or none, over the data.
absl::Status EvaluateData(const Subject& subject, const std::vector<FeatureRequest>& requests, Splits& splits,
                          EngineContext& context, absl::FunctionRef<absl::Status(const SubjectFeatures&)> evaluate) {
  EvaluationModel network;
  FeatureLayers layers;
  if (subject.has_model) {
    SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
    SSL_ASSIGN_OR_RETURN(network, MakeEvaluationModel(context, subject.is_trained ? EvaluationWeights::kTrained
                                                                                  : EvaluationWeights::kInitial));
    layers = ChooseFeatureLayers(*network.model, requests, task.precision.autocast);
    if (!requests.empty()) layers = JoinLayers(std::move(layers));
  } else {
    const ConfigNode* transforms = EvaluationTransforms(context.config, "TRAIN").Find("TRANSFORMS");
    SSL_ASSIGN_OR_RETURN(layers, PixelLayers(transforms != nullptr ? *transforms : ConfigNode::List()));
  }
  SSL_ASSIGN_OR_RETURN(FeatureSet train, splits.Extract("TRAIN", layers, subject));
  SSL_ASSIGN_OR_RETURN(FeatureSet test, splits.Extract("TEST", layers, subject));
  return EvaluateLayers(subject, layers.names, std::move(train), std::move(test), evaluate);
}

// The named layers of a split as one set of several tensors.
absl::StatusOr<FeatureSet> LoadLayers(const std::string& path, const std::string& split,
                                      const std::vector<std::string>& names, FileSystem& file_system) {
  FeatureSet all;
  for (const std::string& name : names) {
    SSL_ASSIGN_OR_RETURN(FeatureSet layer, LoadFeatures(path, split, name, file_system));
    all.features.push_back(std::move(layer.features[0]));
    all.labels = std::move(layer.labels);
    all.indices = std::move(layer.indices);
  }
  return all;
}

// Reads what extract_features wrote.
absl::Status EvaluateFiles(const Subject& subject, const std::string& path, const std::vector<FeatureRequest>& requests,
                           FileSystem& file_system, absl::FunctionRef<absl::Status(const SubjectFeatures&)> evaluate) {
  std::vector<std::string> names = LayerNames(requests);
  if (names.empty()) {
    SSL_ASSIGN_OR_RETURN(names, FeatureFileLayers(path, "train", file_system));
  }
  if (names.empty()) return absl::NotFoundError(absl::StrCat(path, " has no features of train"));
  SSL_ASSIGN_OR_RETURN(FeatureSet train, LoadLayers(path, "train", names, file_system));
  SSL_ASSIGN_OR_RETURN(FeatureSet test, LoadLayers(path, "test", names, file_system));
  if (!requests.empty()) {
    train.features = {JoinFeatures(train.features)};
    test.features = {JoinFeatures(test.features)};
    names = {absl::StrJoin(names, "+")};
  }
  return EvaluateLayers(subject, names, std::move(train), std::move(test), evaluate);
}

}  // namespace

void FeatureFilesSection::VisitFields(FieldVisitor& visitor) {
  visitor.Field("PATH", &path, Doc("folder that extract_features wrote, instead of a run over the data; \"\": none"));
}

EvaluationSubjects::EvaluationSubjects(SubjectOptions options, std::vector<FeatureRequest> requests)
    : options_(std::move(options)), requests_(std::move(requests)) {}

absl::StatusOr<EvaluationSubjects> EvaluationSubjects::Create(SubjectOptions options, const std::string& section,
                                                              const ConfigNode& config) {
  SSL_RETURN_IF_ERROR(CheckBaselines(options.baselines, section, config));
  SSL_ASSIGN_OR_RETURN(std::vector<FeatureRequest> requests, ParseFeatureRequests(options.layers));
  return EvaluationSubjects(std::move(options), std::move(requests));
}

absl::Status EvaluationSubjects::ForEach(EngineContext& context,
                                         absl::FunctionRef<absl::Status(const SubjectFeatures&)> evaluate) const {
  Splits splits(context);
  const std::vector<std::string>& baselines = options_.baselines;
  for (const Subject& subject : kSubjects) {
    const bool wanted =
        subject.is_trained || std::find(baselines.begin(), baselines.end(), subject.name) != baselines.end();
    if (!wanted) continue;
    SSL_RETURN_IF_ERROR(GuardTorch(subject.title, [&] {
      return subject.is_trained && !options_.features_path.empty()
                 ? EvaluateFiles(subject, options_.features_path, requests_, context.file_system, evaluate)
                 : EvaluateData(subject, requests_, splits, context, evaluate);
    }));
  }
  return absl::OkStatus();
}

std::string EvaluationSubjects::ResultKey(const std::string& prefix, const SubjectFeatures& subject) const {
  const std::string key = absl::StrCat(prefix, ".", subject.name);
  return options_.layers.empty() ? absl::StrCat(key, ".", subject.layer) : key;
}

}  // namespace ssl
