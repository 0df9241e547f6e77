// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/transformer_options.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ssl/base/log.h"

namespace ssl {
namespace {

// More than any trunk has blocks; a split has one block at least.
constexpr int64_t kPartForEachBlock = 1000;

bool IsTrue(const ConfigNode* node) { return node != nullptr && node->AsBool().value_or(false); }

bool HasTrunk(const ConfigNode& config, absl::string_view trunk) {
  const ConfigNode* const name = config.FindPath("MODEL.TRUNK.NAME");
  return name != nullptr && (name->text() == trunk || name->text() == absl::StrCat(trunk, "_fsdp"));
}

// The sides of the crops that training makes, each where it stands.
std::vector<ConfigNode> CropSizes(const ConfigNode& config) {
  std::vector<ConfigNode> sizes;
  const ConfigNode* transforms = config.FindPath("DATA.TRAIN.TRANSFORMS");
  if (transforms == nullptr) return sizes;
  for (const ConfigNode& transform : transforms->items()) {
    const ConfigNode* name = transform.Find("name");
    const bool crops = name != nullptr && absl::EndsWith(name->text(), "Crop");
    const ConfigNode* size = transform.Find(crops && transform.Find("size") != nullptr ? "size" : "size_crops");
    if (!crops || size == nullptr) continue;
    sizes = size->is_list() ? size->items() : std::vector<ConfigNode>{*size};  // a later crop is of an earlier one
  }
  return sizes;
}

}  // namespace

absl::StatusOr<double> ReadScale(const ConfigNode& node, absl::string_view path) {
  const absl::StatusOr<bool> flag = node.AsBool();
  if (node.is_null() || (flag.ok() && !*flag)) return 0.0;
  const absl::StatusOr<double> scale = node.AsDouble();
  if (scale.ok() && *scale >= 0.0) return *scale;
  return absl::InvalidArgumentError(absl::StrCat(node.location().ToString(), ": ", path, " is ", node.Describe(),
                                                 ", expected False or a number of at least 0"));
}

absl::Status RecomputeBlocksIfSet(absl::string_view trunk, absl::string_view section,
                                  const std::vector<std::string>& keys, ConfigNode* config) {
  if (!HasTrunk(*config, trunk)) return absl::OkStatus();
  bool is_set = false;
  for (const std::string& key : keys) {
    is_set = is_set || IsTrue(config->FindPath(absl::StrCat("MODEL.TRUNK.", section, ".", key)));
  }
  constexpr char kEnabled[] = "MODEL.ACTIVATION_CHECKPOINTING.USE_ACTIVATION_CHECKPOINTING";
  if (!is_set || IsTrue(config->FindPath(kEnabled))) return absl::OkStatus();
  config->SetPath(kEnabled, ConfigNode::FromBool(true));
  config->SetPath("MODEL.ACTIVATION_CHECKPOINTING.NUM_ACTIVATION_CHECKPOINTING_SPLITS",
                  ConfigNode::FromInt(kPartForEachBlock));
  return absl::OkStatus();
}

void WarnOfCropSizes(absl::string_view trunk, absl::string_view section, const ConfigNode& config) {
  const ConfigNode* patch = config.FindPath(absl::StrCat("MODEL.TRUNK.", section, ".PATCH_SIZE"));
  const ConfigNode* image = config.FindPath(absl::StrCat("MODEL.TRUNK.", section, ".IMAGE_SIZE"));
  if (!HasTrunk(config, trunk) || patch == nullptr || image == nullptr) return;
  const int64_t patch_size = patch->AsInt().value_or(0);
  int64_t largest = 0;
  for (const ConfigNode& crop : CropSizes(config)) {
    const int64_t size = crop.AsInt().value_or(0);
    largest = std::max(largest, size);
    if (size <= 0 || patch_size <= 0 || size % patch_size == 0) continue;
    SSL_LOG(WARNING) << patch->location().ToString() << ": config.MODEL.TRUNK." << section << ".PATCH_SIZE is "
                     << patch_size << ", and crops have " << size << " pixels (" << crop.location().ToString()
                     << "), no multiple of it: the last " << size % patch_size
                     << " of each row and column are never seen";
  }
  if (largest == 0 || image->location().file.empty() || image->AsInt().value_or(largest) == largest) return;
  SSL_LOG(WARNING) << image->location().ToString() << ": config.MODEL.TRUNK." << section << ".IMAGE_SIZE is "
                   << image->text() << ", expected " << largest
                   << ", the pixels of the largest crops of config.DATA.TRAIN.TRANSFORMS";
}

}  // namespace ssl
