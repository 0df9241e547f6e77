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
#include "ssl/core/saved_settings.h"
#include "ssl/core/shared_options.h"
#include "ssl/io/file_system.h"
#include "ssl/io/json_tree.h"

namespace ssl {
namespace {

using Settings = SavedSettings;

constexpr char kNotSet[] = "(not set)";
constexpr char kBatchSize[] = "DATA.TRAIN.BATCHSIZE_PER_REPLICA";
constexpr char kBatchesPerUpdate[] = "OPTIMIZER.grad_acc_steps";
constexpr char kNumSamples[] = "DATA.TRAIN.num_samples";
// A list of transforms is longer than a line; what differs in it is what matters.
constexpr size_t kMaxQuoted = 160;
constexpr size_t kContext = 40;

// How the maps of a list are told: a key's place in one means nothing, but older versions kept it.
enum class KeyOrder { kSorted, kAsWritten };

// Equal values have equal texts: 0.1 and 1e-1, True and yes, {a: 1, b: 2} and {b: 2, a: 1}.
ConfigNode Canonical(const ConfigNode& node, KeyOrder order) {
  ConfigNode result = node;
  if (node.is_list()) {
    result = ConfigNode::List();
    for (const ConfigNode& item : node.items()) result.Append(Canonical(item, order));
  } else if (node.is_map()) {
    auto entries = node.entries();
    const auto by_key = [](const auto& left, const auto& right) { return left.first < right.first; };
    if (order == KeyOrder::kSorted) std::sort(entries.begin(), entries.end(), by_key);
    result = ConfigNode::Map();
    for (const auto& [key, value] : entries) result.Set(key, Canonical(value, order));
  } else if (const absl::StatusOr<int64_t> whole = node.AsInt(); whole.ok()) {
    result = ConfigNode::FromInt(*whole);
  } else if (const absl::StatusOr<double> number = node.AsDouble(); number.ok()) {
    result = ConfigNode::FromDouble(*number);
  } else if (const absl::StatusOr<bool> flag = node.AsBool(); flag.ok()) {
    result = ConfigNode::FromBool(*flag);
  }
  return result;
}

// Bytes that are no UTF-8 are replaced, as they are in the file.
std::string TextOf(const ConfigNode& node) {
  const absl::StatusOr<JsonTree> read_back = ParseJson(WriteJson(JsonTree(FormatValue(node))));
  return read_back->text;
}

// Maps are taken apart; everything else, a list of transforms too, is one value.
void Flatten(const ConfigNode& node, const std::string& path, Settings* settings) {
  if (node.is_map() && !node.entries().empty()) {
    for (const auto& [key, value] : node.entries()) Flatten(value, JoinPath(path, key), settings);
    return;
  }
  (*settings)[path] = TextOf(Canonical(node, KeyOrder::kSorted));
}

// Where the innermost value stands that the text of `node` has at `offset`.
SourceLocation PlaceAt(const ConfigNode& node, size_t offset) {
  std::vector<ConfigNode::Entry> children = node.entries();
  std::sort(children.begin(), children.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const ConfigNode& item : node.items()) children.emplace_back("", item);
  const std::string text = TextOf(Canonical(node, KeyOrder::kSorted));
  size_t end = 0;
  for (const auto& [key, child] : children) {
    const std::string label = key.empty() ? "" : absl::StrCat(key, ": ");
    const std::string value = TextOf(Canonical(child, KeyOrder::kSorted));
    const size_t begin = text.find(label + value, end);
    if (begin == std::string::npos || offset < begin) break;
    end = begin + label.size() + value.size();
    if (offset > end) continue;
    const SourceLocation place = PlaceAt(child, offset - std::min(offset, begin + label.size()));
    return place.file.empty() ? node.location() : place;
  }
  return node.location();
}

// "counted in photos; command line:2": where the samples of DATA.TRAIN, or DATA.TEST, lie; "" where no path says it.
std::string CountedIn(const ConfigNode& config, const char* split) {
  const ConfigNode* paths = config.Section(split).Find("DATA_PATHS");
  if (paths == nullptr || paths->items().empty()) return "";
  const auto append = [](std::string* out, const ConfigNode& path) { out->append(path.text()); };
  return absl::StrCat("counted in ", absl::StrJoin(paths->items(), ", ", append), "; ", paths->location().ToString());
}

// Whether the number of updates in an epoch may follow from this setting.
bool DecidesUpdates(absl::string_view key) { return absl::StartsWith(key, "DATA.TRAIN.") || key == kBatchesPerUpdate; }

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

size_t FirstDifference(const std::string& value, const std::string& other) {
  const size_t most = std::min(value.size(), other.size());
  return std::mismatch(value.begin(), value.begin() + most, other.begin()).first - value.begin();
}

// The part of a long value that begins a little before the place where it differs from `other`.
std::string Quote(const std::string& value, const std::string& other) {
  if (value.size() <= kMaxQuoted) return value;
  const size_t differs = FirstDifference(value, other);
  const size_t begin = differs > kContext ? differs - kContext : 0;
  const bool cut = begin + kMaxQuoted < value.size();
  return absl::StrCat(begin > 0 ? "..." : "", value.substr(begin, kMaxQuoted), cut ? "..." : "");
}

}  // namespace

struct RunIdentity::Difference {
  std::string key;
  std::string saved;
  std::string now;
  std::string location;  // of the new value, or of what was counted; "" when it stands nowhere
  std::string hint = {};

