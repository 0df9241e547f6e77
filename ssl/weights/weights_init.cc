// SPDX-License-Identifier: Apache-2.0
#include "ssl/weights/weights_init.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/base/torch_guard.h"
#include "ssl/config/reader.h"
#include "ssl/core/finite_check.h"
#include "ssl/core/registries.h"
#include "ssl/core/state_dict.h"
#include "ssl/distributed/communicator.h"
#include "ssl/weights/weight_advice.h"
#include "ssl/weights/weight_names.h"

namespace ssl {
namespace {

constexpr absl::string_view kSection = "config.MODEL.WEIGHTS_INIT";
constexpr absl::string_view kTrunk = "trunk.";
constexpr double kLeastTrunkShare = 0.5;
constexpr size_t kListedNames = 5;

// The places of the file's tensors under the names that they have in a model, whose own are `model_names`.
absl::StatusOr<std::map<std::string, size_t>> IndexByModelName(const WeightsFile& weights,
                                                               const std::vector<std::string>& model_names,
                                                               const WeightsInitOptions& options) {
  const std::set<std::string> own(model_names.begin(), model_names.end());
  std::vector<std::string> names;
  for (const NamedTensor& entry : weights.tensors) {
    const bool is_own = own.count(entry.name) > 0;
    names.push_back(is_own ? entry.name
                           : absl::StrCat(options.append_prefix, absl::StripPrefix(entry.name, options.remove_prefix)));
  }
  names = ToModelNames(names);
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto [place, inserted] = index.emplace(names[i], i);
    if (inserted) continue;
    return absl::InvalidArgumentError(absl::StrCat(weights.origin, ": '", weights.tensors[place->second].name,
                                                   "' and '", weights.tensors[i].name, "' are both ", names[i],
                                                   " of the model"));
  }
  return index;
}

bool IsSkipped(const std::string& name, const WeightsInitOptions& options) {
  return std::any_of(options.skip_layers.begin(), options.skip_layers.end(),
                     [&name](const std::string& part) { return absl::StrContains(name, part); });
}

// One assignment that is going to be made.
struct Copy {
  at::Tensor to;
  at::Tensor from;
};

// Finds what to copy, without changing anything.
class Matcher {
 public:
  Matcher(const WeightsFile& weights, const HeadWeightRules& heads) : weights_(weights), heads_(heads) {
    report_.origin = weights.origin;
    report_.passed_over = weights.passed_over;
  }

  absl::Status Match(const NamedTensor& entry, const std::map<std::string, size_t>& index) {
    const bool trunk = absl::StartsWith(entry.name, kTrunk);
    if (!trunk && !heads_.load) return absl::OkStatus();
    if (trunk) ++trunk_tensors_;
    const auto found = index.find(entry.name);
    if (found == index.end()) {
      report_.missing.push_back(entry.name);
      return absl::OkStatus();
    }
    const at::Tensor& from = weights_.tensors[found->second].tensor;
    if (from.sizes() != entry.tensor.sizes()) {
      const std::string mismatch =
          absl::StrCat(entry.name, " is [", absl::StrJoin(from.sizes(), ", "), "] in the file, [",
                       absl::StrJoin(entry.tensor.sizes(), ", "), "] in the model");
      if (trunk || heads_.shapes_must_match) {
        return absl::InvalidArgumentError(absl::StrCat(weights_.origin, ": ", mismatch));
      }
      report_.shape_mismatches.push_back(mismatch);
      return absl::OkStatus();
    }
    SSL_RETURN_IF_ERROR(CheckFinite(from, entry.name));
    if (trunk) ++trunk_loaded_;
    report_.loaded.push_back(entry.name);
    copies_.push_back({entry.tensor, from});
    return absl::OkStatus();
  }

  bool enough() const { return trunk_loaded_ > 0 && trunk_loaded_ >= kLeastTrunkShare * trunk_tensors_; }
  int64_t trunk_tensors() const { return trunk_tensors_; }
  int64_t trunk_loaded() const { return trunk_loaded_; }
  WeightsReport& report() { return report_; }

  void Apply() const {
    const c10::AutoGradMode no_gradients(false);
    for (const Copy& copy : copies_) {
      at::Tensor to = copy.to;
      to.copy_(copy.from);
    }
  }

