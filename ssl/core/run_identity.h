// SPDX-License-Identifier: Apache-2.0
//
// Two sessions are the same run by their resolved settings and their data. Every checkpoint records it
// (config.json), and a run that resumes compares. An AMP_DTYPE that is empty counts as the one of the device. The rule
// for each setting stands where it is declared (Doc::MayChange); docs/checkpoints.md tells users.
//
//   RunIdentity identity(config, registries.options, /*allow_changes=*/{});
//   identity.AddCount("DATA.TRAIN.num_samples", 60000);
//   SSL_RETURN_IF_ERROR(identity.CheckResume(saved, "step_20/config.json", &changes));
#ifndef SSL_CORE_RUN_IDENTITY_H_
#define SSL_CORE_RUN_IDENTITY_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ssl/config/node.h"
#include "ssl/config/option_catalog.h"
#include "ssl/core/resume_refusal.h"
#include "ssl/core/sample_digest.h"
#include "ssl/core/saved_settings.h"

namespace ssl {

// Ranks that saved a checkpoint, and those that want to go on with it.
struct RankCounts {
  int64_t saved = 1;
  int64_t now = 1;
};

class RunIdentity {
 public:
  // config: the resolved tree under "config". allow_changes: keys, or sections, that the user lets change. References
  // outlive the object.
  RunIdentity(const ConfigNode& config, const OptionCatalog& catalog, std::vector<std::string> allow_changes);

  // Something counted that has to stay the same, under a name like a key's: "DATA.TRAIN.num_samples".
  void AddCount(std::string name, int64_t count) { counts_[std::move(name)] = count; }

  // The classes that the outputs of a classifier stand for, by number, under "DATA.TRAIN.classes"; nothing for numbers
  // without names. A checkpoint from before they were recorded goes on with any.
  void SetClasses(const std::vector<std::string>& names);

  // The digest tells the training samples from others of the same number, under "DATA.TRAIN.samples"; it is empty for a
  // source that cannot tell. A checkpoint from before they were recorded goes on with any.
  void SetSamples(SampleDigest digest) { samples_ = std::move(digest); }

  // The weights of the checkpoint do not fit this run's network, which nothing lets differ; "": they do.
  void SetMisfit(std::string why) { misfit_ = std::move(why); }

  // OK when the run that saved `json` was trained on the classes `names`, those of `section` ("config.DATA.TRAIN"), or
  // does not say on which. InvalidArgument with both lists; DataLoss as for CheckResume.
  static absl::Status CheckClasses(const std::vector<std::string>& names, absl::string_view section,
                                   absl::string_view json, absl::string_view origin);

  // The updates of an epoch, as the count "DATA.TRAIN.updates_per_epoch", and of the whole run: nothing lets the first
  // change within a run, because its position and its schedules count updates, and no checkpoint may lie behind the
  // last. With a checkpoint from before updates were recorded, what they follow from (DATA.TRAIN,
  // OPTIMIZER.grad_acc_steps) may not change either.
  void SetUpdates(int64_t per_epoch, int64_t of_run) {
    counts_[std::string(kUpdatesPerEpoch)] = per_epoch;
    updates_of_run_ = of_run;
  }

  // {"format_version": 1, "settings": {"OPTIMIZER.num_epochs": "100", ...}, "counts": {...}, "places": {
  // "DATA.TRAIN.DATA_PATHS": ["/data/photos"], ...}}: one text for one identity.
  std::string ToJson() const;

  // OK when the run that saved `json` at `iteration` may go on as this one; settings that may change and did are
  // appended to `changes`, a line with both values for each. InvalidArgument names every other difference with both
  // values, the place of the new one, and what a user can do (resume_refusal.h). `origin` (the path of the checkpoint's
  // file) opens the message. DataLoss for a text that ToJson did not write. Counts are compared when this object has
  // any: before the data is opened, there are none. Paths are compared as places, those of training data even where
  // their texts are equal; a folder that was moved, so that nothing is where it was, may be another one where its
  // samples are the same. Another number of ranks has to take as many samples in an update, by other batches or another
  // accumulation of their gradients, which may change then.
  absl::Status CheckResume(absl::string_view json, absl::string_view origin, std::vector<std::string>* changes,
                           const RankCounts& ranks = {}, int64_t iteration = 0) const;

  // Whether this run saved `json`, or wants to go on with it: what may change, is allowed to, or is counted from the
  // data does not make it another run (CheckResume may refuse it nevertheless). `acted` is the key of what a
  // start does once (CHECKPOINT.RESUME_FROM): with another value for it, the run that saved `json` has not done it.
  bool IsSameRun(absl::string_view json, absl::string_view acted, const RankCounts& ranks = {}) const;

  // What differs from the settings of the run that saved `json`, below `section` ("MODEL.TRUNK") and without what may
  // change: "KEY: VALUE in the checkpoint, VALUE now (file:line)". DataLoss as for CheckResume.
  absl::StatusOr<std::vector<std::string>> ChangesBelow(absl::string_view section, absl::string_view json,
                                                        absl::string_view origin) const;

  // One setting of the run that saved `json`, as YAML on one line; its default when that run did not know it. DataLoss
  // as for CheckResume.
  absl::StatusOr<std::string> SavedSetting(const std::string& key, absl::string_view json,
                                           absl::string_view origin) const;

  // "file:line: config.CHECKPOINT.AUTO_RESUME is false", to open a message about one setting.
  std::string Describe(absl::string_view key) const;

 private:
  static constexpr absl::string_view kClasses = "DATA.TRAIN.classes";
  static constexpr absl::string_view kNumSamples = "DATA.TRAIN.num_samples";
  static constexpr absl::string_view kSamples = "DATA.TRAIN.samples";
  static constexpr absl::string_view kUpdatesPerEpoch = "DATA.TRAIN.updates_per_epoch";

  using Difference = SettingDifference;
  using Settings = SavedSettings;

  // What was counted is left out before this run's data is opened.
  absl::StatusOr<Settings> Parse(absl::string_view json, absl::string_view origin) const;
  // The counted things, by name.
  Settings Counted() const;
  std::vector<Difference> Differences(const Settings& saved) const;
  bool IsSame(const std::string& key, const Settings& saved, const std::string& before, const std::string& now) const;
  Difference Describe(const std::string& key, const std::string& saved, const std::string& now) const;
  // True when the folder of the data was moved: all else of it is the same, as far as that is known.
  bool IsMoved(const Difference& difference, const Settings& saved) const;
  bool IsAllowed(absl::string_view key) const;
  bool MayDiffer(const Difference& difference, const Settings& saved, const RankCounts& ranks) const;
  bool TestsOnly() const;
  // Each says why the run cannot go on, whatever is allowed; "" for nothing.
  std::string OtherSamplesPerUpdate(const Settings& saved, const RankCounts& ranks, std::string* way_out) const;
  std::string OtherUpdatesPerEpoch(const Settings& saved, const std::vector<Difference>& differences) const;
  std::string BehindTheEnd(int64_t iteration) const;
  std::string DefaultOf(const std::string& key) const;

  const ConfigNode& config_;
  const OptionCatalog& catalog_;
  const std::vector<std::string> allow_changes_;
  Settings settings_;
  std::map<std::string, int64_t> counts_;
  int64_t updates_of_run_ = 0;               // 0: not known
  ConfigNode classes_ = ConfigNode::List();  // empty when not told
  SampleDigest samples_;
  std::string misfit_;
};

}  // namespace ssl

#endif  // SSL_CORE_RUN_IDENTITY_H_
