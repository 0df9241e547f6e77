// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/run_identity.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/help.h"
#include "ssl/core/shared_options.h"
#include "ssl/io/json_tree.h"

namespace ssl {
namespace {

using Settings = SavedSettings;

constexpr char kBatchSize[] = "DATA.TRAIN.BATCHSIZE_PER_REPLICA";
constexpr char kBatchesPerUpdate[] = "OPTIMIZER.grad_acc_steps";
constexpr char kEpochs[] = "OPTIMIZER.num_epochs";
constexpr char kVirtualRanks[] = "DISTRIBUTED.VIRTUAL_RANKS";

// "counted in photos; command line:2": where the samples of DATA.TRAIN, or DATA.TEST, lie; "" where no path says it.
std::string CountedIn(const ConfigNode& config, const char* split) {
  const ConfigNode* paths = config.Section(split).Find("DATA_PATHS");
  if (paths == nullptr || paths->items().empty()) return "";
  const auto append = [](std::string* out, const ConfigNode& path) { out->append(path.text()); };
  return absl::StrCat("counted in ", absl::StrJoin(paths->items(), ", ", append), "; ", paths->location().ToString());
}

// Whether the number of updates in an epoch may follow from this setting.
bool DecidesUpdates(absl::string_view key) {
  return (absl::StartsWith(key, "DATA.TRAIN.") && key != "DATA.TRAIN.TRANSFORMS") || key == kBatchesPerUpdate;
}

bool NamesTrainingData(absl::string_view key) { return absl::StartsWith(key, "DATA.TRAIN.") && NamesPaths(key); }

// The number at `key`, which may be any that a file says; a run whose options do not have the key has the default.
double CountIn(const Settings& settings, const std::string& key, int64_t by_default) {
  const auto value = settings.find(key);
  double count = 0;
  const bool is_told = value != settings.end() && absl::SimpleAtod(value->second, &count);
  return is_told ? count : static_cast<double>(by_default);
}

double SamplesPerUpdate(const Settings& settings, int64_t ranks) {
  return static_cast<double>(ranks) * CountIn(settings, kBatchSize, BatchSizeOptions().batch_size_per_replica) *
         CountIn(settings, kBatchesPerUpdate, UpdateOptions().batches_per_update);
}

}  // namespace

RunIdentity::RunIdentity(const ConfigNode& config, const OptionCatalog& catalog, std::vector<std::string> allow_changes)
    : config_(config), catalog_(catalog), allow_changes_(std::move(allow_changes)) {
  settings_ = SettingsOf(config);
  SettleAmpDtype(catalog_.Defaults(), &settings_);
}

void RunIdentity::SetClasses(const std::vector<std::string>& names) { classes_ = ConfigNode::FromStrings(names); }

std::string RunIdentity::ToJson() const {
  JsonTree::Object settings;
  JsonTree::Object places;
  for (const auto& [key, value] : settings_) {
    absl::string_view name = key;
    const bool is_place = absl::ConsumeSuffix(&name, kPlaces);
    (is_place ? places : settings).emplace_back(std::string(name), is_place ? *ParseJson(value) : JsonTree(value));
  }
  JsonTree::Object counts;
  for (const auto& [name, count] : counts_) counts.emplace_back(name, JsonTree(static_cast<uint64_t>(count)));
  JsonTree::Object root;
  root.emplace_back("format_version", JsonTree(kSettingsFormatVersion));
  root.emplace_back("settings", JsonTree(std::move(settings)));
  if (!classes_.items().empty()) counts.emplace_back(std::string(kClasses), JsonTree(SettingText(classes_)));
  if (!samples_.parts.empty()) counts.emplace_back(std::string(kSamples), JsonTree(samples_.ToString()));
  root.emplace_back("counts", JsonTree(std::move(counts)));
  root.emplace_back("places", JsonTree(std::move(places)));
  return WriteJson(JsonTree(std::move(root)));
}

// What a run that did not know the key had for it.
std::string RunIdentity::DefaultOf(const std::string& key) const {
  if (absl::EndsWith(key, kGrey16)) return kGrey16BeforeTheKey;
  const ConfigNode& defaults = catalog_.Defaults();
  const ConfigNode* value = defaults.FindPath(key);
  return value == nullptr ? kNotSet : SettingText(*value);
}

bool RunIdentity::TestsOnly() const {
  const auto value = settings_.find("TEST_ONLY");
  return value != settings_.end() && value->second == "true";
}

bool RunIdentity::IsAllowed(absl::string_view key) const {
  return std::any_of(allow_changes_.begin(), allow_changes_.end(), [key](absl::string_view allowed) {
    absl::ConsumePrefix(&allowed, "config.");
    return key == allowed || absl::StartsWith(key, absl::StrCat(allowed, "."));
  });
}

std::string RunIdentity::Describe(absl::string_view key) const {
  const ConfigNode* node = config_.FindPath(key);
  if (node == nullptr) return absl::StrCat("config.", key, " is ", kNotSet);
  return absl::StrCat(node->location().ToString(), ": config.", key, " is ", SettingText(*node));
}

absl::StatusOr<RunIdentity::Settings> RunIdentity::Parse(absl::string_view json, absl::string_view origin) const {
  SSL_ASSIGN_OR_RETURN(Settings settings, ParseSavedSettings(json, /*with_counts=*/!counts_.empty(), origin));
  SettleAmpDtype(catalog_.Defaults(), &settings);
  return settings;
}

RunIdentity::Settings RunIdentity::Counted() const {
  Settings counted;
  for (const auto& [name, count] : counts_) counted[name] = absl::StrCat(count);
  if (!classes_.items().empty()) counted[std::string(kClasses)] = SettingText(classes_);
  if (!samples_.parts.empty()) counted[std::string(kSamples)] = samples_.ToString();
  return counted;
}

// Before the data is opened, whether its samples are the same is not known yet.
bool RunIdentity::IsMoved(const Difference& difference, const Settings& saved) const {
  if (!NamesTrainingData(difference.key) || !PlacesAreGone(saved, difference.key)) return false;
  const auto samples = saved.find(std::string(kSamples));
  return counts_.empty() || (samples != saved.end() && samples->second == samples_.ToString());
}

bool RunIdentity::MayDiffer(const Difference& difference, const Settings& saved, const RankCounts& ranks) const {
  const bool makes_batches = difference.key == kBatchSize || difference.key == kBatchesPerUpdate;
  return catalog_.MayChange(difference.key) || IsAllowed(difference.key) ||
         (makes_batches && ranks.saved != ranks.now) || IsMoved(difference, saved);
}

// Position and schedules count updates, and a place in an epoch is counted in the samples that all ranks take together.
std::string RunIdentity::OtherSamplesPerUpdate(const Settings& saved, const RankCounts& ranks,
                                               std::string* way_out) const {
  if (ranks.saved == ranks.now) return "";
  const double batches = CountIn(settings_, kBatchesPerUpdate, UpdateOptions().batches_per_update) * ranks.now;
  const double before = SamplesPerUpdate(saved, ranks.saved);
  const double now = SamplesPerUpdate(settings_, ranks.now);
  if (before == now) return "";
  const double share = before / batches;
  *way_out = share == std::floor(share) ? absl::StrCat("set config.", kBatchSize, "=", share)
                                        : absl::StrCat("go on with a number of ranks that divides ", before);
  return absl::StrCat("was saved by ", ranks.saved, ranks.saved == 1 ? " rank that takes " : " ranks that take ",
                      before, " samples in an update, and would go on with ", ranks.now,
                      ranks.now == 1 ? " that takes " : " that take ", now, " (", Describe(kBatchSize), ")");
}

bool RunIdentity::IsSameRun(absl::string_view json, absl::string_view acted, const RankCounts& ranks) const {
  const absl::StatusOr<Settings> saved = Parse(json, "");
  std::string way_out;
  if (!saved.ok() || !OtherSamplesPerUpdate(*saved, ranks, &way_out).empty()) return false;
  const Settings counted = Counted();
  const std::vector<Difference> differences = Differences(*saved);
  return std::all_of(differences.begin(), differences.end(), [&](const Difference& difference) {
    const bool is_counted = counted.count(difference.key) > 0 || difference.key == kClasses;
    return difference.key != acted && (is_counted || MayDiffer(difference, *saved, ranks));
  });
}

bool RunIdentity::IsSame(const std::string& key, const Settings& saved, const std::string& before,
                         const std::string& now) const {
  const ConfigNode* node = key == kClasses ? &classes_ : config_.FindPath(key);
  if (node == nullptr) return before == now;
  if (NamesPaths(key) && NamesSamePlaces(saved, key, *node)) return true;
  // The same relative path is another folder in another working directory, unless that was moved with its folders.
  const bool tells_places = saved.count(absl::StrCat(key, kPlaces)) > 0;
  if (tells_places && NamesTrainingData(key) && !PlacesAreGone(saved, key)) return false;
  return before == now || (!tells_places && IsSavedAsWritten(*node, before));
}

RunIdentity::Difference RunIdentity::Describe(const std::string& key, const std::string& saved,
                                              const std::string& now) const {
  Difference difference{key, saved, now, ""};
  const ConfigNode* node = config_.FindPath(key);
  if (node != nullptr) {
    const size_t differs =
        std::mismatch(now.begin(), now.begin() + std::min(now.size(), saved.size()), saved.begin()).first - now.begin();
    difference.location = PlaceInText(*node, differs).ToString();
    difference.hint = AmpDtypeHint(key, *node, saved);
  }
  const bool counts_samples = key == kNumSamples || key == kSamples;
  if (counts_samples) difference.location = CountedIn(config_, TestsOnly() ? "DATA.TEST" : "DATA.TRAIN");
  if (key == kNumSamples) difference.counted = absl::StrCat("the ", saved, " samples");
  if (key == kClasses) difference.counted = "the classes";
  if (key == kSamples) {
    difference.counted = "the samples";
    difference.told = absl::StrCat("other names or labels than in the checkpoint; now the first that differ are in ",
                                   samples_.FirstOther(saved));
  }
  return difference;
}

std::vector<RunIdentity::Difference> RunIdentity::Differences(const Settings& saved) const {
  Settings now = settings_;
  for (const auto& [name, count] : Counted()) now[name] = count;
  std::set<std::string> keys;
  for (const auto& [key, value] : saved) keys.insert(key);
  for (const auto& [key, value] : now) keys.insert(key);
  const bool have_formats = UsesAmpDtype(catalog_.Defaults(), saved) && UsesAmpDtype(catalog_.Defaults(), now);
  if (!have_formats) keys.erase(kAmpDtype);  // a run in float32 has none that the other could go on in
  for (const absl::string_view told : {kUpdatesPerEpoch, kClasses, kSamples}) {
    const std::string key(told);
    if (saved.count(key) == 0 || now.count(key) == 0) keys.erase(key);
  }
  const std::string number(kNumSamples);
  const bool are_as_many = saved.count(number) == 0 || now.count(number) == 0 || saved.at(number) == now.at(number);
  if (!are_as_many) keys.erase(std::string(kSamples));  // the number says that they are others
  std::vector<Difference> differences;
  for (const std::string& key : keys) {
    if (absl::EndsWith(key, kPlaces)) continue;
    const std::string before = saved.count(key) > 0 ? saved.at(key) : DefaultOf(key);
    const std::string after = now.count(key) > 0 ? now.at(key) : kNotSet;
    if (IsSame(key, saved, before, after)) continue;
    differences.push_back(before == after ? Describe(key, PlacesForMessage(saved, key), PlacesForMessage(now, key))
                                          : Describe(key, before, after));
  }
  return differences;
}

absl::StatusOr<std::vector<std::string>> RunIdentity::ChangesBelow(absl::string_view section, absl::string_view json,
                                                                   absl::string_view origin) const {
  SSL_ASSIGN_OR_RETURN(const Settings saved, Parse(json, origin));
  std::vector<std::string> changes;
  for (const Difference& difference : Differences(saved)) {
    const bool is_below = absl::StartsWith(difference.key, absl::StrCat(section, "."));
    if (is_below && !catalog_.MayChange(difference.key)) changes.push_back(difference.ToString());
  }
  return changes;
}

absl::Status RunIdentity::CheckClasses(const std::vector<std::string>& names, absl::string_view section,
                                       absl::string_view json, absl::string_view origin) {
  SSL_ASSIGN_OR_RETURN(const Settings saved, ParseSavedSettings(json, /*with_counts=*/true, origin));
  const auto trained = saved.find(std::string(kClasses));
  const ConfigNode classes = ConfigNode::FromStrings(names);
  const std::string now = SettingText(classes);
  if (trained == saved.end() || trained->second == now || IsSavedAsWritten(classes, trained->second)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(origin, ": the outputs of the network are the classes ",
                                                 QuotedDifference(trained->second, now), ", and those of ", section,
                                                 " are ", QuotedDifference(now, trained->second),
                                                 "; name the training's class folders in ", section, ".DATA_PATHS"));
}

absl::StatusOr<std::string> RunIdentity::SavedSetting(const std::string& key, absl::string_view json,
                                                      absl::string_view origin) const {
  SSL_ASSIGN_OR_RETURN(const Settings saved, Parse(json, origin));
  const auto value = saved.find(key);
  return value != saved.end() ? value->second : DefaultOf(key);
}

std::string RunIdentity::OtherUpdatesPerEpoch(const Settings& saved, const std::vector<Difference>& differences) const {
  const auto now = counts_.find(std::string(kUpdatesPerEpoch));
  if (now == counts_.end()) return "";
  const auto before = saved.find(now->first);
  const bool recorded = before != saved.end();
  const bool may_differ = std::any_of(differences.begin(), differences.end(), [this](const Difference& difference) {
    return DecidesUpdates(difference.key) && !catalog_.MayChange(difference.key);
  });
  if (recorded ? before->second == absl::StrCat(now->second) : !may_differ) return "";
  return absl::StrCat(
      "position and schedules count updates, and an epoch of the run has ",
      recorded ? absl::StrCat(before->second, " updates") : "a number of updates that an older version did not record",
      ", and would go on with ", now->second);
}

std::string RunIdentity::BehindTheEnd(int64_t iteration) const {
  if (updates_of_run_ == 0 || iteration <= updates_of_run_) return "";
  return absl::StrCat("lies behind the end of this run: iteration ", iteration, " of ", updates_of_run_);
}

absl::Status RunIdentity::CheckResume(absl::string_view json, absl::string_view origin,
                                      std::vector<std::string>* changes, const RankCounts& ranks,
                                      int64_t iteration) const {
  SSL_ASSIGN_OR_RETURN(const Settings saved, Parse(json, origin));
  const std::vector<Difference> differences = Differences(saved);
  std::string way_out;
  const std::string samples = OtherSamplesPerUpdate(saved, ranks, &way_out);
  // Another number of samples in an update is another number of updates: one of the two is told.
  const std::string updates = samples.empty() ? OtherUpdatesPerEpoch(saved, differences) : "";
  const std::string end = BehindTheEnd(iteration);
  ResumeRefusal refusal{std::string(origin), {}, allow_changes_, TestsOnly()};
  for (const Difference& difference : differences) {
    if (difference.key == kUpdatesPerEpoch) continue;  // told as an obstacle
    const bool may_differ = MayDiffer(difference, saved, ranks);
    if (may_differ) changes->push_back(absl::StrCat("changed since the checkpoint: ", difference.ToString()));
    if (may_differ && catalog_.MayChange(difference.key)) continue;
    (may_differ ? refusal.accepted : refusal.others).push_back(&difference);
    // Which batch size another number of ranks needs is of no use to whoever has to put back that number itself.
    const bool is_number_of_ranks = !may_differ && !samples.empty() && difference.key == kVirtualRanks;
    if (is_number_of_ranks) way_out.clear();
    const bool decides_updates = !updates.empty() && DecidesUpdates(difference.key);
    const bool decides_end = !end.empty() && updates.empty() && difference.key == kEpochs;
    const bool shapes_weights = !misfit_.empty() && absl::StartsWith(difference.key, "MODEL.");
    if (is_number_of_ranks || decides_updates || decides_end || shapes_weights)
      refusal.to_put_back.push_back(&difference);
  }
  const std::string misfit = misfit_.empty() ? "" : absl::StrCat("its weights do not fit the network: ", misfit_);
  for (const std::string& obstacle : {samples, updates, end, misfit}) {
    if (!obstacle.empty()) refusal.obstacles.push_back(obstacle);
  }
  if (!way_out.empty()) refusal.remedies.push_back(way_out);
  if (!end.empty() && refusal.to_put_back.empty()) refusal.remedies.push_back("raise config.OPTIMIZER.num_epochs");
  if (!refusal.obstacles.empty() && refusal.remedies.empty() && refusal.to_put_back.empty()) {
    refusal.remedies.push_back("put back what has changed");
  }
  return refusal.ToStatus();
}

}  // namespace ssl
