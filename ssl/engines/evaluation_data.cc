// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/evaluation_data.h"

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/core_options.h"
#include "ssl/data/data_source_builder.h"

namespace ssl {
namespace {

constexpr char kLabelType[] = "LABEL_TYPE";
constexpr char kStandard[] = "standard";

bool HasItems(const ConfigNode& section, absl::string_view key) {
  const ConfigNode* list = section.Find(key);
  return list != nullptr && !list->items().empty();
}

}  // namespace

std::vector<std::string> ConfiguredSplits(const ConfigNode& config) {
  std::vector<std::string> splits;
  for (const char* split : {"TRAIN", "TEST"}) {
    if (HasItems(config.Section(absl::StrCat("DATA.", split)), "DATA_SOURCES")) splits.push_back(split);
  }
  return splits;
}

const ConfigNode& EvaluationTransforms(const ConfigNode& config, const std::string& split) {
  const ConfigNode& test = config.Section("DATA.TEST");
  return HasItems(test, "TRANSFORMS") ? test : config.Section(absl::StrCat("DATA.", split));
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeSplitSource(const std::string& split, EngineContext& context) {
  SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
  const OpeningScope opening(context);
  SSL_RETURN_IF_ERROR(opening.CheckNotStopped());
  const BuildContext build = MakeBuildContext(context, task.run.seed);
  const ConfigNode& data = context.config.Section(absl::StrCat("DATA.", split));
  const ConfigNode& transforms = EvaluationTransforms(context.config, split);
  const ConfigNode* label_type = data.Find(kLabelType);
  if (label_type == nullptr || label_type->text() == kStandard) return MakeEvaluationSource(data, transforms, build);
  ConfigNode labelled = data;
  labelled.Set(kLabelType, ConfigNode::FromString(kStandard));
  return MakeEvaluationSource(labelled, transforms, build);
}

}  // namespace ssl
