// SPDX-License-Identifier: Apache-2.0
#include "ssl/methods/simclr/simclr_resolver.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ssl/base/status_macros.h"
#include "ssl/config/world_shape.h"
#include "ssl/methods/num_crops.h"

namespace ssl {
namespace {

absl::StatusOr<int64_t> ReadBatchSize(const ConfigNode& config) {
  constexpr absl::string_view kPath = "DATA.TRAIN.BATCHSIZE_PER_REPLICA";
  const ConfigNode* node = config.FindPath(kPath);
  if (node == nullptr) return 1;
  SSL_ASSIGN_OR_RETURN(const int64_t count, node->AsInt());
  if (count >= 1) return count;
  return absl::InvalidArgumentError(
      absl::StrCat(node->location().ToString(), ": config.", kPath, " is ", count, ", expected at least 1"));
}

// buffer_params of the loss `name`, which has `rows_per_image` rows of each image by VISSL's count.
absl::Status TakeSizes(ConfigNode* config, const std::string& name, int64_t rows_per_image) {
  SSL_ASSIGN_OR_RETURN(const int64_t batch_size, ReadBatchSize(*config));
  SSL_ASSIGN_OR_RETURN(const WorldShape world, ReadWorldShape(*config));
  const int64_t world_size = world.ranks();
  const std::string sizes = absl::StrCat("LOSS.", name, ".buffer_params");
  config->SetPath(JoinPath(sizes, "world_size"), ConfigNode::FromInt(world_size));
  config->SetPath(JoinPath(sizes, "effective_batch_size"),
                  ConfigNode::FromInt(rows_per_image * batch_size * world_size));
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveSimclr(ConfigNode* config) {
  const ConfigNode* loss = config->FindPath("LOSS.name");
  if (loss == nullptr) return absl::OkStatus();
  const std::string name = loss->text();
  if (name == "simclr_info_nce_loss") return TakeSizes(config, name, 2);
  if (name != "multicrop_simclr_info_nce_loss") return absl::OkStatus();
  TakeNumCrops(config, name);
  config->SetPath("DATA.TRAIN.COLLATE_FUNCTION", ConfigNode::FromString("multicrop_collator"));
  return TakeSizes(config, name, 1);
}

}  // namespace ssl
