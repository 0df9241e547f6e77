// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/evaluation_subjects.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/core/class_map.h"
#include "ssl/core/core_options.h"
#include "ssl/data/loader/evaluation_source.h"
#include "ssl/data/shared_images.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/broken_images_results.h"
#include "ssl/engines/broken_rows.h"
#include "ssl/engines/evaluation_data.h"
#include "ssl/engines/evaluation_model.h"
#include "ssl/engines/feature_files.h"
#include "ssl/engines/feature_layers.h"
#include "ssl/engines/run_files.h"

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

const Subject& Trained() {
  return *std::find_if(std::begin(kSubjects), std::end(kSubjects),
                       [](const Subject& subject) { return subject.is_trained; });
}

// The baselines by name; "auto" is resolved.
absl::StatusOr<std::vector<std::string>> ReadBaselines(const SubjectOptions& options, const std::string& section,
                                                       const ConfigNode& config) {
  std::vector<std::string> known;
  for (const Subject& subject : kSubjects) {
    if (!subject.is_trained) known.push_back(subject.name);
  }
  if (options.baselines == std::vector<std::string>{kAutoBaselines}) {
    const bool wanted = !DescribesEvaluation(config) && options.features_path.empty();
    return wanted ? known : std::vector<std::string>();
  }
  for (const std::string& name : options.baselines) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat(config.Section(section).location().ToString(), ": config.", section,
                                                   ".BASELINES has '", name, "', expected ", absl::StrJoin(known, ", "),
                                                   " or auto", DidYouMean(name, known)));
  }
  return options.baselines;
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

// Both splits, and which class of the one is which of the other.
class Splits {
 public:
  // Unlabelled data, classes that do not fit and too few samples are errors here, as far as the data sets tell.
  static absl::StatusOr<Splits> Open(EngineContext& context, const SubjectOptions& options) {
    Splits splits;
    SSL_ASSIGN_OR_RETURN(splits.train_, MakeSplitSource("TRAIN", context));
    SSL_ASSIGN_OR_RETURN(splits.test_, MakeSplitSource("TEST", context));
    SSL_ASSIGN_OR_RETURN(const SplitClasses train, ClassesOf("TRAIN", *splits.train_, context.config));
    SSL_ASSIGN_OR_RETURN(const SplitClasses test, ClassesOf("TEST", *splits.test_, context.config));
    SSL_ASSIGN_OR_RETURN(splits.classes_, ClassMap::Create(train, test));
    splits.shared_images_ = CountSharedImages(*splits.train_, *splits.test_);
    if (train.numbers.size() == 1) {
      SSL_LOG(WARNING) << "evaluation: " << train.place
                       << " has one class only, so that every answer is right; figures "
                       << "mean something with a folder of images for each of several classes";
    }
    const int64_t samples = splits.train_->dataset_size();
    if (samples >= options.min_train_samples) return splits;
    return absl::InvalidArgumentError(absl::StrCat(options.min_train_samples_place, " is ", options.min_train_samples,
                                                   ", expected at most ", samples, ", the samples of ", train.place));
  }

  absl::Status TryTest(const FeatureLayers& layers, const Subject& subject, Communicator& communicator) const {
    const std::string what = absl::StrCat(subject.title, ", first image of TEST");
    return AgreeOnStatus(TryFirstImage(*test_, layers, what), what, communicator);
  }

  // Both sets of one subject; labels are those of the training set.
  absl::Status Extract(const FeatureLayers& layers, const Subject& subject, const EngineContext& context,
                       FeatureSet* train, FeatureSet* test) const {
    const std::string what = absl::StrCat(subject.title, ", features of ");
    SSL_ASSIGN_OR_RETURN(*train, ExtractFeatures(*train_, layers, what + "TRAIN", context.stop, context.communicator));
    SSL_ASSIGN_OR_RETURN(*test, ExtractFeatures(*test_, layers, what + "TEST", context.stop, context.communicator));
    return absl::OkStatus();
  }

  // Of what was extracted so far. Collective.
  absl::StatusOr<ConfigNode> BrokenImages(Communicator& communicator) const {
    return BrokenImagesOf({{"train", train_.get()}, {"test", test_.get()}}, communicator);
  }

  const ClassMap& classes() const { return classes_; }
  int64_t shared_images() const { return shared_images_; }

 private:
  std::unique_ptr<BatchSource> train_;
  std::unique_ptr<BatchSource> test_;
  ClassMap classes_;
  int64_t shared_images_ = 0;
};

