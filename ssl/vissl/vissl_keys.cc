// SPDX-License-Identifier: Apache-2.0
#include "ssl/vissl/vissl_keys.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ssl/vissl/key_tables.h"

namespace ssl {
namespace {

constexpr int64_t kVersion = 1;

ConfigNode FreeFormMap() {
  ConfigNode map = ConfigNode::Map();
  map.set_free_form(true);
  return map;
}

}  // namespace

absl::Status RegisterVisslKeys(Registries* registries) {
  if (!registries->AddPackage("vissl")) return absl::OkStatus();
  const ConfigNode declared = registries->options.Defaults();
  std::vector<CompatibilityKey> keys = AllVisslKeys();
  const auto is_declared = [&declared](const CompatibilityKey& key) { return declared.FindPath(key.path) != nullptr; };
  keys.erase(std::remove_if(keys.begin(), keys.end(), is_declared), keys.end());
  return registries->options.AddKeys(std::move(keys));
}

void AddVisslRootKeys(ConfigNode* root) {
  root->Set("VERSION", ConfigNode::FromInt(kVersion));
  root->Set("node_id", ConfigNode::FromInt(0));
  root->Set("engine", ConfigNode::Null());
  root->Set("DISTRIBUTED", FreeFormMap());
}

absl::Status CheckVisslVersion(const ConfigNode& root) {
  const ConfigNode* version = root.Find("VERSION");
  if (version == nullptr) return absl::OkStatus();
  const absl::StatusOr<int64_t> number = version->AsInt();
  if (number.ok() && *number == kVersion) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(version->location().ToString(), ": VERSION is ", version->Describe(),
                                                 ", expected ", kVersion, ", the only version of VISSL's files"));
}

}  // namespace ssl
