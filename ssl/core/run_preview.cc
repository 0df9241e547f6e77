// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/run_preview.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace ssl {
namespace {

constexpr char kIteration[] = "<iteration>";
constexpr size_t kMostTimes = 6;  // of a list in the table
constexpr char kNamed[] = ", and the checkpoint that it names, beside the newest";
constexpr Cadence kAtEnd{Cadence::Unit::kUpdate, 0, 1, 0, true};
constexpr char kRow[] = "%-20s %-44s %-26s %-26s %s\n";

class Previewer {
 public:
  Previewer(const std::vector<Phase>& phases, int64_t updates_per_epoch) : updates_per_epoch_(updates_per_epoch) {
    for (const Phase& phase : phases) {
      if (phase.train) {
        is_tested_.push_back(false);
      } else if (!is_tested_.empty()) {
        is_tested_.back() = true;
      }
    }
    total_ = num_epochs() * updates_per_epoch_;
  }

  int64_t num_epochs() const { return static_cast<int64_t>(is_tested_.size()); }
  int64_t num_tests() const { return std::count(is_tested_.begin(), is_tested_.end(), true); }

  RunPreview Make(const std::vector<const Hook*>& hooks, int64_t keep_last) {
    preview_.text = absl::StrFormat("%d epochs of %d updates, %d in all; %d test phases\n", num_epochs(),
                                    updates_per_epoch_, total_, num_tests());
    absl::StrAppendFormat(&preview_.text, kRow, "hook", "does", "in the first epoch", "in the last epoch", "in all");
    for (const Hook* hook : hooks) AddHook(*hook);
    AddRow("(the trainer)", "saves what no hook has saved", {"", kAtEnd}, 1);
    files_[kCheckpointFile].insert(total_);
    AddFiles(keep_last);
    return std::move(preview_);
  }

 private:
  void AddHook(const Hook& hook) {
    const std::string name(hook.instance_name());
    const std::vector<PlannedAction> plan = hook.Plan();
    if (plan.empty()) absl::StrAppendFormat(&preview_.text, kRow, name, "acts whenever its events come", "", "", "");
    std::vector<std::string> done;  // what it does, each once
    std::map<std::string, std::vector<PlannedAction>> rules;
    for (const PlannedAction& action : plan) {
      std::vector<PlannedAction>& of_this = rules[action.what];
      if (of_this.empty()) done.push_back(action.what);
      of_this.push_back(action);
    }
    for (const std::string& what : done) AddRules(name, what, rules[what]);
  }

  // The times at which a hook does one thing: each rule has its row, and only all of them together may be a mistake.
  void AddRules(const std::string& hook, const std::string& what, const std::vector<PlannedAction>& rules) {
    std::vector<std::string> reasons;
    for (const PlannedAction& rule : rules) {
      if (!rule.moments.empty()) {
        absl::StrAppendFormat(&preview_.text, kRow, hook, what, rule.moments, rule.moments, "");
        if (!rule.file.empty()) files_[rule.file];  // may come
        continue;
      }
      // A run without tests has no use for the times of a rule about them, unless that is all.
      if (rule.in_test_phase && num_tests() == 0 && rules.size() > 1) {
        reasons.push_back(WhyNever(rule));
        continue;
      }
      const std::vector<int64_t> due = Due(rule, 1, num_epochs());
      AddRow(hook, rules.size() > 1 ? absl::StrCat(what, " ", Rule(rule.when)) : what, rule,
             static_cast<int64_t>(due.size()));
      if (due.empty()) reasons.push_back(WhyNever(rule));
      if (!due.empty() && !rule.file.empty()) files_[rule.file].insert(due.begin(), due.end());
    }
    if (reasons.size() < rules.size()) return;
    preview_.warnings.push_back(absl::StrCat("hook '", hook, "' ", what, " never: ", absl::StrJoin(reasons, "; ")));
  }

  void AddRow(const std::string& hook, const std::string& what, const PlannedAction& action, int64_t times) {
    absl::StrAppendFormat(&preview_.text, kRow, hook, what, Times(action, 1), Times(action, num_epochs()),
                          absl::StrCat(times, times == 1 ? " time" : " times"));
  }

