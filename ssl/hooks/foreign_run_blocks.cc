// SPDX-License-Identifier: Apache-2.0
#include "ssl/hooks/foreign_run_blocks.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/fields.h"
#include "ssl/config/help.h"
#include "ssl/config/problem.h"
#include "ssl/config/reader.h"
#include "ssl/config/same_value.h"
#include "ssl/hooks/run_keys.h"

namespace ssl {
namespace {

constexpr char kTrainer[] = "trainer";
constexpr char kSaver[] = "saver";
constexpr char kOnlyLatest[] = "only_save_latest";
constexpr char kLatestFrequency[] = "save_latest_freq";
constexpr char kRolling[] = "save_cur_start";
constexpr char kEpochFrequency[] = "CHECKPOINT.CHECKPOINT_FREQUENCY";
constexpr char kEpochAnchor[] = "CHECKPOINT.CHECKPOINT_ANCHOR";
constexpr char kKeepLast[] = "CHECKPOINT.KEEP_LAST";
constexpr char kTestAnchor[] = "TEST_ANCHOR";
constexpr int64_t kNotSet = -1;

struct TrainerBlock : public Options {
  int64_t max_epoch = kNotSet;
  int64_t max_iter = kNotSet;
  int64_t test_freq = kNotSet;
  int64_t test_start = kNotSet;
  int64_t save_freq = kNotSet;
  int64_t save_start = kNotSet;
  int64_t save_cur_start = kNotSet;
  int64_t save_cur_freq = kNotSet;
  int64_t save_latest_freq = kNotSet;
  bool only_save_latest = false;
  bool is_eval = true;
  ConfigNode lr_scheduler = ConfigNode::Map();
  ConfigNode optimizer = ConfigNode::Map();

  void VisitFields(FieldVisitor& visitor) override;
};

struct SaverBlock : public Options {
  int64_t save_latest_freq = kNotSet;
  bool only_save_latest = false;
  bool auto_resume = true;
  std::string pretrain_model;
  std::string resume_model;
  std::string save_dir = "checkpoints";
  std::string results_dir = "results_dir";

