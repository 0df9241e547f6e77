// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/evaluation_data.h"

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/core_options.h"
#include "ssl/core/equal_sources.h"
#include "ssl/data/dataset_source.h"
#include "ssl/data/datasets/dataset_builder.h"
#include "ssl/data/loader/evaluation_source.h"
#include "ssl/distributed/agree.h"

namespace ssl {
namespace {

absl::Status CheckHasData(const std::string& split, const ConfigNode& config) {
  const ConfigNode* sources = config.Section(absl::StrCat("DATA.", split)).Find("DATA_SOURCES");
  if (split != "TEST" || (sources != nullptr && !sources->items().empty())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "config.DATA.TEST.DATA_SOURCES is empty, expected a test set: config.DATA.TEST.DATA_PATHS=[...] names one, and a "
      "config.DATA.TRAIN.HOLD_OUT_FRACTION above 0 holds one out");
}

absl::StatusOr<std::unique_ptr<BatchSource>> Open(const std::string& split, const TaskOptions& task,
                                                  EngineContext& context) {
  SSL_RETURN_IF_ERROR(CheckHasData(split, context.config));
  const OpeningScope opening(context);
  SSL_RETURN_IF_ERROR(opening.CheckNotStopped());
  return MakeSplitEvaluationSource(split, /*most_samples=*/-1, MakeBuildContext(context, task.run.seed));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ConfiguredSplits(const ConfigNode& config) {
  std::vector<std::string> splits;
  for (const char* split : {"TRAIN", "TEST"}) {
    const ConfigNode* sources = config.Section(absl::StrCat("DATA.", split)).Find("DATA_SOURCES");
    if (sources != nullptr && !sources->items().empty()) splits.push_back(split);
  }
  if (!splits.empty()) return splits;
  return absl::InvalidArgumentError(
      "config.DATA.TRAIN.DATA_SOURCES and config.DATA.TEST.DATA_SOURCES are empty, expected a data source in one");
}

absl::StatusOr<std::unique_ptr<BatchSource>> MakeSplitSource(const std::string& split, EngineContext& context) {
  SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
  absl::StatusOr<std::unique_ptr<BatchSource>> source = Open(split, task, context);
  const std::string what = absl::StrCat("config.DATA.", split);
  SSL_RETURN_IF_ERROR(AgreeOnStatus(source.status(), absl::StrCat("opening ", what), context.communicator));
  SSL_RETURN_IF_ERROR(CheckEqualSources(what, source->get(), context.communicator));
  return source;
}

const Dataset* DatasetBehind(const BatchSource& source) {
  const auto* reader = dynamic_cast<const DatasetSource*>(&source);
  return reader == nullptr ? nullptr : &reader->dataset();
}

absl::StatusOr<std::unique_ptr<Dataset>> OpenSplitDataset(const std::string& split, EngineContext& context) {
  SSL_RETURN_IF_ERROR(CheckHasData(split, context.config));
  const OpeningScope opening(context);
  SSL_RETURN_IF_ERROR(opening.CheckNotStopped());
  SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(context.config));
  return BuildDataset(context.config.Section(absl::StrCat("DATA.", split)), MakeBuildContext(context, task.run.seed));
}

}  // namespace ssl
