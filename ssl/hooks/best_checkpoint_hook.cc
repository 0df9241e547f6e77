// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/best_checkpoint_hook.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/hooks/hook_entries.h"
#include "ssl/hooks/measured_names.h"
#include "ssl/hooks/phase_values.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr char kAuto[] = "auto";
constexpr char kMin[] = "min";
constexpr char kDefaultMetric[] = "Testing/loss_mean";
constexpr char kMetrics[] = "METRICS";
constexpr char kType[] = "best_checkpoint";

// As a part of a file's name and of a scope.
std::string Flat(std::string metric) {
  for (char& c : metric) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  }
  return metric;
}

// metrics: how many the hook has; instance: "" for the one without a name of its own.
std::string CheckpointName(const std::string& instance, size_t metrics, const std::string& metric) {
  std::string text = "best";
  if (!instance.empty()) absl::StrAppend(&text, ".", instance);
  if (metrics > 1) absl::StrAppend(&text, ".", Flat(metric));
  return text;
}

// metrics: the list METRICS, or null.
void AddNames(const std::string& instance, const ConfigNode* metrics, std::vector<std::string>* names) {
  const std::vector<ConfigNode> none = {ConfigNode::FromString(kDefaultMetric)};
  const std::vector<ConfigNode>& items = metrics == nullptr || metrics->items().empty() ? none : metrics->items();
  for (const ConfigNode& metric : items) names->push_back(CheckpointName(instance, items.size(), metric.text()));
}

absl::StatusOr<std::unique_ptr<Hook>> MakeBestCheckpoint(const BestCheckpointOptions& options, const ConfigNode& params,
                                                         const BuildContext& context) {
  std::set<std::string> names;
  for (const std::string& metric : options.metrics) {
    SSL_RETURN_IF_ERROR(CheckPhaseMetric(metric, PlaceOf(params, kMetrics, context), context));
    if (!names.insert(Flat(metric)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(PlaceOf(params, kMetrics, context), " has '", metric, "' twice, expected each metric once"));
    }
  }
  if (options.metrics.empty()) {
    // Nobody has chosen it: United Perception's configurations list the hook for trainings without tests, too.
    const absl::Status measured = CheckPhaseMetric(kDefaultMetric, PlaceOf(params, kMetrics, context), context);
    const bool tells = !measured.ok() && context.communicator.rank() == 0;
    if (tells) SSL_LOG(WARNING) << measured.message() << "; no checkpoint will be the best";
  }
  return std::make_unique<BestCheckpointHook>(options, PathOfKey(kMetrics, context));
}

}  // namespace

void BestCheckpointOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field(
      kMetrics, &metrics,
      Doc("what to keep the best checkpoint of, such as [Testing/loss_mean]; empty: keep none (ours)").MayBeOne());
  visitor.Field("MODE", &mode,
                Doc("whether better is less or more; auto: less for a metric with 'loss' in its name, else more")
                    .OneOf({kAuto, kMin, "max"}));
}

BestCheckpointHook::BestCheckpointHook(const BestCheckpointOptions& options, std::string path)
    : path_(std::move(path)) {
  const std::vector<std::string> metrics =
      options.metrics.empty() ? std::vector<std::string>{kDefaultMetric} : options.metrics;
  for (const std::string& metric : metrics) {
    Best& best = bests_.emplace_back();
    best.metric = metric;
    best.less_is_better = options.mode == kAuto ? absl::StrContains(metric, "loss") : options.mode == kMin;
  }
}

bool BestCheckpointHook::Best::IsBeatenBy(double other) const {
  if (!std::isfinite(other)) return false;
  return iteration < 0 || (less_is_better ? other < value : other > value);
}

void BestCheckpointHook::Best::VisitState(StateVisitor& visitor) {
  visitor.Double("value", value);
  visitor.Int("iteration", iteration);
}

std::string BestCheckpointHook::NameFor(const Best& best) const {
  const std::string instance = instance_name() == name() ? "" : std::string(instance_name());
  return CheckpointName(instance, bests_.size(), best.metric);
}

std::vector<PlannedAction> BestCheckpointHook::Plan() const {
  std::vector<PlannedAction> plan;
  for (const Best& best : bests_) {
    plan.push_back(LooksForBetter(best.metric, absl::StrCat("checkpoints/", NameFor(best), ".step")));
  }
  return plan;
}

absl::Status BestCheckpointHook::OnStart(StepContext& context) {
  if (context.checkpoints == nullptr) return absl::OkStatus();
  for (Best& best : bests_) {
    SSL_ASSIGN_OR_RETURN(const int64_t named, context.checkpoints->Named(NameFor(best)));
    // The checkpoint that this run goes on from may have become the best after it was saved: its test phase comes
    // again.
    best.is_to_be_settled = named > best.iteration && named == context.state.iteration;
    if (best.is_to_be_settled) continue;
    SSL_RETURN_IF_ERROR(Settle(context, &best));
    const bool was_wrong = best.iteration >= 0 && named > best.iteration;
    if (was_wrong && context.communicator.rank() == 0) {
      SSL_LOG(WARNING) << instance_name() << ": " << NameFor(best) << ".step named iteration " << named
                       << ", and the run's state says that the best by " << best.metric << " is that of "
                       << best.iteration << ": the file was damaged, and is written anew";
    }
  }
  return absl::OkStatus();
}

