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
  const ConfigNode& transforms = EvaluationTransforms(context.config, split);
  const ConfigNode* label_type = data.Find(kLabelType);
  // Not always a copy: messages find the place of a section by its address.
  if (label_type == nullptr || label_type->text() == kStandard) {
    return MakeEvaluationSource(data, transforms, context, most_samples);
  }
  ConfigNode labelled = data;
  labelled.Set(kLabelType, ConfigNode::FromString(kStandard));
  return MakeEvaluationSource(labelled, transforms, context, most_samples);
}

}  // namespace ssl
