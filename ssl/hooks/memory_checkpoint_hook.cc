// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/memory_checkpoint_hook.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ssl/base/did_you_mean.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/reader.h"
#include "ssl/core/tensor_memory.h"
#include "ssl/hooks/register_component.h"

namespace ssl {
namespace {

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
constexpr char kLevel[] = "level";
constexpr char kName[] = "name";

const std::map<std::string, RecomputeStrategy>& Strategies() {
  static const auto* const strategies =
      new std::map<std::string, RecomputeStrategy>{{"greedy", RecomputeStrategy::kGreedy},
                                                   {"memory_time", RecomputeStrategy::kMemoryTime},
                                                   {"optimal", RecomputeStrategy::kOptimal}};
  return *strategies;
}

absl::StatusOr<int64_t> ReadLevel(const std::string& num, absl::string_view place) {
  if (num == "default") return 0;
  int64_t level = 0;
  if (absl::SimpleAtoi(num, &level) && level > 0) return level == 1 ? 1 : 0;
  return absl::InvalidArgumentError(
      absl::StrCat(place, ".level.num is '", num, "', expected default or an integer above 0"));
}

// The first `level` parts of a block's name; the whole name at level 0.
std::string Prefix(const std::string& block, int64_t level) {
  const std::vector<std::string> parts = absl::StrSplit(block, '.');
  if (level == 0 || static_cast<int64_t>(parts.size()) <= level) return block;
  return absl::StrJoin(parts.begin(), parts.begin() + level, ".");
}

// What the parts are of which costs are measured, and whether in the short format.
std::string Measurable(const std::vector<std::string>& blocks, const std::vector<BlockRange>& candidates,
                       const std::string& number_format) {
  std::string text = absl::StrCat(number_format, "; ", absl::StrJoin(blocks, " "), ";");
  for (const BlockRange& range : candidates) absl::StrAppend(&text, " ", range.begin, "-", range.end);
  return text;
}

std::string NumberFormat(const ConfigNode& config) {
  const ConfigNode* is_short = config.FindPath("MODEL.AMP_PARAMS.USE_AMP");
  const ConfigNode* type = config.FindPath("MODEL.AMP_PARAMS.AMP_DTYPE");
  if (is_short == nullptr || !is_short->AsBool().value_or(false)) return "float32";
  return type == nullptr ? "autocast" : type->text();
}

// Models of tests take a few of them, large ones many thousands.
std::string Mebibytes(double bytes) { return absl::StrFormat("%.1f MiB", bytes / (1024.0 * 1024.0)); }

constexpr char kStatic[] = "MODEL.ACTIVATION_CHECKPOINTING.USE_ACTIVATION_CHECKPOINTING";

absl::StatusOr<std::unique_ptr<Hook>> MakeMemoryCheckpoint(const MemoryCheckpointOptions& options,
                                                           const ConfigNode& params, const BuildContext& context) {
  const ConfigNode* patterns = params.Find("checkpoint_patterns");
  CandidateRule rule;
  if (patterns != nullptr) {
    SSL_ASSIGN_OR_RETURN(rule, ReadCandidateRule(*patterns, PlaceOf(params, "checkpoint_patterns", context)));
  }
  const ConfigNode* is_static = context.config.FindPath(kStatic);
  const bool both = options.enable && is_static != nullptr && is_static->AsBool().value_or(false);
  if (both && context.communicator.rank() == 0) {
    SSL_LOG(WARNING) << is_static->location().ToString() << ": config." << kStatic
                     << " is true, and has no effect: the hook memory_checkpoint says what is recomputed";
  }
  const ConfigNode* dynamic = params.Find("dc_cfg");
  const bool is_dynamic = dynamic != nullptr && !dynamic->entries().empty();
  return std::make_unique<MemoryCheckpointHook>(options.enable, std::move(rule),
                                                is_dynamic ? std::make_optional(options.dc_cfg) : std::nullopt,
                                                PathOfKey("dc_cfg", context), NumberFormat(context.config));
}

}  // namespace

absl::string_view MemoryCheckpointOptions::section() const { return kHookList; }

void MemoryCheckpointOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("enable", &enable, Doc("false: the hook does nothing"));
  visitor.Section("checkpoint_patterns", &checkpoint_patterns,
                  Doc("which parts may be recomputed; {}: every block of the trunk"));
  visitor.Section("dc_cfg", &dc_cfg, Doc("recompute as few of them as fit; {}: all of them"));
}

void CheckpointLevelOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("num", &num, Doc("1: stages; 2 or more, and default: blocks"));
}

void CheckpointPatternOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("patterns_mode", &patterns_mode, Doc("how candidates are found").OneOf({kLevel, kName}));
  visitor.Section("level", &level, Doc("mode level"));
  visitor.Field("name_list", &name_list, Doc("mode name: blocks or stages").MayBeOne());
  visitor.Field("share_weight_num", &share_weight_num,
                Doc("without effect: the passes through one block are told apart").AtLeast(0));
}

void CheckpointPatternsOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Section("backbone", &backbone, Doc("of the trunk"));
  visitor.Section("trunk", &trunk, Doc("the same (ours)"));
}

void DynamicCheckpointOptions::VisitFields(FieldVisitor& visitor) {
  visitor.Field("warmup_iters", &warmup_iters, Doc("batches in which parts are measured").AtLeast(0));
  visitor.Field("max_memory", &max_memory, Doc("of large tensors at once").Above(0).Unit("GiB"));
  visitor.Field("debug_freq", &debug_freq, Doc("iterations between lines with the plan, -1 or 0 for none").AtLeast(-1));
  visitor.Field("strategy", &strategy,
                Doc("how parts are chosen; optimal is ours").OneOf({"memory_time", "greedy", "optimal"}));
}

absl::StatusOr<std::vector<BlockRange>> Candidates(const CandidateRule& rule, const std::vector<std::string>& blocks) {
  for (const std::string& name : rule.names) {
    const auto fits = [&](const std::string& block) { return block == name || Prefix(block, 1) == name; };
    if (std::any_of(blocks.begin(), blocks.end(), fits)) continue;
    return absl::NotFoundError(absl::StrCat(rule.place, " names '", name, "', which is no block or stage of the trunk",
                                            DidYouMean(name, blocks)));
  }
  std::vector<BlockRange> ranges;
  std::string last;
  for (size_t i = 0; i < blocks.size(); ++i) {
    std::string group = Prefix(blocks[i], rule.level);
    if (!rule.names.empty()) {
      const auto named = [&](const std::string& name) {
        return std::find(rule.names.begin(), rule.names.end(), name) != rule.names.end();
      };
      if (!named(blocks[i]) && !named(Prefix(blocks[i], 1))) continue;
      group = named(blocks[i]) ? blocks[i] : Prefix(blocks[i], 1);
    }
    const bool joins = !ranges.empty() && ranges.back().end == i && group == last;
    if (joins) {
      ++ranges.back().end;
    } else {
      ranges.push_back({i, i + 1});
    }
    last = std::move(group);
  }
  return ranges;
}

absl::StatusOr<CandidateRule> ReadCandidateRule(const ConfigNode& patterns, absl::string_view place) {
  CandidateRule rule;
  if (patterns.is_null()) return rule;
  if (!patterns.is_map()) return absl::InvalidArgumentError(absl::StrCat(place, " is no map of patterns"));
  for (const auto& [key, value] : patterns.entries()) {
    const std::string path = absl::StrCat("checkpoint_patterns.", key);
    if (key != "backbone" && key != "trunk") {
      return absl::InvalidArgumentError(absl::StrCat(place, ": ", path,
                                                     " is no part of a model, expected backbone (or "
                                                     "trunk, the same): heads are small"));
    }
    if (patterns.entries().size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, " has backbone and trunk, which are the same here, expected one of them"));
    }
    CheckpointPatternOptions pattern;
    SSL_RETURN_IF_ERROR(ReadOptions(value, path, UnknownKeys::kError, &pattern));
    if (pattern.patterns_mode == kName) {
      rule.names = pattern.name_list;
      rule.place = absl::StrCat(place, ": ", path, ".name_list");
      if (rule.names.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat(place, ": ", path, ".name_list is missing, expected names of blocks"));
      }
    } else {
      SSL_ASSIGN_OR_RETURN(rule.level, ReadLevel(pattern.level.num, absl::StrCat(place, ": ", path)));
    }
  }
  return rule;
}