  void VisitFields(FieldVisitor& visitor) override;
};

Doc TheirDoc(absl::string_view text) { return Doc(absl::StrCat("United Perception's: ", text)); }

void TrainerBlock::VisitFields(FieldVisitor& visitor) {
  visitor.Field("max_epoch", &max_epoch, TheirDoc("OPTIMIZER.num_epochs"));
  visitor.Field("max_iter", &max_iter, TheirDoc("refused, a run is some number of epochs; max_epoch"));
  visitor.Field("test_freq", &test_freq, TheirDoc("TEST_EVERY_NUM_EPOCH, with TEST_ANCHOR 0"));
  visitor.Field("test_start", &test_start, TheirDoc("TEST_START, with TEST_ANCHOR 0"));
  visitor.Field("save_freq", &save_freq, TheirDoc("CHECKPOINT.CHECKPOINT_FREQUENCY, with CHECKPOINT_ANCHOR 0"));
  visitor.Field("save_start", &save_start, TheirDoc("CHECKPOINT.CHECKPOINT_START, with CHECKPOINT_ANCHOR 0"));
  visitor.Field(kRolling, &save_cur_start, TheirDoc("CHECKPOINT.ROLLING_START"));
  visitor.Field("save_cur_freq", &save_cur_freq, TheirDoc("CHECKPOINT.ROLLING_FREQUENCY"));
  visitor.Field(kLatestFrequency, &save_latest_freq,
                TheirDoc("with only_save_latest: CHECKPOINT.CHECKPOINT_ITER_FREQUENCY").Unit("iterations"));
  visitor.Field(kOnlyLatest, &only_save_latest, TheirDoc("CHECKPOINT.KEEP_LAST 1, saved by save_latest_freq"));
  visitor.Field("is_eval", &is_eval, TheirDoc("TEST_MODEL"));
  visitor.Field("lr_scheduler", &lr_scheduler, TheirDoc("refused; OPTIMIZER.param_schedulers says it here"));
  visitor.Field("optimizer", &optimizer, TheirDoc("refused; OPTIMIZER says it here"));
}

void SaverBlock::VisitFields(FieldVisitor& visitor) {
  visitor.Field(kLatestFrequency, &save_latest_freq,
                TheirDoc("with only_save_latest: CHECKPOINT.CHECKPOINT_FREQUENCY").Unit("epochs"));
  visitor.Field(kOnlyLatest, &only_save_latest, TheirDoc("as in trainer, which has precedence"));
  visitor.Field("auto_resume", &auto_resume, TheirDoc("CHECKPOINT.AUTO_RESUME"));
  visitor.Field("pretrain_model", &pretrain_model, TheirDoc("refused; MODEL.WEIGHTS_INIT.PARAMS_FILE says it here"));
  visitor.Field("resume_model", &resume_model, TheirDoc("refused; a run goes on in its CHECKPOINT.DIR"));
  visitor.Field("save_dir", &save_dir, TheirDoc("no effect; CHECKPOINT.DIR is the directory of the whole run"));
  visitor.Field("results_dir", &results_dir, TheirDoc("no effect; results are in CHECKPOINT.DIR"));
}

// Their keys that are refused: without them the run would learn something else, and a warning about keys without effect
// is soon overlooked.
struct RefusedKey {
  const char* block;
  const char* key;
  const char* ours;  // what says it here
};

constexpr RefusedKey kRefused[] = {
    {kSaver, "pretrain_model", "config.MODEL.WEIGHTS_INIT.PARAMS_FILE says it here"},
    {kSaver, "resume_model", "a run goes on in its CHECKPOINT.DIR"},
    {kTrainer, "lr_scheduler", "config.OPTIMIZER.param_schedulers says it here"},
    {kTrainer, "optimizer", "config.OPTIMIZER says it here"},
};

// A map that has a default stands where that does; what somebody has written into it, where he has.
SourceLocation PlaceOf(const ConfigNode& value) {
  const bool is_default = value.location().file.empty() && !value.entries().empty();
  return is_default ? PlaceOf(value.entries().front().second) : value.location();
}

// A key that somebody has set.
struct TheirKey {
  std::string path;                   // "config.trainer.max_epoch"
  const ConfigNode* value = nullptr;  // null: nobody has
};

class Blocks {
 public:
  Blocks(const Registries& registries, ConfigNode* config)
      : registries_(registries), config_(config), original_(*config), defaults_(registries.options.Defaults()) {}

  absl::Status Resolve() {
    ReadBlock<TrainerBlock>(kTrainer);
    ReadBlock<SaverBlock>(kSaver);
    if (!problems_.empty()) return ProblemsInOrder(problems_);
    RefuseMaxIter();
    RefuseOtherKeys();
    WarnOfDirectories();
    SetTests();
    SetSaves();
    Set(Find(kTrainer, "max_epoch"), "OPTIMIZER.num_epochs");
    Set(Find(kTrainer, kRolling), "CHECKPOINT.ROLLING_START");
    Set(Find(kTrainer, "save_cur_freq"), "CHECKPOINT.ROLLING_FREQUENCY");
    Set(Find(kSaver, "auto_resume"), "CHECKPOINT.AUTO_RESUME");
    SSL_RETURN_IF_ERROR(ProblemsInOrder(problems_));
    Tell();
    Erase<TrainerBlock>(kTrainer);
    Erase<SaverBlock>(kSaver);
    return absl::OkStatus();
  }

 private:
  template <class Block>
  void ReadBlock(const char* name) {
    const ConfigNode* node = original_.Find(name);
    Block block;
    if (node == nullptr || node->is_null()) return;
    for (ConfigProblem& problem : ReadProblems(*node, absl::StrCat("config.", name), UnknownKeys::kIgnore, &block)) {
      problems_.push_back(std::move(problem));
    }
  }