  // The iterations at which the action is due in these epochs.
  std::vector<int64_t> Due(const PlannedAction& action, int64_t first_epoch, int64_t last_epoch) const {
    if (action.when.unit == Cadence::Unit::kUpdate) {
      return action.when.DueIn((first_epoch - 1) * updates_per_epoch_ + 1, last_epoch * updates_per_epoch_, total_);
    }
    std::vector<int64_t> iterations;
    for (const int64_t epoch : action.when.DueIn(first_epoch, last_epoch, num_epochs())) {
      if (action.in_test_phase && !is_tested_[static_cast<size_t>(epoch - 1)]) continue;
      iterations.push_back(epoch * updates_per_epoch_);
    }
    return iterations;
  }

  // "at 10, 20", "after 40", "each of 10 updates", "-".
  std::string Times(const PlannedAction& action, int64_t epoch) const {
    std::vector<int64_t> due = Due(action, epoch, epoch);
    if (due.empty()) return "-";
    if (action.in_test_phase) return absl::StrCat("at ", due[0], ", after the test");
    if (due.size() > 1 && static_cast<int64_t>(due.size()) == updates_per_epoch_) {
      return absl::StrCat("at each of ", updates_per_epoch_, " updates");
    }
    if (due.size() <= kMostTimes) return absl::StrCat("at ", absl::StrJoin(due, ", "));
    return absl::StrCat("at ", due[0], ", ", due[1], ", ..., ", due.back());
  }

  // "every 5 updates from 10 on and at the end".
  std::string Rule(const Cadence& when) const {
    const std::string unit = when.unit == Cadence::Unit::kUpdate ? "update" : "epoch";
    std::vector<std::string> parts;
    if (when.every > total_ && when.anchor == when.start) {
      parts.push_back(absl::StrCat("at ", unit, " ", when.start));  // the one that a run of this length may come to
    } else if (when.every > 0) {
      parts.push_back(absl::StrCat(when.every == 1 ? absl::StrCat("each ", unit) : EveryOf(when.every, unit),
                                   when.start > 1 ? absl::StrCat(" from ", when.start, " on") : ""));
    }
    const bool is_each = when.every == 1 && when.start <= 1;  // the last one, too
    if (when.at_end && !is_each) parts.push_back("at the end");
    return absl::StrJoin(parts, " and ");
  }

  static std::string EveryOf(int64_t every, const std::string& unit) {
    return absl::StrCat("every ", every, " ", unit, "s");
  }

  std::string WhyNever(const PlannedAction& action) const {
    if (action.in_test_phase && num_tests() == 0) {
      return "the run has no test phase";
    }
    const bool of_updates = action.when.unit == Cadence::Unit::kUpdate;
    return absl::StrCat("it is due ", Rule(action.when), ", and the run has ", of_updates ? total_ : num_epochs());
  }

  void AddFiles(int64_t keep_last) {
    absl::StrAppend(&preview_.text, "files that stay:\n");
    for (const auto& [file, iterations] : files_) {
      if (!absl::StrContains(file, kIteration)) {
        absl::StrAppend(&preview_.text, "  ", file, absl::EndsWith(file, kCheckpointNameSuffix) ? kNamed : "", "\n");
        continue;
      }
      const int64_t count = static_cast<int64_t>(iterations.size());
      const int64_t kept = file == kCheckpointFile && keep_last > 0 ? std::min(keep_last, count) : count;
      const std::vector<int64_t> names(std::prev(iterations.end(), kept), iterations.end());
      absl::StrAppend(&preview_.text, "  ", Names(file, names), " (", kept, " of ", count, ")\n");
    }
  }

  static std::string Names(const std::string& file, const std::vector<int64_t>& iterations) {
    if (iterations.size() > kMostTimes) {
      return absl::StrCat(Name(file, iterations[0]), ", ..., ", Name(file, iterations.back()));
    }
    return absl::StrJoin(iterations, ", ",
                         [&](std::string* out, int64_t iteration) { out->append(Name(file, iteration)); });
  }

  static std::string Name(const std::string& file, int64_t iteration) {
    return absl::StrReplaceAll(file, {{kIteration, absl::StrCat(iteration)}});
  }

  std::vector<bool> is_tested_;  // by epoch
  const int64_t updates_per_epoch_;
  int64_t total_ = 0;
  std::map<std::string, std::set<int64_t>> files_;  // when they are written
  RunPreview preview_;
};

}  // namespace

RunPreview PreviewRun(const std::vector<const Hook*>& hooks, const std::vector<Phase>& phases,
                      int64_t updates_per_epoch, int64_t keep_last) {
  Previewer previewer(phases, updates_per_epoch);
  if (previewer.num_epochs() > 0) return previewer.Make(hooks, keep_last);
  return {absl::StrCat("nothing is trained; ", phases.size(), " test phases\n"), {}};
}

}  // namespace ssl