MemoryCheckpointHook::MemoryCheckpointHook(bool enable, CandidateRule rule,
                                           std::optional<DynamicCheckpointOptions> dynamic, std::string path,
                                           std::string number_format)
    : enable_(enable),
      rule_(std::move(rule)),
      dynamic_(std::move(dynamic)),
      path_(std::move(path)),
      number_format_(std::move(number_format)) {}

std::vector<PlannedAction> MemoryCheckpointHook::Plan() const {
  const char* what = !enable_               ? "recomputes nothing (enable: False)"
                     : dynamic_.has_value() ? "recomputes as few activations as fit"
                                            : "recomputes activations";
  return {{what, {Cadence::Unit::kUpdate, 1, 1, 0, false}}};
}

absl::Status MemoryCheckpointHook::OnStart(StepContext& context) {
  if (!enable_) return absl::OkStatus();
  // Each rank plans by what it has measured, and each second pass gathers parameters, which all ranks do together.
  if (dynamic_.has_value() && context.model.parameter_shards() != nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        instance_name(),
        ": dc_cfg plans on each rank for itself, and config.TRAINER.TASK_NAME is "
        "self_supervision_fsdp_task, whose ranks recompute together; leave dc_cfg out, which recomputes all candidates "
        "on all ranks, or set self_supervision_task"));
  }
  const std::vector<std::string> blocks = context.model.block_names();
  if (blocks.empty()) {
    return absl::FailedPreconditionError(
        "memory_checkpoint: the model is no chain of blocks (Model::block_names), expected a trunk that is");
  }
  SSL_ASSIGN_OR_RETURN(candidates_, Candidates(rule_, blocks));
  if (dynamic_.has_value()) {
    if (!TensorMemoryIsInstalled()) {
      return absl::FailedPreconditionError(
          absl::StrCat(path_, " measures tensor memory, which this program has not installed; call ",
                       "InstallTensorMemory() (ssl/core/tensor_memory.h) at its start, or leave it out"));
    }
    planner_ = std::make_unique<MemoryPlanner>(
        blocks, candidates_,
        MemoryPlannerOptions{dynamic_->warmup_iters, static_cast<int64_t>(dynamic_->max_memory * kGibibyte),
                             Strategies().at(dynamic_->strategy)});
    measurable_ = Measurable(blocks, candidates_, number_format_);
    GoOnFromState();
    WarnOfLongWarmUp(context);
  }
  context.model.SetRecomputePolicy(this);
  return absl::OkStatus();
}

void MemoryCheckpointHook::WarnOfLongWarmUp(const StepContext& context) const {
  const TrainState& state = context.state;
  const int64_t batches = (state.max_iterations - state.iteration) * state.batches_per_update;
  if (batches == 0) return;  // nothing is left to train
  const int64_t left = planner_->warm_up_left();
  if (batches > left || context.communicator.rank() != 0) return;
  const int64_t done = dynamic_->warmup_iters - left;
  SSL_LOG(WARNING) << path_ << ".warmup_iters is " << dynamic_->warmup_iters
                   << (done > 0 ? absl::StrCat(", of which ", done, " are done") : "") << ", and the run has "
                   << batches << (batches == 1 ? " batch" : " batches")
                   << " more: all of them are warm-up, in which every part is recomputed, and nothing "
                   << "is planned; expected fewer than " << done + batches;
}

