// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/swav/swav_resolver.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ssl/base/log.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/problem.h"
#include "ssl/config/reader.h"
#include "ssl/config/world_shape.h"
#include "ssl/methods/num_crops.h"
#include "ssl/methods/swav/swav_options.h"
#include "ssl/models/head_section.h"
#include "ssl/models/heads/swav_head.h"

namespace ssl {
namespace {

// Appends every [swav_head, {arguments}], or swav_head_fsdp, in `entry`, which is such a pair or a list of them.
void FindSwavHeads(const ConfigNode& entry, std::vector<const ConfigNode*>* heads) {
  const std::vector<ConfigNode>& items = entry.items();
  if (items.empty()) return;
  if (items[0].is_list()) {
    for (const ConfigNode& item : items) FindSwavHeads(item, heads);
  } else if (absl::StripSuffix(items[0].text(), "_fsdp") == "swav_head") {
    heads->push_back(&entry);
  }
}

absl::Status HeadError(const SourceLocation& location, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(location.ToString(), ": config.MODEL.HEAD.PARAMS: ", what));
}

// What is wrong with the head's own arguments: its words are the user's, those of the loss are not.
absl::StatusOr<SwavHeadOptions> ReadHead(const ConfigNode& head) {
  const ConfigNode arguments = head.items().size() > 1 ? head.items()[1] : ConfigNode::Map(head.location());
  SwavHeadOptions options;
  std::vector<ConfigProblem> problems = ReadProblems(arguments, "swav_head", UnknownKeys::kError, &options);
  for (ConfigProblem& problem : problems) problem.text = absl::StrCat("config.MODEL.HEAD.PARAMS: ", problem.text);
  SSL_RETURN_IF_ERROR(ProblemsInOrder(problems));
  if (options.dims.empty()) {
    return HeadError(arguments.location(), "swav_head has no dims, expected a list of widths such as [2048, 128]");
  }
  if (options.num_clusters.empty()) {
    return HeadError(arguments.location(), "swav_head has no num_clusters, expected a list of numbers such as [3000]");
  }
  return options;
}

// The head decides. VISSL's files repeat its defaults here, whatever the head has; another value is meant.
void Take(const ConfigNode& value, const ConfigNode& by_default, const std::string& path, ConfigNode* config) {
  const ConfigNode* set = config->FindPath(path);
  if (set != nullptr && !set->location().file.empty() && *set != value && *set != by_default) {
    SSL_LOG(WARNING) << set->location().ToString() << ": config." << path
                     << " has no effect: config.MODEL.HEAD.PARAMS (" << value.location().ToString() << ") decides";
  }
  config->SetPath(path, value);
}

absl::Status TakeHeadSettings(ConfigNode* config) {
  SSL_RETURN_IF_ERROR(ReadHeadSection(*config).status());
  std::vector<const ConfigNode*> heads;
  const ConfigNode* params = config->FindPath("MODEL.HEAD.PARAMS");
  const ConfigNode none;
  if (params == nullptr) params = &none;
  for (const ConfigNode& entry : params->items()) FindSwavHeads(entry, &heads);
  if (heads.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(params->location().ToString(), ": config.MODEL.HEAD.PARAMS has ",
                                                   heads.size(), " swav_head entries, swav_loss needs exactly one, ",
                                                   "[swav_head, {dims: ..., num_clusters: ...}]"));
  }
  SSL_RETURN_IF_ERROR(ReadHead(*heads[0]).status());
  const ConfigNode arguments = heads[0]->items()[1];  // a copy: SetPath may move it
  const SwavOptions defaults;
  Take(arguments.Find("dims")->items().back(), ConfigNode::FromInt(defaults.embedding_dim),
       "LOSS.swav_loss.embedding_dim", config);
  Take(*arguments.Find("num_clusters"), ConfigNode::FromInts(defaults.num_prototypes), "LOSS.swav_loss.num_prototypes",
       config);
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
  TakeNumCrops(config, "swav_loss");
  SSL_RETURN_IF_ERROR(TakeHeadSettings(config));
  SSL_RETURN_IF_ERROR(RoundQueueLength(config));
  const absl::Status crops = CheckAssignCrops(*config);
  const absl::Status collator = CheckCollator(*config);
  if (crops.ok() || collator.ok()) return crops.ok() ? collator : crops;
  return absl::InvalidArgumentError(absl::StrCat(crops.message(), "\n", collator.message()));
}

}  // namespace ssl
