// SPDX-License-Identifier: Apache-2.0
//
// The part of evaluation_plan.h that runs an evaluation by its plan, and notes what it was of.
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/distributed/agree.h"
#include "ssl/engines/evaluation_plan.h"
#include "ssl/engines/images_of_run.h"

namespace ssl {
namespace {

constexpr char kTrain[] = "DATA.TRAIN";
constexpr char kTest[] = "DATA.TEST";

bool HasItems(const ConfigNode& section, const char* key) {
  const ConfigNode* list = section.Find(key);
  return list != nullptr && !list->items().empty();
}

// Beside the engine's own results: what was chosen stands in no configuration file.
void NoteImages(const std::string& engine, const ConfigNode& config, ConfigNode* results) {
  const ConfigNode* transforms = config.Section(kTest).Find("TRANSFORMS");
  if (results->Find(engine) == nullptr || transforms == nullptr || transforms->items().empty()) return;
  results->SetPath(absl::StrCat(engine, ".transforms"), *transforms);
  ConfigNode data = ConfigNode::Map();
  for (const auto& [name, split] : {std::pair("train", kTrain), std::pair("test", kTest)}) {
    const ConfigNode& section = config.Section(split);
    if (!HasItems(section, "DATA_SOURCES")) continue;
    data.Set(name, *section.Find(HasItems(section, "DATA_PATHS") ? "DATA_PATHS" : "DATASET_NAMES"));
  }
  results->SetPath(absl::StrCat(engine, ".data"), std::move(data));
}

// There is none in a command that trains as well: its settings are the run's, or were allowed to differ.
std::optional<RecordedRun> EvaluatedRun(const EngineContext& context) {
  if (context.held_directory != nullptr || context.run_directory.empty()) return std::nullopt;
  return FindRecordedRun(context.run_directory, context.file_system);
}

constexpr absl::string_view kEndOfText("\0", 1);  // no setting has it

std::string Packed(const RecordedRun& run) {
  return absl::StrCat(run.origin, kEndOfText, run.ranks, kEndOfText,
                      absl::StrJoin(run.settings, kEndOfText, absl::PairFormatter(kEndOfText)));
}

RecordedRun Unpacked(const std::string& packed) {
  const std::vector<std::string> texts = absl::StrSplit(packed, kEndOfText);
  RecordedRun run;
  run.origin = texts[0];
  if (!absl::SimpleAtoi(texts[1], &run.ranks)) run.ranks = 1;
  for (size_t i = 3; i < texts.size(); i += 2) run.settings[texts[i - 1]] = texts[i];
  return run;
}

// The run that rank 0 finds, on all ranks.
absl::StatusOr<std::optional<RecordedRun>> AgreedRun(const EngineContext& context) {
  std::string packed;  // "" where there is none
  const auto look = [&] {
    const std::optional<RecordedRun> run = EvaluatedRun(context);
    if (run.has_value()) packed = Packed(*run);
    return absl::OkStatus();
  };
  SSL_RETURN_IF_ERROR(OnRankZero(look, "looking for the run to evaluate", context.communicator));
  SSL_RETURN_IF_ERROR(BroadcastText(0, &packed, context.communicator));
  return packed.empty() ? std::optional<RecordedRun>() : Unpacked(packed);
}

EvaluationPlan PlanOf(const EngineContext& context, const std::optional<RecordedRun>& run) {
  return PlanEvaluation(context.config, context.registries.options.Defaults(), context.file_system,
                        run.has_value() ? &*run : nullptr);
}

}  // namespace

EngineContext WithConfig(const ConfigNode& config, const EngineContext& context) {
  EngineContext complete{config,         context.registries,  context.communicator,
                         context.stop,   context.file_system, context.run_directory,
                         context.results};
  complete.keeps_results = context.keeps_results;
  complete.held_directory = context.held_directory;
  complete.progress = context.progress;
  complete.earlier_engines = context.earlier_engines;
  return complete;
}

absl::StatusOr<EngineReport> WithEvaluationPlan(const std::string& engine, EngineContext& context,
                                                absl::FunctionRef<absl::StatusOr<EngineReport>(EngineContext&)> run) {
  SSL_ASSIGN_OR_RETURN(const std::optional<RecordedRun> evaluated, AgreedRun(context));
  const EvaluationPlan plan = PlanOf(context, evaluated);
  const std::string trained_on = evaluated.has_value() ? OtherImagesOfRun(*evaluated, context.config) : "";
  if (!trained_on.empty()) SSL_LOG(INFO) << "evaluation: " << trained_on;
  for (const std::string& choice : plan.choices) SSL_LOG(INFO) << "evaluation: " << choice;
  EngineContext complete = WithConfig(plan.config, context);
  absl::StatusOr<EngineReport> report = run(complete);
  if (absl::IsCancelled(report.status())) return StoppedReport(engine);
  if (report.ok() && !report->stopped) NoteImages(engine, complete.config, &context.results);
  return report;
}

absl::Status CheckWithEvaluationPlan(EngineContext& context, absl::FunctionRef<absl::Status(EngineContext&)> check) {
  const EvaluationPlan plan = PlanOf(context, EvaluatedRun(context));
  EngineContext complete = WithConfig(plan.config, context);
  return check(complete);
}

EngineReport StoppedReport(const std::string& engine) {
  EngineReport report;
  report.stopped = true;
  report.summary = absl::StrCat(engine, ": stopped before the end, nothing is written, and what was there stays");
  return report;
}

void SetResults(const std::string& engine, const ConfigNode& findings, const EvaluatedWeights& weights,
                ConfigNode* results) {
  const ConfigNode* earlier = results->FindPath(absl::StrCat(engine, ".weights"));
  const bool are_the_same = earlier != nullptr && earlier->text() == weights.description;
  ConfigNode section = are_the_same ? *results->Find(engine) : ConfigNode::Map();
  for (const auto& [key, value] : findings.entries()) section.Set(key, value);
  section.Set("weights", ConfigNode::FromString(weights.description));
  if (weights.iteration >= 0) section.Set("iteration", ConfigNode::FromInt(weights.iteration));
  results->Set(engine, std::move(section));
}

}  // namespace ssl
