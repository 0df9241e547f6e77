// SPDX-License-Identifier: Apache-2.0
#include "ssl/models/trunks/transformer_options.h"

#include "absl/strings/str_cat.h"

namespace ssl {
namespace {

// More than any trunk has blocks; a split has one block at least.
constexpr int64_t kPartForEachBlock = 1000;

bool IsTrue(const ConfigNode* node) { return node != nullptr && node->AsBool().value_or(false); }

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
  const ConfigNode* const name = config->FindPath("MODEL.TRUNK.NAME");
  if (name == nullptr || (name->text() != trunk && name->text() != absl::StrCat(trunk, "_fsdp"))) {
    return absl::OkStatus();
  }
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

}  // namespace ssl
