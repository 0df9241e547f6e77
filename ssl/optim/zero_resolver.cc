// SPDX-License-Identifier: Apache-2.0
#include "ssl/optim/zero_resolver.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ssl/config/merge.h"

namespace ssl {
namespace {

constexpr char kName[] = "OPTIMIZER.name";
constexpr char kBase[] = "OPTIMIZER.base_optimizer";

absl::Status Wrong(const ConfigNode& place, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(place.location().ToString(), ": config.OPTIMIZER.", what));
}

}  // namespace

absl::Status ResolveZero(ConfigNode* config) {
  const ConfigNode* name = config->FindPath(kName);
  const ConfigNode* base = config->FindPath(kBase);
  const bool is_zero = name != nullptr && name->text() == "zero";
  const bool has_base = base != nullptr && !base->is_null();
  if (!is_zero && !has_base) return absl::OkStatus();
  if (!is_zero) return Wrong(*base, "base_optimizer is set, expected config.OPTIMIZER.name zero beside it, or neither");
  const ConfigNode* base_name = has_base && base->is_map() ? base->Find("name") : nullptr;
  if (base_name == nullptr || base_name->text() == "zero") {
    return Wrong(*name, "name is zero, expected the name of another optimizer in config.OPTIMIZER.base_optimizer");
  }
  ConfigNode settings = *base;
  ConfigNode use_zero = ConfigNode::FromBool(true);
  use_zero.Relocate(name->location());
  settings.Set("use_zero", std::move(use_zero));
  config->SetPath(kBase, ConfigNode::Null(base->location()));
  ConfigNode overlay = ConfigNode::Map();
  overlay.Set("OPTIMIZER", std::move(settings));
  MergeInto(config, overlay);
  return absl::OkStatus();
}

}  // namespace ssl