void MemoryCheckpointHook::WarnOfMissedLimit() const {
  const MemoryForecast& forecast = planner_->forecast();
  const double limit = dynamic_->max_memory * kGibibyte;
  const auto peak = static_cast<double>(forecast.peak_bytes);
  if (peak <= limit) return;
  SSL_LOG(WARNING) << path_ << ".max_memory is " << dynamic_->max_memory << " GiB (" << Mebibytes(limit)
                   << "), which cannot be kept: tensors take up to " << Mebibytes(peak)
                   << " although all candidates are recomputed; expected at least "
                   << absl::StrFormat("%.3g", 1.01 * peak / kGibibyte)
                   << ", a smaller config.DATA.TRAIN.BATCHSIZE_PER_REPLICA (with more "
                   << "config.OPTIMIZER.grad_acc_steps), or more candidates in checkpoint_patterns";
}

void MemoryCheckpointHook::GoOnFromState() {
  if (measured_of_.empty()) return;
  if (measured_of_ == measurable_ && planner_->GoOnFrom(measured_)) return;
  SSL_LOG(INFO) << "memory_checkpoint: the checkpoint's measurements are of another network, of other candidates or in "
                << "another number format: the warm-up begins anew";
}

void MemoryCheckpointHook::VisitState(StateVisitor& visitor) {
  if (!enable_ || !dynamic_.has_value()) return;
  if (planner_ != nullptr) {
    measured_of_ = measurable_;
    measured_ = planner_->measurements();
  }
  visitor.Text("measured_of", measured_of_);
  visitor.Scope("measured", measured_);
  // A run that has not started yet goes on from it once it knows its model.
  visitor.OnRestored([this] {
    if (planner_ != nullptr) GoOnFromState();
  });
}

std::vector<RecomputePlan> MemoryCheckpointHook::Plan(const std::vector<PassShape>& passes) {
  if (planner_ == nullptr) return std::vector<RecomputePlan>(passes.size(), RecomputePlan{candidates_});
  const size_t plans = planner_->number_of_plans();
  std::vector<RecomputePlan> planned = planner_->Plan(passes);
  if (planner_->number_of_plans() > plans) WarnOfMissedLimit();
  return planned;
}

absl::Status MemoryCheckpointHook::OnStep(StepContext& context) {
  if (planner_ == nullptr || !planner_->has_forecast() || !context.state.training) return absl::OkStatus();
  const bool due = dynamic_->debug_freq > 0 && context.state.iteration % dynamic_->debug_freq == 0;
  if (told_ && !due) return absl::OkStatus();
  const MemoryForecast& forecast = planner_->forecast();
  told_ = true;
  SSL_LOG(INFO) << "memory_checkpoint: tensors take up to " << Mebibytes(static_cast<double>(forecast.peak_bytes))
                << " of " << Mebibytes(dynamic_->max_memory * kGibibyte) << " ("
                << Mebibytes(static_cast<double>(forecast.peak_without_bytes)) << " without recomputing), "
                << absl::StrFormat("%.1f ms", 1e3 * forecast.recompute_seconds) << " a step for it; recomputed: "
                << (forecast.recomputed.empty() ? "nothing" : absl::StrJoin(forecast.recomputed, ", "))
                << "; planned in " << absl::StrFormat("%.1f ms", 1e3 * forecast.planning_seconds);
  return absl::OkStatus();
}

absl::Status MemoryCheckpointHook::OnEnd(StepContext& context) {
  if (!enable_) return absl::OkStatus();
  context.model.SetRecomputePolicy(nullptr);
  return absl::OkStatus();
}

absl::Status RegisterMemoryCheckpointHook(Registries* registries) {
  return RegisterHook(registries, {"memory_checkpoint", "recomputes activations in backward, as few as fit a limit"},
                      &MakeMemoryCheckpoint);
}

}  // namespace ssl