 private:
  // One NaN reaches every output at the first step, and an evaluation would still print an accuracy.
  absl::Status CheckFinite(const at::Tensor& from, const std::string& name) const {
    const int64_t bad = CountNonFinite(from);
    if (bad == 0) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(weights_.origin, ": ", bad, " of the ", from.numel(), " values of ", name,
                                            " are not finite, expected numbers; the training that made the file "
                                            "diverged: take an earlier checkpoint of it"));
  }

  const WeightsFile& weights_;
  const HeadWeightRules heads_;
  WeightsReport report_;
  std::vector<Copy> copies_;
  int64_t trunk_tensors_ = 0;
  int64_t trunk_loaded_ = 0;
};

std::vector<std::string> NamesOf(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& entry : tensors) names.push_back(entry.name);
  return names;
}

std::string FirstNames(absl::string_view what, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  const size_t listed = std::min(names.size(), kListedNames);
  return absl::StrCat("\n  ", what, ": ", names.size(), ": ",
                      absl::StrJoin(names.begin(), names.begin() + listed, ", "), listed < names.size() ? ", ..." : "");
}

// A text, or a list of texts.
absl::StatusOr<std::vector<std::string>> ReadKey(const ConfigNode& node) {
  std::vector<std::string> key;
  if (node.is_null()) return key;
  if (node.is_scalar()) return std::vector<std::string>{node.text()};
  for (const ConfigNode& item : node.items()) {
    if (item.is_scalar()) key.push_back(item.text());
  }
  if (node.is_list() && key.size() == node.items().size()) return key;
  return absl::InvalidArgumentError(absl::StrCat(node.location().ToString(), ": ", kSection, ".STATE_DICT_KEY_NAME is ",
                                                 node.Describe(), ", expected a name or a list of names"));
}

// MODEL.FEATURE_EVAL_SETTINGS.<key>, which another package declares.
absl::StatusOr<bool> EvalSetting(const ConfigNode& config, absl::string_view key, bool fallback) {
  const ConfigNode* node = config.Section("MODEL.FEATURE_EVAL_SETTINGS").Find(key);
  if (node == nullptr) return fallback;
  return node->AsBool();
}

absl::StatusOr<HeadWeightRules> ReadHeadRules(const ConfigNode& config) {
  HeadWeightRules rules;
  SSL_ASSIGN_OR_RETURN(const bool eval_mode, EvalSetting(config, "EVAL_MODE_ON", false));
  SSL_ASSIGN_OR_RETURN(const bool eval_heads, EvalSetting(config, "EVAL_TRUNK_AND_HEAD", false));
  SSL_ASSIGN_OR_RETURN(rules.shapes_must_match, EvalSetting(config, "ASSERT_HEAD_LAYER_SHAPE_INIT", true));
  rules.load = !eval_mode || eval_heads;
  return rules;
}

// VISSL's files have "specify the model weights" where each user puts a file.
absl::Status CheckNoPlaceholder(const std::string& file, const ConfigNode& section, const BuildContext& context) {
  if (!absl::StrContains(file, "specify ") || context.file_system.Exists(file)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(section.Find("PARAMS_FILE")->location().ToString(), ": ", kSection, ".PARAMS_FILE is '", file,
                   "', which holds the place of a file; expected a file of weights or the directory of a run, as ",
                   kSection, ".PARAMS_FILE=resnet50.pth"));
}

// Somebody has typed PARAMS_FILE= with nothing behind it.
void WarnOfEmptyFile(const ConfigNode& section, const BuildContext& context) {
  const ConfigNode* file = section.Find("PARAMS_FILE");
  if (file == nullptr || file->location().file != "command line" || context.communicator.rank() != 0) return;
  SSL_LOG(WARNING) << file->location().ToString() << ": " << kSection
                   << ".PARAMS_FILE is empty, so that no file of weights is read; a variable of the shell may be unset";
}