// Each error is one of all ranks: they may go on with the next subject.
absl::Status EvaluateLayers(const Subject& subject, const std::vector<std::string>& names, const ClassMap& classes,
                            const EvaluatedWeights& weights, FeatureSet train, FeatureSet test,
                            absl::FunctionRef<absl::Status(const SubjectFeatures&)> evaluate,
                            Communicator& communicator) {
  for (size_t i = 0; i < names.size(); ++i) {
    SubjectFeatures features{subject.name, subject.title, names[i], {}, {}, weights};
    const absl::Status taken = GuardTorch(subject.title, [&]() -> absl::Status {
      features.train = TakeLayer(&train, i);
      features.test = TakeLayer(&test, i);
      SSL_RETURN_IF_ERROR(CheckLabels(features));
      SSL_ASSIGN_OR_RETURN(features.test.labels, classes.Apply(features.test.labels, features.train.labels));
      return absl::OkStatus();
    });
    SSL_RETURN_IF_ERROR(AgreeOnStatus(taken, subject.title, communicator));
    SSL_RETURN_IF_ERROR(evaluate(features));
  }
  return absl::OkStatus();
}

// A network, or none, and its features.
struct PreparedSubject {
  EvaluationModel network;  // outlives `layers`
  FeatureLayers layers;
};

// The layers of the network, which config.<section>.LAYERS lists as `requests`.
absl::Status ChooseLayers(const std::vector<FeatureRequest>& requests, const std::string& section,
                          EngineContext& context, PreparedSubject* prepared) {
  SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
  Model& model = *prepared->network.model;
  SSL_RETURN_IF_ERROR(CheckFeatureNames(model, requests, absl::StrCat(section, ".LAYERS"), context.config));
  const std::vector<FeatureRequest> wanted = requests.empty() ? UsualFeatures(model, context.config) : requests;
  prepared->layers = ChooseFeatureLayers(model, wanted, task.precision.autocast);
  if (!requests.empty()) prepared->layers = JoinLayers(std::move(prepared->layers));
  return absl::OkStatus();
}

absl::StatusOr<PreparedSubject> Prepare(const Subject& subject, EvaluationWeights weights,
                                        const std::vector<FeatureRequest>& requests, const std::string& section,
                                        EngineContext& context) {
  PreparedSubject prepared;
  if (!subject.has_model) {
    const ConfigNode* transforms = EvaluationTransforms(context.config, "TRAIN").Find("TRANSFORMS");
    SSL_ASSIGN_OR_RETURN(prepared.layers, PixelLayers(transforms != nullptr ? *transforms : ConfigNode::List()));
    return prepared;
  }
  SSL_ASSIGN_OR_RETURN(prepared.network, MakeEvaluationModel(context, weights));
  SSL_RETURN_IF_ERROR(MoveToRunDevice(context, &prepared.network));
  SSL_RETURN_IF_ERROR(ChooseLayers(requests, section, context, &prepared));
  return prepared;
}