// A checkpoint that went (by hand, or because the run was sent back behind the best one) or is damaged is no best one.
absl::Status BestCheckpointHook::Settle(StepContext& context, Best* best) const {
  best->is_to_be_settled = false;
  if (best->iteration < 0) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const bool is_there, context.checkpoints->NameSaved(NameFor(*best), best->iteration));
  if (is_there) return absl::OkStatus();
  if (context.communicator.rank() == 0) {
    SSL_LOG(WARNING) << instance_name() << ": the checkpoint of iteration " << best->iteration << ", the best by "
                     << best->metric << " (" << best->value << "), is gone or damaged: the next value will be the best";
  }
  best->iteration = -1;
  return absl::OkStatus();
}

absl::Status BestCheckpointHook::OnStep(StepContext& context) {
  for (Best& best : bests_) {
    const std::optional<double> value = StepValue(best.metric, context);
    if (value.has_value()) SSL_RETURN_IF_ERROR(Compare(*value, context, &best));
  }
  return absl::OkStatus();
}

absl::Status BestCheckpointHook::OnPhaseEnd(StepContext& context) {
  for (Best& best : bests_) {
    SSL_ASSIGN_OR_RETURN(const std::optional<double> value, PhaseValue(best.metric, path_, context));
    if (value.has_value()) SSL_RETURN_IF_ERROR(Compare(*value, context, &best));
  }
  return absl::OkStatus();
}

// Ranks agree, because the values are those of all ranks.
absl::Status BestCheckpointHook::Compare(double value, StepContext& context, Best* best) const {
  if (best->is_to_be_settled) SSL_RETURN_IF_ERROR(Settle(context, best));
  if (!best->IsBeatenBy(value)) return absl::OkStatus();
  best->value = value;
  best->iteration = context.state.iteration;
  return Keep(*best, context);
}

// Evaluations may come with no phase, and so may what a host's hooks report.
absl::Status BestCheckpointHook::OnEnd(StepContext& context) {
  const bool is_whole = context.state.iteration >= context.state.max_iterations;
  if (context.communicator.rank() != 0 || !is_whole) return absl::OkStatus();
  for (const Best& best : bests_) {
    if (best.iteration >= 0 || !(IsOfEvaluations(best.metric) || IsOfHost(best.metric))) continue;
    SSL_LOG(WARNING) << instance_name() << ": no checkpoint is the best by '" << best.metric << "': "
                     << (IsOfHost(best.metric)
                             ? "no hook of the program's own has reported a finite number in a stage before persist"
                             : "no evaluation has measured a finite number; the hook eval "
                               "(config.HOOKS.EVAL) says what it measures");
  }
  return absl::OkStatus();
}

absl::Status BestCheckpointHook::Keep(const Best& best, StepContext& context) const {
  if (context.checkpoints == nullptr) return absl::OkStatus();
  SSL_RETURN_IF_ERROR(context.checkpoints->SaveAs(NameFor(best), /*replaceable=*/false));
  if (context.communicator.rank() != 0) return absl::OkStatus();
  SSL_LOG(INFO) << instance_name() << ": " << best.metric << " is " << best.value << " at iteration " << best.iteration
                << ", the best so far";
  return absl::OkStatus();
}

void BestCheckpointHook::VisitState(StateVisitor& visitor) {
  visitor.ScopesMayDiffer();
  for (Best& best : bests_) visitor.Scope(Flat(best.metric), best);
}

std::vector<std::string> BestCheckpointNames(const ConfigNode& config) {
  std::vector<std::string> names;
  const ConfigNode* metrics = config.Section(BestCheckpointOptions().section()).Find(kMetrics);
  if (metrics != nullptr && !metrics->items().empty()) AddNames("", metrics, &names);
  for (const HookEntry& entry : ReadHookEntries(config).value_or(std::vector<HookEntry>())) {
    if (entry.type != kType) continue;
    const ConfigNode* own = entry.kwargs.Find(kMetrics);
    AddNames(entry.name, own == nullptr && entry.name.empty() ? metrics : own, &names);
  }
  return names;
}

absl::Status RegisterBestCheckpointHook(Registries* registries) {
  constexpr int kRank = -1;  // before checkpoint
  return RegisterHook(registries, {kType, "keeps the checkpoint with the best value of a metric", kRank},
                      &MakeBestCheckpoint);
}

}  // namespace ssl
