// SPDX-License-Identifier: Apache-2.0
#include "ssl/core/checkpointer.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/status_macros.h"
#include "ssl/core/state_dict.h"

namespace ssl {
namespace {

// Which file a scope's tensors go to. The last entry takes what no other one takes.
struct FileRule {
  absl::string_view scope;  // outermost scope with its '/'; "" for all the rest
  std::string file;
  bool rank_zero_only;
};

std::vector<FileRule> FileRules(int64_t rank) {
  return {{"model/", kModelFile, true},
          {"optimizer/", "optimizer.safetensors", true},
          {"", absl::StrCat("state_rank", rank, ".safetensors"), false}};
}

const FileRule& RuleFor(absl::string_view name, const std::vector<FileRule>& rules) {
  for (const FileRule& rule : rules) {
    if (absl::StartsWith(name, rule.scope)) return rule;
  }
  return rules.back();
}

}  // namespace

Checkpointer::Checkpointer(CheckpointStoreOptions options, FileSystem& file_system, Communicator& communicator,
                           Stateful& root, const TrainState& state)
    : store_(std::move(options), file_system, communicator), communicator_(communicator), root_(root), state_(state) {}

absl::Status Checkpointer::Save() {
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> state, CollectState(root_));
  const std::vector<FileRule> rules = FileRules(communicator_.rank());
  std::vector<CheckpointPart> parts;
  for (const FileRule& rule : rules) {
    if (rule.rank_zero_only && communicator_.rank() != 0) continue;
    CheckpointPart& part = parts.emplace_back(CheckpointPart{rule.file, {}});
    for (const NamedTensor& entry : state) {
      if (&RuleFor(entry.name, rules) != &rule) continue;
      part.tensors.push_back({std::string(absl::StripPrefix(entry.name, rule.scope)), entry.tensor});
    }
  }
  return store_.Save(state_.iteration, parts);
}

absl::StatusOr<bool> Checkpointer::RestoreNewest() {
  const absl::StatusOr<int64_t> newest = store_.NewestValid();
  if (newest.status().code() == absl::StatusCode::kNotFound) return false;
  SSL_RETURN_IF_ERROR(newest.status());
  std::vector<NamedTensor> state;
  for (const FileRule& rule : FileRules(communicator_.rank())) {
    SSL_ASSIGN_OR_RETURN(std::vector<NamedTensor> part, store_.Load(*newest, rule.file));
    for (NamedTensor& entry : part) state.push_back({absl::StrCat(rule.scope, entry.name), std::move(entry.tensor)});
  }
  SSL_RETURN_IF_ERROR(RestoreState(root_, state, store_.StepDirectory(*newest)));
  return true;
}

absl::StatusOr<int64_t> RestoreModel(const std::string& checkpoint_directory, FileSystem& file_system,
                                     Communicator& communicator, Stateful& model) {
  CheckpointStore store({checkpoint_directory, 0, ""}, file_system, communicator);
  SSL_ASSIGN_OR_RETURN(const int64_t newest, store.NewestValid());
  SSL_ASSIGN_OR_RETURN(const std::vector<NamedTensor> tensors, store.Load(newest, kModelFile));
  SSL_RETURN_IF_ERROR(RestoreState(model, tensors, absl::StrCat(store.StepDirectory(newest), "/", kModelFile)));
  return newest;
}

}  // namespace ssl
