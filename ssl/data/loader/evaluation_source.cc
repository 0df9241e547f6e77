// SPDX-License-Identifier: Apache-2.0
#include "ssl/data/loader/evaluation_source.h"

#include "absl/strings/str_cat.h"
#include "ssl/data/loader/data_source_builder.h"

namespace ssl {
namespace {

constexpr char kLabelType[] = "LABEL_TYPE";
constexpr char kStandard[] = "standard";

}  // namespace

const ConfigNode& EvaluationTransforms(const ConfigNode& config, const std::string& split) {
  const ConfigNode& test = config.Section("DATA.TEST");
  const ConfigNode* transforms = test.Find("TRANSFORMS");
  const bool has_transforms = transforms != nullptr && !transforms->items().empty();
  return has_transforms ? test : config.Section(absl::StrCat("DATA.", split));
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeSplitEvaluationSource(const std::string& split, int64_t most_samples,
                                                                       const BuildContext& context) {
  const ConfigNode& data = context.config.Section(absl::StrCat("DATA.", split));
  const ConfigNode* label_type = data.Find(kLabelType);
  if (label_type == nullptr || label_type->text() == kStandard) {
    return MakeEvaluationSource(data, EvaluationTransforms(context.config, split), context, most_samples);
  }
  // The whole tree, as messages find the place of a section by its address in it.
  ConfigNode config = context.config;
  config.SetPath(absl::StrCat("DATA.", split, ".", kLabelType), ConfigNode::FromString(kStandard));
  const BuildContext labelled{config,
                              context.registries,
                              context.communicator,
                              context.seed,
                              context.run_directory,
                              context.first_iteration,
                              context.file_system,
                              context.stop};
  return MakeEvaluationSource(config.Section(absl::StrCat("DATA.", split)), EvaluationTransforms(config, split),
                              labelled, most_samples);
}

}  // namespace ssl