  std::string ToString() const {
    const std::string where = location.empty() ? "" : absl::StrCat(" (", location, ")");
    return absl::StrCat(key, ": ", Quote(saved, now), " in the checkpoint, ", Quote(now, saved), " now", where, hint);
  }
};

RunIdentity::RunIdentity(const ConfigNode& config, const OptionCatalog& catalog, std::vector<std::string> allow_changes)
    : config_(config), catalog_(catalog), allow_changes_(std::move(allow_changes)) {
  Flatten(config, "", &settings_);
  SettleAmpDtype(catalog_.Defaults(), &settings_);
}

void RunIdentity::SetClasses(const std::vector<std::string>& names) {
  if (!names.empty()) classes_ = TextOf(ConfigNode::FromStrings(names));
}

std::string RunIdentity::ToJson() const {
  JsonTree::Object settings;
  for (const auto& [key, value] : settings_) settings.emplace_back(key, JsonTree(value));
  JsonTree::Object counts;
  for (const auto& [name, count] : counts_) counts.emplace_back(name, JsonTree(static_cast<uint64_t>(count)));
  JsonTree::Object root;
  root.emplace_back("format_version", JsonTree(kSettingsFormatVersion));
  root.emplace_back("settings", JsonTree(std::move(settings)));
  if (!classes_.empty()) counts.emplace_back(std::string(kClasses), JsonTree(classes_));
  root.emplace_back("counts", JsonTree(std::move(counts)));
  return WriteJson(JsonTree(std::move(root)));
}

// What a run that did not know the key had for it.
std::string RunIdentity::DefaultOf(const std::string& key) const {
  const ConfigNode& defaults = catalog_.Defaults();
  const ConfigNode* value = defaults.FindPath(key);
  return value == nullptr ? kNotSet : FormatValue(Canonical(*value, KeyOrder::kSorted));
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
  return absl::StrCat(node->location().ToString(), ": config.", key, " is ",
                      FormatValue(Canonical(*node, KeyOrder::kSorted)));
}

absl::StatusOr<RunIdentity::Settings> RunIdentity::Parse(absl::string_view json, absl::string_view origin) const {
  SSL_ASSIGN_OR_RETURN(Settings settings, ParseSavedSettings(json, /*with_counts=*/!counts_.empty(), origin));
  SettleAmpDtype(catalog_.Defaults(), &settings);
  return settings;
}

bool RunIdentity::MayDiffer(absl::string_view key, const RankCounts& ranks) const {
  const bool makes_batches = key == kBatchSize || key == kBatchesPerUpdate;
  return catalog_.MayChange(key) || IsAllowed(key) || (makes_batches && ranks.saved != ranks.now);
}

// Position and schedules count updates, and a place in an epoch is counted in the samples that all ranks take together.
absl::Status RunIdentity::CheckSamplesPerUpdate(const Settings& saved, const RankCounts& ranks,
                                                absl::string_view origin) const {
  if (ranks.saved == ranks.now) return absl::OkStatus();
  const double batches = CountIn(settings_, kBatchesPerUpdate, UpdateOptions().batches_per_update) * ranks.now;
  const double before = SamplesPerUpdate(saved, ranks.saved);
  const double now = SamplesPerUpdate(settings_, ranks.now);
  if (before == now) return absl::OkStatus();
  const double share = before / batches;
  const std::string way_out = share == std::floor(share)
                                  ? absl::StrCat("set config.", kBatchSize, "=", share)
                                  : absl::StrCat("go on with a number of ranks that divides ", before);
  return absl::InvalidArgumentError(absl::StrCat(
      origin, ": was saved by ", ranks.saved, ranks.saved == 1 ? " rank that takes " : " ranks that take ", before,
      " samples in an update, and would go on with ", ranks.now, ranks.now == 1 ? " that takes " : " that take ", now,
      " (", Describe(kBatchSize), "); ", way_out, ", or choose another config.CHECKPOINT.DIR"));
}

bool RunIdentity::IsSameRun(absl::string_view json, absl::string_view acted, const RankCounts& ranks) const {
  const absl::StatusOr<Settings> saved = Parse(json, "");
  if (!saved.ok() || !CheckSamplesPerUpdate(*saved, ranks, "").ok()) return false;
  const std::vector<Difference> differences = Differences(*saved);
  return std::all_of(differences.begin(), differences.end(), [&](const Difference& difference) {
    const bool counted = difference.key == kClasses || counts_.count(difference.key) > 0;
    return difference.key != acted && (counted || MayDiffer(difference.key, ranks));
  });
}

std::vector<RunIdentity::Difference> RunIdentity::Differences(const Settings& saved) const {
  Settings now = settings_;
  for (const auto& [name, count] : counts_) now[name] = absl::StrCat(count);
  if (!classes_.empty()) now[std::string(kClasses)] = classes_;
  std::set<std::string> keys;
  for (const auto& [key, value] : saved) keys.insert(key);
  for (const auto& [key, value] : now) keys.insert(key);
  const bool have_formats = UsesAmpDtype(catalog_.Defaults(), saved) && UsesAmpDtype(catalog_.Defaults(), now);
  if (!have_formats) keys.erase(kAmpDtype);  // a run in float32 has none that the other could go on in
  std::vector<Difference> differences;
  for (const std::string& key : keys) {
    const auto before = saved.find(key);
    const auto after = now.find(key);
    Difference difference{key, before != saved.end() ? before->second : DefaultOf(key),
                          after != now.end() ? after->second : kNotSet, ""};
    if (difference.saved == difference.now) continue;
    const ConfigNode* node = config_.FindPath(key);
    const bool is_as_written = node != nullptr && TextOf(Canonical(*node, KeyOrder::kAsWritten)) == difference.saved;
    if (is_as_written) continue;
    const bool may_be_unknown = key == kUpdatesPerEpoch || key == kClasses;
    if (may_be_unknown && (before == saved.end() || after == now.end())) continue;  // not told
    const size_t differs = FirstDifference(difference.now, difference.saved);
    if (node != nullptr) difference.location = PlaceAt(*node, differs).ToString();
    if (node != nullptr) difference.hint = AmpDtypeHint(key, *node, difference.saved);
    if (key == kNumSamples) difference.location = CountedIn(config_, TestsOnly() ? "DATA.TEST" : "DATA.TRAIN");
    differences.push_back(std::move(difference));
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
  const std::string now = TextOf(ConfigNode::FromStrings(names));
  if (trained == saved.end() || trained->second == now) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      origin, ": the outputs of the network are the classes ", Quote(trained->second, now), ", and those of ", section,
      " are ", Quote(now, trained->second), "; name the training's class folders in ", section, ".DATA_PATHS"));
}

