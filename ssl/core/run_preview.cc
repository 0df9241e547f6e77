// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/run_preview.h"

#include <algorithm>
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

  RunPreview Make(const std::vector<const Hook*>& hooks, int64_t keep_last) {
    const int64_t tests = std::count(is_tested_.begin(), is_tested_.end(), true);
    preview_.text = absl::StrFormat("%d epochs of %d updates, %d in all; %d test phases\n", num_epochs(),
                                    updates_per_epoch_, total_, tests);
    absl::StrAppendFormat(&preview_.text, kRow, "hook", "does", "in the first epoch", "in the last epoch", "in all");
    for (const Hook* hook : hooks) AddHook(*hook);
    AddFiles(keep_last);
    return std::move(preview_);
  }

 private:
  void AddHook(const Hook& hook) {
    const std::string name(hook.instance_name());
    const std::vector<PlannedAction> plan = hook.Plan();
    if (plan.empty()) absl::StrAppendFormat(&preview_.text, kRow, name, "acts whenever its events come", "", "", "");
    for (const PlannedAction& action : plan) AddAction(name, action);
  }

  void AddAction(const std::string& hook, const PlannedAction& action) {
    const int64_t times = static_cast<int64_t>(Due(action, 1, num_epochs()).size());
    absl::StrAppendFormat(&preview_.text, kRow, hook, action.what, Times(action, 1), Times(action, num_epochs()),
                          absl::StrCat(times, times == 1 ? " time" : " times"));
    if (times == 0) {
      preview_.warnings.push_back(absl::StrCat("hook '", hook, "' ", action.what, " never: ", WhyNever(action)));
    } else if (!action.file.empty()) {
      const std::vector<int64_t> due = Due(action, 1, num_epochs());
      files_[action.file].insert(due.begin(), due.end());
    }
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

  std::string WhyNever(const PlannedAction& action) const {
    const bool of_updates = action.when.unit == Cadence::Unit::kUpdate;
    if (action.in_test_phase && std::count(is_tested_.begin(), is_tested_.end(), true) == 0) {
      return "the run has no test phase";
    }
    return absl::StrCat("it is due every ", action.when.every, of_updates ? " updates" : " epochs",
                        action.when.start > 1 ? absl::StrCat(" from ", action.when.start, " on") : "",
                        ", and the run has ", of_updates ? total_ : num_epochs());
  }

  void AddFiles(int64_t keep_last) {
    absl::StrAppend(&preview_.text, "files that hooks leave:\n");
    for (auto& [file, iterations] : files_) {
      if (!absl::StrContains(file, kIteration)) {
        absl::StrAppend(&preview_.text, "  ", file, "\n");
        continue;
      }
      iterations.insert(total_);  // the trainer saves at the end what no hook has saved
      std::vector<int64_t> kept(iterations.begin(), iterations.end());
      if (keep_last > 0 && static_cast<int64_t>(kept.size()) > keep_last)
        kept.erase(kept.begin(), kept.end() - keep_last);
      std::string names;
      if (kept.size() > kMostTimes) {
        names = absl::StrCat(Name(file, kept[0]), ", ..., ", Name(file, kept.back()));
      } else {
        names =
            absl::StrJoin(kept, ", ", [&](std::string* out, int64_t iteration) { out->append(Name(file, iteration)); });
      }
      absl::StrAppend(&preview_.text, "  ", names, " (", kept.size(), " of ", iterations.size(), ")\n");
    }
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
