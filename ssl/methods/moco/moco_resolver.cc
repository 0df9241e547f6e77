// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/moco/moco_resolver.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "ssl/base/status_macros.h"
#include "ssl/base/status_util.h"
#include "ssl/config/world_shape.h"
#include "ssl/core/core_options.h"
#include "ssl/methods/moco/moco_options.h"
#include "ssl/methods/num_crops.h"

namespace ssl {
namespace {

// The arguments of the last [name, {arguments}] in `entry`, which is such a pair or a list of them; null without any.
const ConfigNode* LastArguments(const ConfigNode& entry) {
  if (entry.items().empty()) return nullptr;
  if (entry.items().back().is_list()) return LastArguments(entry.items().back());
  return entry.items().back().is_map() ? &entry.items().back() : nullptr;
}

absl::Status CheckEmbeddingDim(const ConfigNode& config) {
  const ConfigNode* embedding_dim = config.FindPath("LOSS.moco_loss.embedding_dim");
  const ConfigNode* heads = config.FindPath("MODEL.HEAD.PARAMS");
  const ConfigNode* arguments = heads != nullptr ? LastArguments(*heads) : nullptr;
  const ConfigNode* dims = arguments != nullptr ? arguments->Find("dims") : nullptr;
  if (embedding_dim == nullptr || dims == nullptr || dims->items().empty()) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const int64_t expected, embedding_dim->AsInt());
  SSL_ASSIGN_OR_RETURN(const int64_t width, dims->items().back().AsInt());
  if (expected == width) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      embedding_dim->location().ToString(), ": config.LOSS.moco_loss.embedding_dim is ", expected, ", expected ", width,
      ", the width of the last head (", dims->items().back().location().ToString(), ")"));
}

absl::Status CheckViewsAndCollator(const ConfigNode& config) {
  const ConfigNode* transforms = config.FindPath("DATA.TRAIN.TRANSFORMS");
  const ConfigNode* collator = config.FindPath("DATA.TRAIN.COLLATE_FUNCTION");
  if (transforms == nullptr || transforms->items().empty()) return absl::OkStatus();
  if (collator == nullptr || collator->text() == "moco_collator") return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const int64_t views, CountViews(config));
  if (views == 2 || views == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(transforms->location().ToString(), ": config.DATA.TRAIN.TRANSFORMS make ", views,
                   " views and COLLATE_FUNCTION is ", collator->Describe(), " (", collator->location().ToString(),
                   "), but moco_loss takes 2 views, query and key: expected ImgReplicatePil with num_times 2, and "
                   "moco_collator"));
}

absl::Status CheckQueue(const ConfigNode& config) {
  const ConfigNode* size = config.FindPath("LOSS.moco_loss.queue_size");
  const ConfigNode* batch = config.FindPath("DATA.TRAIN.BATCHSIZE_PER_REPLICA");
  if (size == nullptr || batch == nullptr) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const int64_t queue_size, size->AsInt());
  SSL_ASSIGN_OR_RETURN(const int64_t batch_size, batch->AsInt());
  SSL_ASSIGN_OR_RETURN(const WorldShape world, ReadWorldShape(config));
  return Annotate(CheckQueueSize(queue_size, batch_size, world.ranks()), size->location().ToString());
}

// A share of all keeps everything.
absl::Status CheckMomentum(const ConfigNode& config) {
  const ConfigNode* momentum = config.FindPath("LOSS.moco_loss.momentum");
  if (momentum == nullptr || momentum->AsDouble().value_or(0.0) < 1.0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(momentum->location().ToString(), ": config.LOSS.moco_loss.momentum is ", momentum->text(),
                   ", expected less than 1, such as 0.999: the key ", "encoder would stay as it begins"));
}

absl::Status CheckTask(const ConfigNode& config) {
  const ConfigNode* task = config.FindPath("TRAINER.TASK_NAME");
  if (task == nullptr || task->text() != kShardingTask) return absl::OkStatus();
  SSL_ASSIGN_OR_RETURN(const WorldShape world, ReadWorldShape(config));
  if (world.ranks() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(task->location().ToString(), ": config.TRAINER.TASK_NAME is ",
                                                 kShardingTask, ", expected ", TrainerOptions().task_name,
                                                 ": moco_loss has a second encoder, a whole model on each rank"));
}

}  // namespace

absl::Status ResolveMoco(ConfigNode* config) {
  const ConfigNode* name = config->FindPath("LOSS.name");
  if (name == nullptr || name->text() != "moco_loss") return absl::OkStatus();
  SSL_RETURN_IF_ERROR(CheckEmbeddingDim(*config));
  SSL_RETURN_IF_ERROR(CheckQueue(*config));
  SSL_RETURN_IF_ERROR(CheckMomentum(*config));
  SSL_RETURN_IF_ERROR(CheckTask(*config));
  return CheckViewsAndCollator(*config);
}

}  // namespace ssl