absl::StatusOr<std::string> RunIdentity::SavedSetting(const std::string& key, absl::string_view json,
                                                      absl::string_view origin) const {
  SSL_ASSIGN_OR_RETURN(const Settings saved, Parse(json, origin));
  const auto value = saved.find(key);
  return value != saved.end() ? value->second : DefaultOf(key);
}

absl::Status RunIdentity::CheckUpdatesPerEpoch(const Settings& saved, const std::vector<Difference>& differences,
                                               absl::string_view origin) const {
  const auto now = counts_.find(std::string(kUpdatesPerEpoch));
  if (now == counts_.end()) return absl::OkStatus();
  std::vector<std::string> others;
  bool may_differ = false;
  for (const Difference& difference : differences) {
    if (difference.key == kUpdatesPerEpoch || catalog_.MayChange(difference.key)) continue;
    others.push_back(difference.ToString());
    may_differ = may_differ || DecidesUpdates(difference.key);
  }
  const auto before = saved.find(now->first);
  const bool recorded = before != saved.end();
  if (recorded ? before->second == absl::StrCat(now->second) : !may_differ) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(origin, ": an epoch of the run has ",
                   recorded ? before->second : "a number of updates that an older version did not record",
                   recorded ? " updates" : "", ", and would go on with ", now->second,
                   others.empty() ? "" : absl::StrCat(":\n  ", absl::StrJoin(others, "\n  ")),
                   "\nposition and schedules of a run count updates, so that config.CHECKPOINT.ALLOW_CHANGES cannot "
                   "accept this; put "
                   "back batch size, gradient accumulation and data, or begin a new run with these weights: another "
                   "config.CHECKPOINT.DIR and config.MODEL.WEIGHTS_INIT.PARAMS_FILE=",
                   ParentDirectory(origin)));
}