// Runs a network, or none, over the data.
absl::Status EvaluateData(const Subject& subject, const PreparedSubject& prepared, const Splits& splits,
                          EngineContext& context, absl::FunctionRef<absl::Status(const SubjectFeatures&)> evaluate) {
  FeatureSet train;
  FeatureSet test;
  SSL_RETURN_IF_ERROR(splits.Extract(prepared.layers, subject, context, &train, &test));
  if (!subject.has_model) CountGreyPixelsOnce(&train, &test);
  EvaluatedWeights weights;
  if (subject.is_trained) weights = {prepared.network.weights, prepared.network.iteration};
  return EvaluateLayers(subject, prepared.layers.names, splits.classes(), weights, std::move(train), std::move(test),
                        evaluate, context.communicator);
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

// The names that extract_features wrote beside the labels; VISSL writes none.
absl::StatusOr<ClassMap> FileClasses(const std::string& path, FileSystem& file_system) {
  SSL_ASSIGN_OR_RETURN(std::vector<std::string> train, ReadClassNames(path, "train", file_system));
  SSL_ASSIGN_OR_RETURN(std::vector<std::string> test, ReadClassNames(path, "test", file_system));
  return ClassMap::Create({absl::StrCat(path, " (train)"), std::move(train), {}},
                          {absl::StrCat(path, " (test)"), std::move(test), {}});
}

// What extract_features wrote.
struct FeatureFiles {
  std::vector<std::string> names;  // of the layers
  FeatureSet train;
  FeatureSet test;
  ClassMap classes;
};

// The names of the layers to load from `path`, config.<section>.FEATURES.PATH: those that are asked for, or all.
absl::StatusOr<std::vector<std::string>> FileLayers(const std::string& path, const std::string& section,
                                                    const std::vector<FeatureRequest>& requests,
                                                    const EngineContext& context) {
  const std::string key = absl::StrCat(section, ".FEATURES.PATH");
  const std::string place = absl::StrCat(context.config.FindPath(key)->location().ToString(), ": config.", key);
  if (!context.file_system.IsDirectory(path)) {
    return absl::NotFoundError(absl::StrCat(place, " is ", path, ", and there is no such folder; ",
                                            "engine_name=extract_features writes one: <run directory>/features"));
  }
  std::vector<std::string> names = LayerNames(requests);
  for (const char* split : {"train", "test"}) {
    SSL_ASSIGN_OR_RETURN(const std::vector<std::string> there, FeatureFileLayers(path, split, context.file_system));
    if (there.empty()) {
      return absl::NotFoundError(absl::StrCat(place, " is ", path, ", which has no features of ", split));
    }
    for (const std::string& name : names) {
      if (std::find(there.begin(), there.end(), name) != there.end()) continue;
      return absl::NotFoundError(absl::StrCat(place, " is ", path, ", which has no features of ", split, " of '", name,
                                              "' (config.", section, ".LAYERS); layers: ", absl::StrJoin(there, ", ")));
    }
    if (names.empty()) names = there;
  }
  return names;
}

absl::StatusOr<FeatureFiles> LoadFiles(const std::string& path, const std::string& section,
                                       const std::vector<FeatureRequest>& requests, const EngineContext& context) {
  FileSystem& file_system = context.file_system;
  FeatureFiles files;
  SSL_ASSIGN_OR_RETURN(files.names, FileLayers(path, section, requests, context));
  SSL_ASSIGN_OR_RETURN(files.train, LoadLayers(path, "train", files.names, file_system));
  SSL_ASSIGN_OR_RETURN(files.test, LoadLayers(path, "test", files.names, file_system));
  if (!requests.empty()) {
    files.train.features = {JoinFeatures(files.train.features)};
    files.test.features = {JoinFeatures(files.test.features)};
    files.names = {absl::StrJoin(files.names, "+")};
  }
  SSL_ASSIGN_OR_RETURN(files.classes, FileClasses(path, file_system));
  return files;
}

// Whether an extraction before in the command writes features there.
bool IsWrittenBefore(const std::string& path, const EngineContext& context) {
  const std::vector<std::string>& engines = context.earlier_engines;
  if (std::find(engines.begin(), engines.end(), "extract_features") == engines.end()) return false;
  const std::string& chosen = context.config.Section("EXTRACT_FEATURES").FindPath("OUTPUT_DIR")->text();
  if (chosen.empty() && context.run_directory.empty()) return true;  // the run's folder, which is not known here
  const auto plain = [](const std::string& name) {
    std::error_code unknown;  // then the paths differ
    return (std::filesystem::absolute(name, unknown) / "").lexically_normal();
  };
  return plain(path) == plain(chosen.empty() ? absl::StrCat(context.run_directory, "/", kFeaturesFolder) : chosen);
}

absl::StatusOr<ConfigNode> BrokenImagesOfFiles(const std::string& path, FileSystem& file_system) {
  BrokenSplits splits;
  for (const char* split : {"train", "test"}) {
    SSL_ASSIGN_OR_RETURN(auto images, ReadBrokenRows(path, split, file_system));
    splits.emplace_back(split, std::move(images));
  }
  return BrokenImagesTree(splits);
}

// Each rank reads all of it.
absl::Status EvaluateFiles(const Subject& subject, const std::string& path, const std::string& section,
                           const std::vector<FeatureRequest>& requests, EngineContext& context,
                           absl::FunctionRef<absl::Status(const SubjectFeatures&)> evaluate) {
  absl::StatusOr<FeatureFiles> files = LoadFiles(path, section, requests, context);
  SSL_RETURN_IF_ERROR(AgreeOnStatus(files.status(), "reading features", context.communicator));
  return EvaluateLayers(subject, files->names, files->classes, {absl::StrCat("features in ", path)},
                        std::move(files->train), std::move(files->test), evaluate, context.communicator);
}

}  // namespace

void FeatureFilesSection::VisitFields(FieldVisitor& visitor) {
  visitor.Field("PATH", &path, Doc("folder that extract_features wrote, instead of a run over the data; \"\": none"));
}

