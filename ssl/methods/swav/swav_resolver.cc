// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/swav/swav_resolver.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/world_shape.h"
#include "ssl/methods/num_crops.h"

namespace ssl {
namespace {

// Appends the arguments of every [swav_head, {...}], or swav_head_fsdp, in `entry`, which is such a pair or a list of
// them.
void FindSwavHeads(const ConfigNode& entry, std::vector<const ConfigNode*>* arguments) {
  const std::vector<ConfigNode>& items = entry.items();
  if (items.empty()) return;
  if (items[0].is_list()) {
    for (const ConfigNode& item : items) FindSwavHeads(item, arguments);
  } else if (absl::StripSuffix(items[0].text(), "_fsdp") == "swav_head" && items.size() == 2) {
    arguments->push_back(&items[1]);
  }
}

absl::Status TakeHeadSettings(ConfigNode* config) {
  std::vector<const ConfigNode*> heads;
  const ConfigNode* params = config->FindPath("MODEL.HEAD.PARAMS");
  const ConfigNode none;
  if (params == nullptr) params = &none;
  for (const ConfigNode& entry : params->items()) FindSwavHeads(entry, &heads);
  if (heads.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(params->location().ToString(), ": config.MODEL.HEAD.PARAMS has ",
                                                   heads.size(), " swav_head entries, swav_loss needs exactly one"));
  }
  const ConfigNode* dims = heads[0]->Find("dims");
  const ConfigNode* clusters = heads[0]->Find("num_clusters");
  if (dims == nullptr || dims->items().empty() || clusters == nullptr || clusters->items().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(heads[0]->location().ToString(), ": swav_head needs dims and num_clusters, each a list"));
  }
  // Copies: SetPath may move the nodes that these pointers look at.
  ConfigNode embedding_dim = dims->items().back();
  ConfigNode num_prototypes = *clusters;
  config->SetPath("LOSS.swav_loss.embedding_dim", std::move(embedding_dim));
  config->SetPath("LOSS.swav_loss.num_prototypes", std::move(num_prototypes));
  return absl::OkStatus();
}

absl::Status CheckAssignCrops(const ConfigNode& config) {
  const ConfigNode* num_crops = config.FindPath("LOSS.swav_loss.num_crops");
  const ConfigNode* assign = config.FindPath("LOSS.swav_loss.crops_for_assign");
  if (num_crops == nullptr || assign == nullptr) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const int64_t count, num_crops->AsInt());
  for (const ConfigNode& item : assign->items()) {
    SSL_ASSIGN_OR_RETURN(const int64_t crop, item.AsInt());
    if (crop >= 0 && crop < count) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(item.location().ToString(), ": config.LOSS.swav_loss.crops_for_assign holds crop ", crop,
                     ", but there are ", count, " crops (", num_crops->location().ToString(), ")"));
  }
  return absl::OkStatus();
}

// The whole number at `path`; `fallback` when there is none.
absl::StatusOr<int64_t> IntAt(const ConfigNode& config, absl::string_view path, int64_t fallback) {
  const ConfigNode* node = config.FindPath(path);
  return node == nullptr || node->is_null() ? fallback : node->AsInt();
}

// The queue holds whole batches of all ranks; what is over is cut off, as in VISSL.
absl::Status RoundQueueLength(ConfigNode* config) {
  constexpr char kPath[] = "LOSS.swav_loss.queue.queue_length";
  SSL_ASSIGN_OR_RETURN(const int64_t length, IntAt(*config, kPath, 0));
  SSL_ASSIGN_OR_RETURN(const int64_t batch, IntAt(*config, "DATA.TRAIN.BATCHSIZE_PER_REPLICA", 0));
  SSL_ASSIGN_OR_RETURN(const WorldShape world, ReadWorldShape(*config));
  const int64_t global_batch = batch * world.ranks();
  if (length <= 0 || global_batch <= 0 || length % global_batch == 0) return absl::OkStatus();
  const SourceLocation location = config->FindPath(kPath)->location();
  const int64_t rounded = length - length % global_batch;
  SSL_LOG(WARNING) << location.ToString() << ": config." << kPath << " is " << length << "; it is rounded down to "
                   << rounded << ", whole batches of " << global_batch << " samples over all ranks"
                   << (rounded == 0 ? ": no queue is kept" : "");
  ConfigNode value = ConfigNode::FromInt(rounded);
  value.Relocate(location);
  config->SetPath(kPath, std::move(value));
  return absl::OkStatus();
}

// Where transforms make the crops, a collator must keep them apart. A host's own source has neither.
absl::Status CheckCollator(const ConfigNode& config) {
  static constexpr absl::string_view kKnown[] = {"multicrop_collator", "multicrop_mixup_collator", "cutmixup_collator"};
  const ConfigNode* transforms = config.FindPath("DATA.TRAIN.TRANSFORMS");
  const ConfigNode* collator = config.FindPath("DATA.TRAIN.COLLATE_FUNCTION");
  if (transforms == nullptr || transforms->items().empty() || collator == nullptr) return absl::OkStatus();
  if (std::find(std::begin(kKnown), std::end(kKnown), collator->text()) != std::end(kKnown)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(collator->location().ToString(),
                                                 ": config.DATA.TRAIN.COLLATE_FUNCTION is '", collator->text(),
                                                 "', swav_loss expects multicrop_collator (config.LOSS.name, ",
                                                 config.FindPath("LOSS.name")->location().ToString(), ")"));
}

}  // namespace

absl::Status ResolveSwav(ConfigNode* config) {
  const ConfigNode* name = config->FindPath("LOSS.name");
  if (name == nullptr || name->text() != "swav_loss") return absl::OkStatus();
  SSL_RETURN_IF_ERROR(TakeHeadSettings(config));
  TakeNumCrops(config, "swav_loss");
  SSL_RETURN_IF_ERROR(RoundQueueLength(config));
  const absl::Status crops = CheckAssignCrops(*config);
  const absl::Status collator = CheckCollator(*config);
  if (crops.ok() || collator.ok()) return crops.ok() ? collator : crops;
  return absl::InvalidArgumentError(absl::StrCat(crops.message(), "\n", collator.message()));
}

}  // namespace ssl