std::vector<const RunIdentity::Difference*> RunIdentity::Refused(const std::vector<Difference>& differences,
                                                                 const RankCounts& ranks) const {
  std::vector<const Difference*> refused;
  for (const Difference& difference : differences) {
    if (!MayDiffer(difference.key, ranks)) refused.push_back(&difference);
  }
  return refused;
}

absl::Status RunIdentity::Refusal(const std::vector<const Difference*>& refused, absl::string_view origin) const {
  if (refused.empty()) return absl::OkStatus();
  std::vector<std::string> lines;
  std::vector<std::string> keys;
  for (const Difference* difference : refused) {
    lines.push_back(difference->ToString());
    keys.push_back(difference->key);
  }
  const std::string found = absl::StrCat(
      origin, ": the run was started with other settings than it would go on with:\n  ", absl::StrJoin(lines, "\n  "));
  if (TestsOnly()) {
    return absl::InvalidArgumentError(
        absl::StrCat(found, "\na test of its weights is a run of its own: choose a new config.CHECKPOINT.DIR, with ",
                     "config.MODEL.WEIGHTS_INIT.PARAMS_FILE=", ParentDirectory(origin)));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(found,
                   "\nput them back, choose another config.CHECKPOINT.DIR, start anew with "
                   "config.CHECKPOINT.OVERWRITE_EXISTING=True config.CHECKPOINT.AUTO_RESUME=False, or accept the "
                   "change with config.CHECKPOINT.ALLOW_CHANGES=[",
                   absl::StrJoin(keys, ","), "]"));
}

// Which batch size another number of ranks needs is of no use to whoever has to put back another setting, such as that
// number itself.
absl::Status RunIdentity::CheckRanks(const Settings& saved, const std::vector<const Difference*>& refused,
                                     const RankCounts& ranks, absl::string_view origin) const {
  if (ranks.saved == ranks.now) return absl::OkStatus();
  std::vector<const Difference*> settings;
  for (const Difference* difference : refused) {
    if (difference->key != kClasses && counts_.count(difference->key) == 0) settings.push_back(difference);
  }
  SSL_RETURN_IF_ERROR(Refusal(settings, origin));
  return CheckSamplesPerUpdate(saved, ranks, origin);
}

absl::Status RunIdentity::CheckResume(absl::string_view json, absl::string_view origin,
                                      std::vector<std::string>* changes, const RankCounts& ranks) const {
  SSL_ASSIGN_OR_RETURN(const Settings saved, Parse(json, origin));
  const std::vector<Difference> differences = Differences(saved);
  const std::vector<const Difference*> refused = Refused(differences, ranks);
  SSL_RETURN_IF_ERROR(CheckRanks(saved, refused, ranks, origin));
  SSL_RETURN_IF_ERROR(CheckUpdatesPerEpoch(saved, differences, origin));
  for (const Difference& difference : differences) {
    if (!MayDiffer(difference.key, ranks)) continue;
    changes->push_back(absl::StrCat("changed since the checkpoint: ", difference.ToString()));
  }
  return Refusal(refused, origin);
}

}  // namespace ssl