absl::Status LoadConfigured(const WeightsInitOptions& options, const BuildContext& context, Model* model) {
  SSL_ASSIGN_OR_RETURN(const std::vector<std::string> key, ReadKey(options.state_dict_key_name));
  SSL_ASSIGN_OR_RETURN(const HeadWeightRules heads, ReadHeadRules(context.config));
  SSL_ASSIGN_OR_RETURN(const WeightsFile weights, ReadWeightsFile(context.file_system, options.params_file, key));
  SSL_ASSIGN_OR_RETURN(const WeightsReport report, LoadWeights(weights, options, heads, model));
  if (context.communicator.rank() != 0) return absl::OkStatus();
  const bool complete = report.missing.empty() && report.shape_mismatches.empty();
  if (complete) {
    SSL_LOG(INFO) << report.ToString();
  } else {
    SSL_LOG(WARNING) << report.ToString();
  }
  return absl::OkStatus();
}

}  // namespace

void WeightsInitOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("PARAMS_FILE", &params_file,
                Doc("Weights to start from: .safetensors, .pth or .torch, or a run or checkpoint directory."));
  visitor.Field("STATE_DICT_KEY_NAME", &state_dict_key_name,
                Doc("Where a .pth or .torch file keeps the weights: a key, or a list of nested keys."));
  visitor.Field("SKIP_LAYERS", &skip_layers, Doc("Tensors whose names hold one of these keep their values."));
  visitor.Field("REMOVE_PREFIX", &remove_prefix,
                Doc("Taken off the names in the file that begin with it and are none of the model's."));
  visitor.Field("APPEND_PREFIX", &append_prefix, Doc("Put before every name in the file that is none of the model's."));
}

std::string WeightsReport::ToString() const {
  return absl::StrCat("weights of ", origin, ": ", loaded.size(), " tensors loaded",
                      FirstNames("not in the file, left as they were", missing),
                      FirstNames("of another shape, left as they were", shape_mismatches),
                      FirstNames("in the file only, not used", unexpected),
                      FirstNames("no weights, passed over", passed_over));
}

absl::StatusOr<WeightsReport> LoadWeights(const WeightsFile& weights, const WeightsInitOptions& options,
                                          const HeadWeightRules& heads, Model* model) {
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, CollectState(*model));
  SSL_ASSIGN_OR_RETURN(auto index, IndexByModelName(weights, NamesOf(state), options));
  Matcher matcher(weights, heads);
  for (const NamedTensor& entry : state) {
    if (!IsSkipped(entry.name, options)) SSL_RETURN_IF_ERROR(matcher.Match(entry, index));
  }
  if (!matcher.enough()) {
    return absl::InvalidArgumentError(absl::StrCat(weights.origin, ": the file has ", matcher.trunk_loaded(),
                                                   " of the ", matcher.trunk_tensors(), " tensors of the trunk; ",
                                                   AdviseOnNames(NamesOf(weights.tensors), NamesOf(state))));
  }
  for (const NamedTensor& entry : state) index.erase(entry.name);
  for (const auto& [name, place] : index) {
    if (!IsSkipped(name, options)) matcher.report().unexpected.push_back(weights.tensors[place].name);
  }
  std::sort(matcher.report().unexpected.begin(), matcher.report().unexpected.end());
  matcher.Apply();
  return std::move(matcher.report());
}

absl::Status InitializeWeights(Model& model, const BuildContext& context) {
  const ConfigNode& section = context.config.Section("MODEL.WEIGHTS_INIT");
  WeightsInitOptions options;
  SSL_RETURN_IF_ERROR(ReadOptions(section, kSection, UnknownKeys::kIgnore, &options));
  if (options.params_file.empty()) {
    WarnOfEmptyFile(section, context);
    return absl::OkStatus();
  }
  SSL_RETURN_IF_ERROR(CheckNoPlaceholder(options.params_file, section, context));
  const absl::Status loaded = GuardTorch("loading weights", [&] { return LoadConfigured(options, context, &model); });
  const ConfigNode& file = *section.Find("PARAMS_FILE");
  return Annotate(loaded, absl::StrCat(file.location().ToString(), ": ", kSection, ".PARAMS_FILE"));
}

absl::Status RegisterWeights(Registries* registries) {
  if (!registries->AddPackage("weights")) return absl::OkStatus();
  registries->initialize_weights = &InitializeWeights;
  return registries->options.Add("MODEL.WEIGHTS_INIT", [] { return std::make_unique<WeightsInitOptions>(); });
}

}  // namespace ssl