  // The run has its own keys now; what else stands in the block is nobody's, which others say.
  template <class Block>
  void Erase(const char* name) {
    ConfigNode* node = config_->FindMutable(name);
    if (node == nullptr) return;
    Block block;
    for (const HelpRow& row : HelpRows("", block)) EraseKey(row.key, node);
    if (node->entries().empty()) EraseKey(name, config_);
  }

  static void EraseKey(const std::string& key, ConfigNode* map) {
    auto* entries = map->mutable_entries();
    const auto is_it = [&key](const ConfigNode::Entry& entry) { return entry.first == key; };
    entries->erase(std::remove_if(entries->begin(), entries->end(), is_it), entries->end());
  }

  TheirKey Find(const char* block, const char* key) const {
    const std::string path = absl::StrCat(block, ".", key);
    const ConfigNode* value = original_.FindPath(path);
    // Their -1 says what an absent key does, but for save_cur_start, where it means never.
    const bool says_nothing = value != nullptr && value->is_scalar() && value->AsInt().value_or(0) == kNotSet;
    const bool is_set = IsSet(value, defaults_.FindPath(path)) && (!says_nothing || absl::string_view(key) == kRolling);
    return {absl::StrCat("config.", path), is_set ? value : nullptr};
  }

  static bool IsTrue(const TheirKey& key) { return key.value != nullptr && key.value->AsBool().value_or(false); }

  void Set(const TheirKey& key, const char* ours) {
    if (key.value != nullptr) SetTo(key, *key.value, ours);
  }

  // What the key means beside its value.
  void Imply(const TheirKey& key, const char* ours, int64_t value) {
    if (key.value == nullptr) return;
    ConfigNode node = ConfigNode::FromInt(value);
    node.Relocate(key.value->location());
    SetTo(key, node, ours);
  }

  void SetTo(const TheirKey& key, const ConfigNode& value, const char* ours) {
    const size_t before = problems_.size();
    SetRunKey(key.path, value, ours, registries_, config_, &problems_);
    if (problems_.size() > before) return;
    told_.push_back(absl::StrCat(value.location().ToString(), ": ", key.path, ": ", key.value->text(), " is config.",
                                 ours, ": ", value.text()));
  }

  void WarnOfNoEffect(const TheirKey& key, absl::string_view why) {
    if (key.value == nullptr) return;
    warnings_.push_back(absl::StrCat(key.value->location().ToString(), ": ", key.path, " has no effect ", why));
  }

  // Not before all is right: what a refused block would have come to helps nobody.
  void Tell() const {
    for (const std::string& line : told_) SSL_LOG(INFO) << line;
    for (const std::string& warning : warnings_) SSL_LOG(WARNING) << warning;
  }

  void RefuseMaxIter() {
    const TheirKey key = Find(kTrainer, "max_iter");
    if (key.value == nullptr) return;
    problems_.push_back({key.value->location(),
                         absl::StrCat(key.path, " is ", key.value->Describe(),
                                      ", and a run is some number of epochs here; expected config.trainer.max_epoch, "
                                      "that number divided by the iterations of an epoch")});
  }

  void RefuseOtherKeys() {
    for (const RefusedKey& refused : kRefused) {
      const std::string path = absl::StrCat(refused.block, ".", refused.key);
      const ConfigNode* value = original_.FindPath(path);
      if (value == nullptr || SameValue(*value, *defaults_.FindPath(path))) continue;
      problems_.push_back(
          {PlaceOf(*value), absl::StrCat("config.", path, " is ", value->Describe(),
                                         ", which has no effect; expected it to be left out: ", refused.ours)});
    }
  }

