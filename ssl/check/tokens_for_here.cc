// SPDX-License-Identifier: Apache-2.0
#include "ssl/check/tokens_for_here.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace ssl {
namespace {

// "config.KEY=VALUE" where the value is another one.
void SetTo(absl::string_view value, absl::string_view key, const ConfigNode& config, std::vector<std::string>* tokens) {
  const ConfigNode* node = config.FindPath(key);
  if (node == nullptr || node->text() == value) return;
  tokens->push_back(absl::StrCat("config.", key, "=", value));
}

bool HasItems(const ConfigNode& config, absl::string_view key) {
  const ConfigNode* node = config.FindPath(key);
  return node != nullptr && !node->items().empty();
}

}  // namespace

std::vector<std::string> TokensForThisMachine(const ConfigNode& config) {
  std::vector<std::string> tokens;
  SetTo("cpu", "MACHINE.DEVICE", config, &tokens);
  SetTo("1", "DISTRIBUTED.NUM_NODES", config, &tokens);
  SetTo("1", "DISTRIBUTED.NUM_PROC_PER_NODE", config, &tokens);
  return tokens;
}

std::vector<std::string> TokensForSyntheticData(const ConfigNode& config) {
  std::vector<std::string> tokens;
  for (const std::string split : {"DATA.TRAIN", "DATA.TEST"}) {
    if (!HasItems(config, split + ".DATA_SOURCES")) continue;
    tokens.push_back(absl::StrCat("config.", split, ".DATA_SOURCES=[synthetic]"));
    const bool has_labels = HasItems(config, split + ".LABEL_SOURCES");
    if (has_labels) tokens.push_back(absl::StrCat("config.", split, ".LABEL_SOURCES=[synthetic]"));
    for (const char* paths : {".DATA_PATHS", ".LABEL_PATHS"}) {
      if (HasItems(config, split + paths)) tokens.push_back(absl::StrCat("config.", split, paths, "=[]"));
    }
    if (has_labels) tokens.push_back(absl::StrCat("config.", split, ".RANDOM_SYNTHETIC_LABELS=2"));
  }
  return tokens;
}

std::string ForShell(const std::vector<std::string>& tokens) {
  return absl::StrJoin(tokens, " ", [](std::string* text, const std::string& token) {
    const bool needs_quotes = absl::StrContains(token, '[');  // a pattern of file names to a shell
    absl::StrAppend(text, needs_quotes ? "'" : "", token, needs_quotes ? "'" : "");
  });
}

}  // namespace ssl