EvaluationSubjects::EvaluationSubjects(SubjectOptions options, std::string section,
                                       std::vector<FeatureRequest> requests)
    : options_(std::move(options)), section_(std::move(section)), requests_(std::move(requests)) {}

absl::StatusOr<EvaluationSubjects> EvaluationSubjects::Create(SubjectOptions options, const std::string& section,
                                                              const ConfigNode& config) {
  SSL_ASSIGN_OR_RETURN(options.baselines, ReadBaselines(options, section, config));
  SSL_ASSIGN_OR_RETURN(std::vector<FeatureRequest> requests, ParseFeatureRequests(options.layers));
  return EvaluationSubjects(std::move(options), section, std::move(requests));
}

absl::StatusOr<EvaluatedSubjects> EvaluationSubjects::ForEach(
    EngineContext& context, absl::FunctionRef<absl::Status(const SubjectFeatures&)> evaluate_here) const {
  // A rank that was stopped or failed by itself would leave the others waiting for it at the next subject.
  const auto evaluate = [&](const SubjectFeatures& subject) {
    const absl::Status status = GuardTorch(subject.title, [&] { return evaluate_here(subject); });
    return AgreeOnStatus(status, subject.title, context.communicator);
  };
  const bool from_files = !options_.features_path.empty();
  const Subject& trained = Trained();
  // The order matters: whatever may be wrong with the data, the weights or the layers comes out before the hours that
  // the features of a large data set take.
  std::optional<Splits> splits;
  PreparedSubject network;
  if (NeedsImages()) {
    SSL_ASSIGN_OR_RETURN(splits, Splits::Open(context, options_));
  }
  if (!from_files) {
    SSL_ASSIGN_OR_RETURN(network, Prepare(trained, EvaluationWeights::kTrained, requests_, section_, context));
    SSL_RETURN_IF_ERROR(splits->TryTest(network.layers, trained, context.communicator));
  }
  EvaluatedSubjects all;
  for (const Subject& subject : kSubjects) {
    if (subject.is_trained || !IsBaseline(subject.name)) continue;
    const auto evaluate_baseline = [&]() -> absl::Status {
      const absl::StatusOr<PreparedSubject> baseline =
          Prepare(subject, EvaluationWeights::kInitial, requests_, section_, context);
      SSL_RETURN_IF_ERROR(AgreeOnStatus(baseline.status(), subject.title, context.communicator));
      return EvaluateData(subject, *baseline, *splits, context, evaluate);
    };
    const absl::Status status = GuardTorch(subject.title, evaluate_baseline);
    // An error of this rank alone leaves the others within the subject: nobody could meet them at the next one.
    if (absl::IsCancelled(status) || (!status.ok() && !IsKnownToAllRanks(status))) return status;
    all.baselines.Update(Annotate(status, "a baseline failed, and the figures of the others are without it"));
  }
  SSL_RETURN_IF_ERROR(GuardTorch(trained.title, [&] {
    return from_files ? EvaluateFiles(trained, options_.features_path, section_, requests_, context, evaluate)
                      : EvaluateData(trained, network, *splits, context, evaluate);
  }));
  SSL_ASSIGN_OR_RETURN(all.broken_images, from_files ? BrokenImagesOfFiles(options_.features_path, context.file_system)
                                                     : splits->BrokenImages(context.communicator));
  if (!from_files) all.shared_images = splits->shared_images();
  return all;
}

absl::Status EvaluationSubjects::Check(EngineContext& context) const {
  const std::string& path = options_.features_path;
  if (!path.empty() && !IsWrittenBefore(path, context)) {
    const absl::Status files = FileLayers(path, section_, requests_, context).status();
    SSL_RETURN_IF_ERROR(AgreeOnStatus(files, "looking for features", context.communicator));
  }
  if (!NeedsImages()) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const Splits splits, Splits::Open(context, options_));
  if (!path.empty()) return absl::OkStatus();
  PreparedSubject prepared;
  SSL_ASSIGN_OR_RETURN(prepared.network, MakeModelToCheck(context));
  SSL_RETURN_IF_ERROR(ChooseLayers(requests_, section_, context, &prepared));
  return splits.TryTest(prepared.layers, Trained(), context.communicator);
}

bool EvaluationSubjects::IsBaseline(const std::string& name) const {
  return std::find(options_.baselines.begin(), options_.baselines.end(), name) != options_.baselines.end();
}

std::string EvaluationSubjects::ResultKey(const SubjectFeatures& subject) const {
  return options_.layers.empty() ? absl::StrCat(subject.name, ".", subject.layer) : subject.name;
}

}  // namespace ssl