  void WarnOfDirectories() {
    for (const char* key : {"save_dir", "results_dir"}) {
      const std::string path = absl::StrCat(kSaver, ".", key);
      const ConfigNode* value = original_.FindPath(path);
      if (value == nullptr || SameValue(*value, *defaults_.FindPath(path))) continue;
      WarnOfNoEffect({absl::StrCat("config.", path), value}, "beside config.CHECKPOINT.DIR, the directory of the run");
    }
  }

  void SetLatestFrequency(const TheirKey& key, const char* ours) {
    if (key.value->AsInt().value_or(0) >= 1) return Set(key, ours);
    problems_.push_back({key.value->location(),
                         absl::StrCat(key.path, " is ", key.value->Describe(), ", expected an integer of at least 1")});
  }

  void SetTests() {
    const TheirKey frequency = Find(kTrainer, "test_freq");
    const TheirKey start = Find(kTrainer, "test_start");
    Set(frequency, "TEST_EVERY_NUM_EPOCH");
    Set(start, "TEST_START");
    Imply(frequency.value != nullptr ? frequency : start, kTestAnchor, 0);
    Set(Find(kTrainer, "is_eval"), "TEST_MODEL");
  }

  void SetSaves() {
    const TheirKey of_trainer = Find(kTrainer, kOnlyLatest);
    const TheirKey only_latest = of_trainer.value != nullptr ? of_trainer : Find(kSaver, kOnlyLatest);
    const TheirKey frequency = Find(kTrainer, "save_freq");
    const TheirKey start = Find(kTrainer, "save_start");
    if (IsTrue(only_latest)) {
      SetLatest(only_latest);
      for (const TheirKey& key : {frequency, start}) WarnOfNoEffect(key, absl::StrCat("beside ", only_latest.path));
      return;
    }
    for (const char* block : {kTrainer, kSaver}) {
      WarnOfNoEffect(Find(block, kLatestFrequency), absl::StrCat("without ", kOnlyLatest));
    }
    Set(frequency, kEpochFrequency);
    Set(start, "CHECKPOINT.CHECKPOINT_START");
    const TheirKey& either = frequency.value != nullptr ? frequency : start;
    Imply(either, kEpochAnchor, 0);
    // That program keeps all; how many to keep is a setting of ours alone, and no contradiction.
    if (!IsSet(config_->FindPath(kKeepLast), defaults_.FindPath(kKeepLast))) Imply(either, kKeepLast, 0);
  }

  void SetLatest(const TheirKey& only_latest) {
    Imply(only_latest, kKeepLast, 1);
    const TheirKey iterations = Find(kTrainer, kLatestFrequency);
    const TheirKey epochs = Find(kSaver, kLatestFrequency);
    if (iterations.value != nullptr) {
      SetLatestFrequency(iterations, "CHECKPOINT.CHECKPOINT_ITER_FREQUENCY");
      Imply(iterations, kEpochFrequency, -1);
      WarnOfNoEffect(epochs, absl::StrCat("beside ", iterations.path));
      return;
    }
    if (epochs.value != nullptr) {
      SetLatestFrequency(epochs, kEpochFrequency);
    } else {
      Imply(only_latest, kEpochFrequency, 1);
    }
    Imply(only_latest, kEpochAnchor, 0);
  }

  const Registries& registries_;
  ConfigNode* const config_;
  const ConfigNode original_;
  const ConfigNode defaults_;
  std::vector<ConfigProblem> problems_;
  std::vector<std::string> told_;  // what keys came to
  std::vector<std::string> warnings_;
};

}  // namespace

absl::Status AddForeignRunBlocks(Registries* registries) {
  SSL_RETURN_IF_ERROR(registries->options.Add(kTrainer, [] { return std::make_unique<TrainerBlock>(); }));
  return registries->options.Add(kSaver, [] { return std::make_unique<SaverBlock>(); });
}

absl::Status ResolveForeignRunBlocks(const Registries& registries, ConfigNode* config) {
  return Blocks(registries, config).Resolve();
}

}  // namespace ssl
