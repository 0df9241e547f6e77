// SPDX-License-Identifier: Apache-2.0
#include "ssl/engines/full_tune_data.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/batch_source.h"
#include "ssl/core/core_options.h"
#include "ssl/core/label_check.h"
#include "ssl/core/renumbered_source.h"
#include "ssl/data/data_options.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/evaluation_data.h"
#include "ssl/engines/evaluation_plan.h"

namespace ssl {
namespace {

constexpr char kNeedsLabels[] = "full_tune needs labels";
constexpr int64_t kIgnored = -1;  // of the loss
// A head has an output for each number up to the largest: labels that are identifiers would take all memory.
constexpr int64_t kMostClasses = int64_t{1} << 20;
constexpr char kWhyMostClasses[] =
    "the most outputs that a counted head has: number the classes from 0 on, or set config.FULL_TUNE.NUM_CLASSES";

// What the keys of FULL_TUNE become in the configuration of the fine-tuning run, whose messages know no others.
struct TunedKey {
  const char* key;
  const char* tuned;
};
constexpr TunedKey kTunedKeys[] = {
    {"FULL_TUNE.BATCH_SIZE", "DATA.TRAIN.BATCHSIZE_PER_REPLICA"},
    {"FULL_TUNE.DATA_LIMIT", "DATA.TRAIN.DATA_LIMIT"},
    {"FULL_TUNE.LEARNING_RATE", "OPTIMIZER.param_schedulers.lr.start_value"},
    {"FULL_TUNE.NUM_CLASSES", "MODEL.HEAD.PARAMS"},
    {"FULL_TUNE.NUM_EPOCHS", "OPTIMIZER.num_epochs"},
    {"FULL_TUNE.TRANSFORMS", "DATA.TRAIN.TRANSFORMS"},
    {"FULL_TUNE.WEIGHT_DECAY", "OPTIMIZER.weight_decay"},
};

absl::Status WithWhoSets(const absl::Status& status, const ConfigNode& config) {
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::InvalidArgumentError(absl::StrCat(status.message(), WhoSets(status.message(), config)));
}

// As many as the names, or one more than the largest number.
absl::StatusOr<int64_t> CountClasses(const BatchSource& train) {
  const absl::StatusOr<std::vector<int64_t>> classes = train.Classes();
  if (absl::IsUnimplemented(classes.status()) || (classes.ok() && classes->empty())) {
    return absl::InvalidArgumentError(
        "full_tune: config.DATA.TRAIN tells no class numbers; set config.FULL_TUNE.NUM_CLASSES");
  }
  SSL_RETURN_IF_ERROR(classes.status());
  return std::max<int64_t>(classes->back() + 1, train.ClassNames().size());
}

// Of DATA.TRAIN, as many as the limit draws: fewer where a test set is held out.
absl::StatusOr<int64_t> CountFewLabels(int64_t data_limit, EngineContext& context) {
  ConfigNode config = context.config;
  SetFewLabels(data_limit, &config);
  EngineContext limited = WithConfig(config, context);
  const absl::StatusOr<std::unique_ptr<BatchSource>> train = MakeSplitSource("TRAIN", limited);
  if (!train.ok()) return WithWhoSets(train.status(), context.config);
  return (*train)->dataset_size();
}

// As a session opens it.
absl::Status OpenPhase(const ConfigNode& section, int64_t seed, EngineContext& context) {
  const OpeningScope opening(context);
  SSL_RETURN_IF_ERROR(opening.CheckNotStopped());
  const ConfigNode* type = section.Find("BASE_DATASET");
  return context.registries.batch_sources
      .Make(type == nullptr ? DataSplitOptions().base_dataset : type->text(), section, MakeBuildContext(context, seed))
      .status();
}

}  // namespace

std::string PlaceOfKey(absl::string_view key, const ConfigNode& config) {
  const ConfigNode* node = config.FindPath(key);
  return node == nullptr || node->location().file.empty() ? "" : absl::StrCat(node->location().ToString(), ": ");
}

std::string WhoSets(absl::string_view message, const ConfigNode& config) {
  std::string lines;
  for (const TunedKey& entry : kTunedKeys) {
    if (!absl::StrContains(message, entry.tuned)) continue;
    absl::StrAppend(&lines, "\n", PlaceOfKey(entry.key, config), "config.", entry.key, " sets config.", entry.tuned,
                    " of the fine-tuning");
  }
  return lines;
}

void SetFewLabels(int64_t data_limit, ConfigNode* config) {
  if (data_limit < 0) return;
  config->SetPath("DATA.TRAIN.DATA_LIMIT", ConfigNode::FromInt(data_limit));
  config->SetPath("DATA.TRAIN.DATA_LIMIT_SAMPLING.IS_BALANCED", ConfigNode::FromBool(true));
}

absl::StatusOr<LabelledData> OpenLabelledData(int64_t num_classes, int64_t data_limit, EngineContext& context) {
  // The labels are those of the data, whatever the pre-training took: messages say nothing else.
  ConfigNode config = context.config;
  for (const char* key : {"DATA.TRAIN.LABEL_TYPE", "DATA.TEST.LABEL_TYPE"}) {
    config.SetPath(key, ConfigNode::FromString("standard"));
  }
  SSL_ASSIGN_OR_RETURN(const std::unique_ptr<BatchSource> train, MakeSplitSource("TRAIN", context));
  SSL_ASSIGN_OR_RETURN(std::unique_ptr<BatchSource> test, MakeSplitSource("TEST", context));
  SSL_RETURN_IF_ERROR(CheckHasLabels(kNeedsLabels, "TRAIN", *train, config));
  SSL_RETURN_IF_ERROR(CheckHasLabels(kNeedsLabels, "TEST", *test, config));
  SSL_ASSIGN_OR_RETURN(test, NumberedAsInTraining(std::move(test), *train, config));
  LabelledData data{train->dataset_size(), num_classes};
  std::string limit = "as config.FULL_TUNE.NUM_CLASSES says";
  if (num_classes == 0) {
    SSL_RETURN_IF_ERROR(CheckClassesBelow(kMostClasses, kWhyMostClasses, kIgnored, "TRAIN", *train, config));
    SSL_ASSIGN_OR_RETURN(data.num_classes, CountClasses(*train));
    limit = "the classes of config.DATA.TRAIN, which are counted: config.FULL_TUNE.NUM_CLASSES says otherwise";
  }
  SSL_RETURN_IF_ERROR(CheckClassesBelow(data.num_classes, limit, kIgnored, "TRAIN", *train, config));
  SSL_RETURN_IF_ERROR(CheckClassesBelow(data.num_classes, limit, kIgnored, "TEST", *test, config));
  if (data_limit > 0) {
    SSL_ASSIGN_OR_RETURN(data.num_samples, CountFewLabels(data_limit, context));
  }
  return data;
}

absl::Status OpenPhases(const ConfigNode& tuned, EngineContext& context) {
  SSL_ASSIGN_OR_RETURN(const TaskOptions task, ReadTaskOptions(tuned));
  EngineContext of_tuning = WithConfig(tuned, context);
  for (const char* split : {"DATA.TRAIN", "DATA.TEST"}) {
    const absl::Status opened = OpenPhase(tuned.Section(split), task.run.seed, of_tuning);
    SSL_RETURN_IF_ERROR(AgreeOnStatus(WithWhoSets(opened, context.config), absl::StrCat("opening config.", split),
                                      context.communicator));
  }
  return absl::OkStatus();
}

}  // namespace ssl
